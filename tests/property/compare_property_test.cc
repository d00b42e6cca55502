// Digests, differences and proofs of random models in random layouts.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "reshard/diff.h"
#include "reshard/digest.h"
#include "reshard/verify_against.h"
#include "src/digest/logical_digest.h"
#include "tests/property/any_model.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/pick.h"

namespace reshard {
namespace {

namespace fs = std::filesystem;

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

  DiffReport Compare(bool values = false) const {
    DiffOptions options;
    options.a = a_;
    options.b = b_;
    options.values = values;
    options.jobs = Pick(0, 4);
    auto report = Diff(options);
    if (!report.ok()) RC_FAIL(report.status().message());
    return *std::move(report);
  }

  static std::map<std::string, std::string> DigestsOf(const DiffSide& side) {
    DigestOptions options;
    options.path = side.path;
    options.strategy = side.strategy;
    options.jobs = Pick(0, 4);
    const auto report = DigestCheckpoint(options);
    if (!report.ok()) RC_FAIL(report.status().message());
    std::map<std::string, std::string> digests;
    for (const ParameterDigest& parameter : report->parameters) {
      digests[parameter.name] = parameter.digest;
    }
    RC_ASSERT(digests.size() == report->parameters.size());
    return digests;
  }

  const DiffSide& a() const { return a_; }
  const DiffSide& b() const { return b_; }

 private:
  void Write(const std::string& side, int64_t rank, const std::vector<TestTensor>& tensors) const {
    folder_.Write(side + "/" + RankPath(rank),
                  PickBool() ? EncodeCut(tensors) : EncodeCheckpoint(tensors));
  }

  const TemporaryFolder folder_;
  DiffSide a_;
  DiffSide b_;
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
  for (const ParameterDiff& diff : report.parameters) {
    if (diff.relation != ParameterRelation::kEqual) names.insert(diff.name);
    RC_ASSERT(diff.relation == ParameterRelation::kEqual ||
              diff.relation == ParameterRelation::kDifferent);
  }
  return names;
}

RC_GTEST_PROP(DiffProperty, OneChangedByteIsThatParametersDifference, ()) {
  Model model = AnyModel({});
  const BothSides sides(model);
  RC_ASSERT(sides.Compare().equal());
  RC_ASSERT(Different(sides.Compare()).empty());
  TestTensor& changed = model.cut[Pick<size_t>(0, model.cut.size())];
  RC_PRE(!changed.content.empty());
  const auto place = Pick<size_t>(0, changed.content.size());
  changed.content[place] = static_cast<char>(changed.content[place] ^ (1 << Pick(0, 8)));
  sides.WriteB(model);
  RC_ASSERT(Different(sides.Compare()) == std::set<std::string>({changed.name}));
  const auto before = BothSides::DigestsOf(sides.a());
  for (const auto& [name, digest] : BothSides::DigestsOf(sides.b())) {
    RC_ASSERT((digest != before.at(name)) == (name == changed.name));
  }
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

ValueDifference NaiveDifference(DType dtype, std::string_view a, std::string_view b) {
  ValueDifference difference;
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
  for (const ParameterDiff& diff : report.parameters) {
    if (std::count(model.uncut.begin(), model.uncut.end(), diff.name) != 0) continue;
    const TestTensor& a = model.Find(diff.name);
    const TestTensor& b = changed.Find(diff.name);
    RC_ASSERT((diff.relation == ParameterRelation::kEqual) == (a.content == b.content));
    RC_ASSERT(diff.values.has_value() == (a.content != b.content));
    if (!diff.values) continue;
    const ValueDifference expected = NaiveDifference(a.dtype, a.content, b.content);
    RC_ASSERT(diff.values->numbers == expected.numbers);
    RC_ASSERT(diff.values->nan_against_number == expected.nan_against_number);
    RC_ASSERT(diff.values->nan_against_nan == expected.nan_against_nan);
    RC_ASSERT(diff.values->greatest == expected.greatest);
  }
}

// A model's source, converted.
class Conversion {
 public:
  explicit Conversion(const Model& model) {
    ConvertOptions& convert = folder_.options();
    convert.source_strategy = WriteStrategy(model.source, folder_.folder(), "source_strategy");
    convert.target_strategy = WriteStrategy(model.target, folder_.folder(), "target_strategy");
    for (int64_t rank = 0; rank < model.source.ranks(); ++rank) {
      const auto tensors = SourceTensors(model, rank, rank);
      WriteSource(rank, PickBool() ? EncodeCut(tensors) : EncodeCheckpoint(tensors));
    }
    const auto converted = Convert(convert);
    if (!converted.ok()) RC_FAIL(converted.status().message());
  }

  void WriteSource(int64_t rank, const std::string& bytes) const { folder_.WriteRank(rank, bytes); }

  std::string ReadTarget(int64_t rank) const {
    return ReadFile(fs::path(folder_.options().target) / RankPath(rank));
  }
  void WriteTarget(int64_t rank, const std::string& bytes) const {
    fs::permissions(fs::path(folder_.options().target) / RankPath(rank), fs::perms::owner_all);
    folder_.folder().Write("target/" + RankPath(rank), bytes);
  }

  AgainstReport Verify() const {
    AgainstOptions options;
    options.source = folder_.options().source;
    options.target = folder_.options().target;
    options.source_strategy = folder_.options().source_strategy;
    options.target_strategy = folder_.options().target_strategy;
    options.jobs = Pick(0, 4);
    auto report = VerifyAgainst(options);
    if (!report.ok()) RC_FAIL(report.status().message());
    return *std::move(report);
  }

 private:
  ConversionFolder folder_;
};

RC_GTEST_PROP(VerifyAgainstProperty, OutputsAreProvedAndAChangedByteIsFound, ()) {
  const Model model = AnyModel({.share_between_stages = PickBool()});
  const Conversion conversion(model);
  const AgainstReport good = conversion.Verify();
  RC_ASSERT(good.differences.empty());
  RC_ASSERT(good.files == static_cast<uint64_t>(model.target.ranks()));

  const auto rank = Pick<int64_t>(0, model.target.ranks());
  std::string bytes = conversion.ReadTarget(rank);
  RC_PRE(!bytes.empty());
  const auto offset = Pick<size_t>(0, bytes.size());
  bytes[offset] = static_cast<char>(bytes[offset] ^ (1 << Pick(0, 8)));
  conversion.WriteTarget(rank, bytes);
  const AgainstReport bad = conversion.Verify();
  RC_ASSERT(bad.differences.size() == 1U);
  RC_ASSERT(bad.differences[0].path == RankPath(rank));
  RC_ASSERT(bad.differences[0].differing_bytes == 1U);
  RC_ASSERT(bad.differences[0].first->offset == offset);
}

// What replicas there are, by the definition of layouts.
RC_GTEST_PROP(ReplicaProperty, ChangedShardsAreFoundWhereTheyHaveReplicas, ()) {
  const Model model = AnyModel({});
  const Conversion conversion(model);
  const auto rank = Pick<int64_t>(0, model.source.ranks());
  const int64_t local = rank % model.source.devices;
  std::vector<TestTensor> tensors = SourceTensors(model, rank, rank);
  std::set<std::string> expected;
  for (TestTensor& tensor : tensors) {
    if (tensor.content.empty() || PickBool()) continue;
    char& byte = tensor.content[Pick<size_t>(0, tensor.content.size())];
    byte = static_cast<char>(byte ^ 1);
    const auto stage = static_cast<size_t>(rank / model.source.devices);
    for (const auto& [name, layout] : model.source.layouts[stage]) {
      if (name != tensor.name) continue;
      const size_t dims = tensor.shape.size();
      int64_t holders = 0;
      for (int64_t other = 0; other < model.source.devices; ++other) {
        holders += PartsByDefinition(layout, dims, other) == PartsByDefinition(layout, dims, local);
      }
      if (holders > 1) expected.insert(name);
    }
  }
  conversion.WriteSource(rank, PickBool() ? EncodeCut(tensors) : EncodeCheckpoint(tensors));
  const ReplicaReport report = conversion.Verify().replicas;
  std::set<std::string> found;
  for (const ReplicaDifference& difference : report.differences) {
    found.insert(difference.parameter);
    for (const ReplicaPair& pair : difference.pairs) {
      RC_ASSERT(pair.rank == rank || pair.reference == rank);
    }
  }
  RC_ASSERT(found == expected);
  RC_ASSERT(report.differing == expected.size());
}

}  // namespace
}  // namespace reshard
