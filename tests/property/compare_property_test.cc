// Digests and differences of random models in random layouts.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "reshard/compare.h"
#include "src/digest/logical_digest.h"
#include "tests/property/any_model.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/pick.h"

namespace reshard::compare_property_test {
namespace {

// Both sides of a model, written as training would have left them.
class BothSides {
 public:
  explicit BothSides(const Model& model) : folder_(MemoryFolder()) {
    a_.path = folder_.path() / "a";
    a_.strategy = WriteStrategy(model.source, folder_, "a_strategy");
    b_.path = folder_.path() / "b";
    b_.strategy = WriteStrategy(model.target, folder_, "b_strategy");
    for (int64_t rank = 0; rank < model.source.ranks(); ++rank) {
      Write("a", rank, SourceTensors(model, rank, 0));
    }
    WriteB(model);
  }

  void WriteB(const Model& model) const {
    for (int64_t rank = 0; rank < model.target.ranks(); ++rank) {
      Write("b", rank, TargetTensors(model, rank, 0));
    }
  }

  void Write(const std::string& side, int64_t rank, const std::vector<TestTensor>& tensors) const {
    folder_.Write(side + "/" + RankPath(rank),
                  PickBool() ? EncodeCut(tensors) : EncodeCheckpoint(tensors));
  }

  // One file of full tensors as A.
  void WriteFullA(const Model& model) {
    std::vector<TestTensor> tensors = model.cut;
    for (const std::string& name : model.uncut) tensors.push_back(UncutTensor(name, 0));
    a_ = {folder_.Write("full.ckpt", EncodeCheckpoint(tensors)), ""};
  }

  DiffReport Compare(bool values = false, bool one_replica = false) const {
    DiffOptions options;
    options.source = a_;
    options.b = b_;
    options.values = values;
    options.run.jobs = Pick(0, 4);
    options.one_replica = one_replica;
    auto report = Diff(options);
    if (!report.ok()) RC_FAIL(report.status().message());
    return *std::move(report);
  }

  static DigestReport Digest(const SourceSpec& side, bool one_replica = PickBool()) {
    ContentOptions options;
    options.source.path = side.path;
    options.source.strategy = side.strategy;
    options.run.jobs = Pick(0, 4);
    options.one_replica = one_replica;
    auto report = DigestCheckpoint(options);
    if (!report.ok()) RC_FAIL(report.status().message());
    return *std::move(report);
  }

  static std::map<std::string, std::string> DigestsOf(const SourceSpec& side) {
    const DigestReport report = Digest(side);
    std::map<std::string, std::string> digests;
    for (const DigestReport::Parameter& parameter : report.parameters) {
      digests.emplace(parameter.name, parameter.digest);  // of the lowest rank
    }
    return digests;
  }

  const SourceSpec& a() const { return a_; }
  const SourceSpec& b() const { return b_; }

 private:
  const TemporaryFolder folder_;
  SourceSpec a_;
  SourceSpec b_;
};

RC_GTEST_PROP(DigestProperty, DigestsDoNotDependOnTheLayout, ()) {
  const Model model = AnyModel({.share_between_stages = PickBool()});
  const BothSides sides(model);
  const auto digests = BothSides::DigestsOf(sides.a());
  RC_ASSERT(BothSides::DigestsOf(sides.b()) == digests);
  RC_ASSERT(digests.size() == model.cut.size() + model.uncut.size());
  LogicalHasher hasher;
  for (const TestTensor& full : model.cut) {
    Digest128 sum;
    hasher.Add(sum, reinterpret_cast<const std::byte*>(full.content.data()), full.content.size(),
               0);
    RC_ASSERT(digests.at(full.name) == ToHex(sum));
  }
}

// The names that differ; anything but a difference in bytes is one.
std::set<std::string> Different(const DiffReport& report) {
  std::set<std::string> names;
  for (const DiffReport::Parameter& diff : report.parameters) {
    if (diff.relation != DiffReport::Relation::kEqual) names.insert(diff.name);
    RC_ASSERT(diff.relation == DiffReport::Relation::kEqual ||
              diff.relation == DiffReport::Relation::kDifferent);
  }
  return names;
}

RC_GTEST_PROP(DiffProperty, OneChangedByteIsThatParametersDifference, ()) {
  Model model = AnyModel({});
  const BothSides sides(model);
  RC_ASSERT(sides.Compare(PickBool(), PickBool()).equal());
  TestTensor& changed = model.cut[Pick<size_t>(0, model.cut.size())];
  RC_PRE(!changed.content.empty());
  const auto place = Pick<size_t>(0, changed.content.size());
  changed.content[place] = static_cast<char>(changed.content[place] ^ (1 << Pick(0, 8)));
  sides.WriteB(model);
  RC_ASSERT(Different(sides.Compare(PickBool(), PickBool())) ==
            std::set<std::string>({changed.name}));
  const auto before = BothSides::DigestsOf(sides.a());
  for (const auto& [name, digest] : BothSides::DigestsOf(sides.b())) {
    RC_ASSERT((digest != before.at(name)) == (name == changed.name));
  }
}

// The lowest stage of a side that has the parameter.
size_t LowestStage(const ModelSide& side, const std::string& name) {
  size_t stage = 0;
  const auto has_it = [&](const NamedLayout& layout) { return layout.name == name; };
  while (std::none_of(side.layouts[stage].begin(), side.layouts[stage].end(), has_it)) ++stage;
  return stage;
}

// How many ranks of the target hold a parameter that no layout of it cuts; 0 where one does.
int64_t HoldersOfWhole(const Model& model, const std::string& name) {
  if (std::count(model.uncut.begin(), model.uncut.end(), name) != 0) return model.target.ranks();
  int64_t holders = 0;
  for (const auto& layouts : model.target.layouts) {
    for (const auto& [other, layout] : layouts) {
      if (other != name) continue;
      const NaiveParts parts = PartsByDefinition(layout, model.Find(name).shape.size(), 0);
      if (std::any_of(parts.cuts.begin(), parts.cuts.end(), [](int64_t cut) { return cut != 1; })) {
        return 0;
      }
      holders += model.target.devices;
    }
  }
  return holders;
}

// By the definition of layouts: what there is to find when a byte of one rank's shard changed.
RC_GTEST_PROP(DiffProperty, OneChangedByteOfOneRankIsFound, ()) {
  const Model model = AnyModel({.share_between_stages = PickBool()});
  RC_PRE(model.target.has_strategy);
  BothSides sides(model);
  if (model.in_several_stages) sides.WriteFullA(model);  // the source's stages do not agree
  const auto rank = Pick<int64_t>(0, model.target.ranks());
  std::vector<TestTensor> tensors = TargetTensors(model, rank, 0);
  TestTensor& changed = tensors[Pick<size_t>(0, tensors.size())];
  RC_PRE(!changed.content.empty());
  const std::string name = changed.name;
  const int64_t holders_in_all = HoldersOfWhole(model, name);
  const auto offset = Pick<size_t>(0, changed.content.size());
  changed.content[offset] = static_cast<char>(changed.content[offset] ^ (1 << Pick(0, 8)));
  sides.Write("b", rank, tensors);

  const DiffReport report = sides.Compare(PickBool());
  RC_ASSERT(!report.equal());
  const ReplicaReport& replicas = *report.b;
  const DigestReport digest = BothSides::Digest(sides.b(), false);
  RC_ASSERT(digest.replicas->differing == replicas.differing);
  if (holders_in_all > 0) {
    RC_ASSERT(Different(report) == std::set<std::string>({name}));
    RC_ASSERT(replicas.differing == 0U);
    RC_ASSERT(report.b->own_values.empty() == (holders_in_all == 1));
    for (const DiffReport::Parameter& diff : report.parameters) {
      RC_ASSERT(diff.b_ranks == (diff.name == name && holders_in_all > 1
                                     ? std::vector<int64_t>({rank})
                                     : std::vector<int64_t>()));
    }
    const size_t values = holders_in_all == 1 ? 1 : 2;
    RC_ASSERT(digest.parameters.size() == model.cut.size() + model.uncut.size() + values - 1);
    return;
  }
  const auto stage = static_cast<size_t>(rank / model.target.devices);
  const size_t lowest = LowestStage(model.target, name);
  const int64_t local = rank % model.target.devices;
  int64_t holders = 0;
  bool is_lowest = true;       // of those that hold the shard
  std::set<int64_t> expected;  // stages
  for (size_t s = 0; s < model.target.layouts.size(); ++s) {
    for (const auto& [other, layout] : model.target.layouts[s]) {
      if (other != name) continue;
      if (s != stage) {
        if (s != lowest) expected.insert(static_cast<int64_t>(s));
        continue;
      }
      const size_t dims = changed.shape.size();
      for (int64_t l = 0; l < model.target.devices; ++l) {
        if (PartsByDefinition(layout, dims, l) != PartsByDefinition(layout, dims, local)) continue;
        ++holders;
        if (l < local) is_lowest = false;
      }
    }
  }
  // What the other stages hold is compared with the lowest.
  if (stage != lowest || !is_lowest) expected.clear();
  if (stage != lowest || holders > 1) expected.insert(static_cast<int64_t>(stage));
  std::set<int64_t> found;
  for (const ReplicaReport::Difference& difference : replicas.differences) {
    RC_ASSERT(difference.parameter == name);
    found.insert(difference.stage);
    RC_ASSERT(!difference.pairs.empty());
    for (const ReplicaReport::Pair& pair : difference.pairs) {
      RC_ASSERT(pair.rank == rank || pair.reference == rank);
      RC_ASSERT(!pair.other_type);
      RC_ASSERT(static_cast<size_t>(difference.stage) != stage || pair.offset == offset);
    }
  }
  RC_ASSERT(found == expected);
  RC_ASSERT(replicas.differing == expected.size());
  const bool differs = stage == lowest && is_lowest;
  RC_ASSERT(Different(report) ==
            (differs ? std::set<std::string>({name}) : std::set<std::string>()));
}

// Sets of values, wherever they are.
RC_GTEST_PROP(DiffProperty, WhatNothingCutsIsComparedAsSets, ()) {
  const Model model = AnyModel({});
  RC_PRE(!model.uncut.empty());
  const BothSides sides(model);
  std::map<std::string, std::map<int64_t, std::vector<int64_t>>> held;  // by side, value: ranks
  const auto write = [&](const std::string& side, int64_t ranks, auto tensors_of) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const auto value = Pick<int64_t>(0, 3);
      held[side][value].push_back(rank);
      sides.Write(side, rank, tensors_of(model, rank, value));
    }
  };
  write("a", model.source.ranks(), SourceTensors);
  write("b", model.target.ranks(), TargetTensors);
  const DiffReport report = sides.Compare();
  const auto ranks_of_others = [&](const std::string& side, const std::string& other) {
    std::vector<int64_t> ranks;
    for (const auto& [value, holders] : held[side]) {
      if (!held[other].contains(value)) ranks.insert(ranks.end(), holders.begin(), holders.end());
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  };
  for (const DiffReport::Parameter& diff : report.parameters) {
    if (std::count(model.uncut.begin(), model.uncut.end(), diff.name) == 0) continue;
    const std::vector<int64_t> a_ranks = ranks_of_others("a", "b");
    const std::vector<int64_t> b_ranks = ranks_of_others("b", "a");
    RC_ASSERT((diff.relation == DiffReport::Relation::kEqual) ==
              (a_ranks.empty() && b_ranks.empty()));
    const auto some_of = [](const std::vector<int64_t>& ranks, const ModelSide& side) {
      return ranks.size() == static_cast<size_t>(side.ranks()) ? std::vector<int64_t>() : ranks;
    };
    RC_ASSERT(diff.a_ranks == some_of(a_ranks, model.source));
    RC_ASSERT(diff.b_ranks == some_of(b_ranks, model.target));
  }
  RC_ASSERT(report.a->own_values.size() == (held["a"].size() > 1 ? model.uncut.size() : 0));
  RC_ASSERT(report.b->own_values.size() == (held["b"].size() > 1 ? model.uncut.size() : 0));
  std::map<std::string, std::vector<std::vector<int64_t>>> by_name;
  for (const DigestReport::Parameter& digest : BothSides::Digest(sides.b(), false).parameters) {
    by_name[digest.name].push_back(digest.ranks);
  }
  std::vector<std::vector<int64_t>> expected;
  for (const auto& [value, holders] : held["b"]) expected.push_back(holders);
  std::sort(expected.begin(), expected.end());  // by their lowest ranks
  if (expected.size() == 1) expected.front().clear();
  for (const std::string& name : model.uncut) RC_ASSERT(by_name[name] == expected);
}

// An element's value, from the definitions of the formats; NaN where it is none.
double NaiveValue(DType dtype, std::string_view element) {
  uint64_t bits = 0;
  std::memcpy(&bits, element.data(), element.size());
  const int mantissa_bits = dtype == DType::kFloat16    ? 10
                            : dtype == DType::kBFloat16 ? 7
                            : dtype == DType::kFloat32  ? 23
                                                        : 52;
  const int exponent_bits = static_cast<int>(element.size()) * 8 - 1 - mantissa_bits;
  const auto mantissa = static_cast<double>(bits & ((uint64_t{1} << mantissa_bits) - 1));
  const auto exponent =
      static_cast<int>(bits >> mantissa_bits & ((uint64_t{1} << exponent_bits) - 1));
  const bool negative = bits >> (element.size() * 8 - 1) != 0;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double value = 0;
  if (exponent == (1 << exponent_bits) - 1) {
    value = mantissa == 0 ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  } else {
    value = std::ldexp(1 + std::ldexp(mantissa, -mantissa_bits), exponent - bias);
  }
  return negative ? -value : value;
}

DiffReport::ValueDifference NaiveDifference(DType dtype, std::string_view a, std::string_view b) {
  DiffReport::ValueDifference difference;
  const uint64_t size = ItemBytes(dtype);
  for (size_t i = 0; i < a.size(); i += size) {
    if (a.substr(i, size) == b.substr(i, size)) continue;
    const double left = NaiveValue(dtype, a.substr(i, size));
    const double right = NaiveValue(dtype, b.substr(i, size));
    const int nans = (std::isnan(left) ? 1 : 0) + (std::isnan(right) ? 1 : 0);
    if (nans == 0) {
      ++difference.numbers;
      difference.greatest = std::max(difference.greatest, std::fabs(left - right));
    } else {
      ++(nans == 1 ? difference.nan_against_number : difference.nan_against_nan);
    }
  }
  return difference;
}

// Changes some elements, to what is rare among random bytes too: NaNs, infinities, zeros.
void ChangeElements(TestTensor& tensor) {
  const uint64_t size = ItemBytes(tensor.dtype);
  for (int changes = Pick(1, 9); changes > 0; --changes) {
    const size_t at = Pick<size_t>(0, tensor.content.size() / size) * size;
    std::string element = tensor.content.substr(at, size);
    switch (Pick(0, 3)) {
      case 0:  // a NaN
        element.assign(size, '\xff');
        element[0] = static_cast<char>(Pick(0, 256));
        break;
      case 1:  // a zero
        element.assign(size, '\0');
        element.back() = PickBool() ? '\x80' : '\0';
        break;
      default:
        element[Pick<size_t>(0, size)] = static_cast<char>(Pick(0, 256));
    }
    tensor.content.replace(at, size, element);
  }
}

RC_GTEST_PROP(DiffProperty, ValuesAreComparedAsNaively, ()) {
  Model model = AnyModel({});
  constexpr std::array kFloats = {DType::kFloat16, DType::kBFloat16, DType::kFloat32,
                                  DType::kFloat64};
  for (TestTensor& tensor : model.cut) {
    tensor = MakeTensor(tensor.name, kFloats[Pick<size_t>(0, kFloats.size())], tensor.shape);
    if (!tensor.content.empty() && PickBool()) ChangeElements(tensor);
  }
  const BothSides sides(model);
  Model changed = model;
  for (TestTensor& tensor : changed.cut) {
    if (!tensor.content.empty() && PickBool()) ChangeElements(tensor);
  }
  sides.WriteB(changed);
  const DiffReport report = sides.Compare(true);
  for (const DiffReport::Parameter& diff : report.parameters) {
    if (std::count(model.uncut.begin(), model.uncut.end(), diff.name) != 0) continue;
    const TestTensor& a = model.Find(diff.name);
    const TestTensor& b = changed.Find(diff.name);
    RC_ASSERT((diff.relation == DiffReport::Relation::kEqual) == (a.content == b.content));
    RC_ASSERT(diff.values.has_value() == (a.content != b.content));
    if (!diff.values) continue;
    const DiffReport::ValueDifference expected = NaiveDifference(a.dtype, a.content, b.content);
    RC_ASSERT(diff.values->numbers == expected.numbers);
    RC_ASSERT(diff.values->nan_against_number == expected.nan_against_number);
    RC_ASSERT(diff.values->nan_against_nan == expected.nan_against_nan);
    RC_ASSERT(diff.values->greatest == expected.greatest);
  }
}

}  // namespace
}  // namespace reshard::compare_property_test
