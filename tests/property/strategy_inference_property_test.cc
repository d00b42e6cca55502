// Random specifications, made to strategies, converted to, and inferred again from what was
// written.
//
// Which rank holds what is worked out from docs/guide/strategies.md, and which layouts there are to
// choose from by trying all.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reshard/convert.h"
#include "reshard/strategy.h"
#include "tests/property/any_spec.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/pick.h"

namespace reshard::strategy_inference_property_test {
namespace {

// What each rank of a stage holds of a parameter: number of a part, row-major.
using PartOfRank = std::vector<size_t>;

// A model made, converted and inferred, in a folder.
class InferredFolder : public ConversionFolder {
 public:
  explicit InferredFolder(const SpecModel& model) {
    options().source.path = folder().Write("full.ckpt", EncodeCheckpoint(model.FullTensors()));
    MakeStrategyOptions make;
    make.spec = folder().Write("spec.json", SpecText(model));
    make.output = folder().path() / (PickBool() ? "made.json" : "made.ckpt");
    make.checkpoint = options().source.path;
    const auto made = MakeStrategy(make);
    if (!made.ok()) RC_FAIL(made.status().message());
    RC_ASSERT(made->warnings.empty());
    options().target.strategy = make.output;
    Run(options());
  }

  Result<StrategyReport> Infer(const std::vector<TestTensor>& reference) {
    return InferStrategy(options().target.folder,
                         folder().Write("reference.ckpt", EncodeCheckpoint(reference)), inferred_,
                         false);
  }

  // The layouts that were inferred, by stage and name.
  std::map<std::pair<int64_t, std::string>, ParameterLayout> Inferred() const {
    const auto strategy = ReadStrategy(inferred_);
    if (!strategy.ok()) RC_FAIL(strategy.status().message());
    std::map<std::pair<int64_t, std::string>, ParameterLayout> layouts;
    for (const Strategy::Stage& stage : strategy->stages()) {
      for (const auto [name, layout] : stage) {
        layouts.insert_or_assign({stage.number(), std::string(name)}, layout);
      }
    }
    return layouts;
  }

  // The full tensors that come of the shards under the strategy that was inferred, by name.
  std::vector<TestTensor> Back() {
    ConvertOptions back = options();
    back.source.path = options().target.folder;
    back.target.folder = folder().path() / "back";
    back.source.strategy = inferred_;
    back.target.strategy = {};
    Run(back);
    return ByName(ReadTensors(std::filesystem::path(back.target.folder) / RankPath(0)));
  }

  static std::vector<TestTensor> ByName(std::vector<TestTensor> tensors) {
    std::sort(tensors.begin(), tensors.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    return tensors;
  }

 private:
  static void Run(const ConvertOptions& options) {
    const auto report = Convert(options);
    if (!report.ok()) RC_FAIL(report.status().message());
  }

  const std::string inferred_ = folder().path() / "inferred.ckpt";
};

size_t NumberOf(const NaiveParts& parts) {
  size_t number = 0;
  for (size_t d = 0; d < parts.part.size(); ++d) {
    number = number * static_cast<size_t>(parts.cuts[d]) + static_cast<size_t>(parts.part[d]);
  }
  return number;
}

// Every order of factors whose product is `devices`: all device matrices without axes of 1.
std::vector<std::vector<int64_t>> MatricesOf(int64_t devices) {
  if (devices == 1) return {{}};
  std::vector<std::vector<int64_t>> matrices;
  for (int64_t axis = 2; axis <= devices; ++axis) {
    if (devices % axis != 0) continue;
    for (std::vector<int64_t> rest : MatricesOf(devices / axis)) {
      rest.push_back(axis);
      matrices.push_back(std::move(rest));
    }
  }
  return matrices;
}

// Adds what ranks hold under the layouts that go on from `layout` with device axis `axis`: each
// axis cuts a dimension that none has cut, or is free; optimizer sharding gives the rest of `cuts`.
void AddWays(ParameterLayout& layout, size_t axis, const std::vector<int64_t>& cuts,
             int64_t devices, std::set<PartOfRank>& ways) {
  if (axis < layout.device_matrix.size()) {
    AddWays(layout, axis + 1, cuts, devices, ways);
    for (int64_t& entry : layout.tensor_map[0]) {
      if (entry != -1) continue;
      entry = static_cast<int64_t>(layout.device_matrix.size() - 1 - axis);
      AddWays(layout, axis + 1, cuts, devices, ways);
      entry = -1;
    }
    return;
  }
  const NaiveParts plain = PartsByDefinition(layout, cuts.size(), 0);
  ParameterLayout sharded = layout;
  if (!cuts.empty() && plain.cuts[0] != cuts[0]) {
    if (cuts[0] % plain.cuts[0] != 0) return;
    sharded.opt_weight_shard_size = cuts[0] / plain.cuts[0];
    sharded.opt_weight_shard_step = 1;
  }
  PartOfRank way;
  for (int64_t rank = 0; rank < devices; ++rank) {
    NaiveParts parts;
    try {
      parts = PartsByDefinition(sharded, cuts.size(), rank);
    } catch (const std::invalid_argument&) {
      return;  // no such layout
    }
    if (parts.cuts != cuts) return;
    way.push_back(NumberOf(parts));
  }
  ways.insert(std::move(way));
}

// Returns all that the ranks might hold of a parameter that is cut so, where each dimension is cut
// over one device axis and the first by optimizer sharding, too.
const std::set<PartOfRank>& WaysToHold(const std::vector<int64_t>& cuts, int64_t devices) {
  static std::map<std::pair<std::vector<int64_t>, int64_t>, std::set<PartOfRank>> known;
  const auto [ways, is_new] = known.try_emplace({cuts, devices});
  for (const auto& matrix : is_new ? MatricesOf(devices) : std::vector<std::vector<int64_t>>()) {
    ParameterLayout layout;
    layout.device_matrix = matrix;
    layout.tensor_map = {std::vector<int64_t>(cuts.size(), -1)};
    AddWays(layout, 0, cuts, devices, ways->second);
  }
  return ways->second;
}

// What can be told of a parameter from replicas alone.
struct Told {
  size_t ways = 0;     // that ranks may hold these shards
  size_t results = 0;  // different full tensors that these give
};

Told ToldByReplicas(const SpecParameter& parameter, int64_t devices) {
  std::vector<std::string> shards;
  for (int64_t rank = 0; rank < devices; ++rank) {
    shards.push_back(parameter.Shard(rank).content);
  }
  Told told;
  std::set<std::map<size_t, std::string>> results;
  const auto cuts = parameter.Parts(0).cuts;
  for (const PartOfRank& way : WaysToHold(cuts, devices)) {
    std::map<size_t, std::string> result;
    bool agrees = true;
    for (size_t rank = 0; rank < way.size(); ++rank) {
      agrees &= result.emplace(way[rank], shards[rank]).first->second == shards[rank];
    }
    if (!agrees) continue;
    ++told.ways;
    results.insert(std::move(result));
  }
  told.results = results.size();
  return told;
}

bool HasEqualParts(const SpecParameter& parameter, int64_t devices) {
  std::map<size_t, std::string> parts;
  for (int64_t rank = 0; rank < devices; ++rank) {
    parts.emplace(NumberOf(parameter.Parts(rank)), parameter.Shard(rank).content);
  }
  std::set<std::string> contents;
  for (const auto& [part, content] : parts) contents.insert(content);
  return contents.size() < parts.size();
}

bool IsNamedOpen(const StrategyReport& report, const std::string& name) {
  return std::any_of(report.warnings.begin(), report.warnings.end(), [&](const auto& warning) {
    return warning.code == WarningCode::kAmbiguousLayouts &&
           warning.message.find('"' + name + '"') != std::string::npos;
  });
}

bool IsRefused(const Status& status, const std::string& name) {
  return status.code() == StatusCode::kMismatch &&
         status.message().find("\n  \"" + name + "\": ") != std::string::npos;
}

RC_GTEST_PROP(StrategyInferenceProperty, RanksHoldWhatTheSpecificationSays, ()) {
  const SpecModel model = AnySpecModel();
  const InferredFolder folder(model);
  for (int64_t rank = 0; rank < model.ranks(); ++rank) {
    RC_ASSERT(InferredFolder::ByName(folder.Target(rank)) ==
              InferredFolder::ByName(model.TensorsOf(rank)));
  }
}

// Each rank's box is the one of the specification wherever no two parts have the same bytes.
RC_GTEST_PROP(StrategyInferenceProperty, TheSameValuesTellEveryBox, ()) {
  const SpecModel model = AnySpecModel();
  InferredFolder folder(model);
  const auto report = folder.Infer(model.FullTensors());
  if (!report.ok()) RC_FAIL(report.status().message());
  RC_ASSERT(report->stages == static_cast<int64_t>(model.stages.size()));
  const auto layouts = folder.Inferred();
  for (size_t s = 0; s < model.stages.size(); ++s) {
    for (const SpecParameter& parameter : model.stages[s]) {
      const std::string& name = parameter.full.name;
      const bool equal = HasEqualParts(parameter, model.devices);
      RC_ASSERT(equal || !IsNamedOpen(*report, name));
      const auto found = layouts.find({static_cast<int64_t>(s), name});
      RC_ASSERT(found != layouts.end());
      for (int64_t rank = 0; rank < model.devices && !equal; ++rank) {
        RC_ASSERT(PartsByDefinition(found->second, parameter.full.shape.size(), rank) ==
                  parameter.Parts(rank));
      }
    }
  }
  RC_ASSERT(folder.Back() == InferredFolder::ByName(model.FullTensors()));
}

// A refusal names parameters of which replicas tell too little; a strategy gives the tensors again.
RC_GTEST_PROP(StrategyInferenceProperty, OtherValuesTellWhatReplicasDo, ()) {
  const SpecModel model = AnySpecModel();
  InferredFolder folder(model);
  std::vector<TestTensor> reference;
  for (const TestTensor& tensor : model.FullTensors()) {
    if (SpecModel::IsCopy(tensor.name) && PickBool()) continue;
    reference.push_back(MakeTensor(tensor.name, tensor.dtype, tensor.shape, 1));
  }
  const auto report = folder.Infer(reference);
  bool refused = false;  // a stage, at which inference ends
  for (const auto& stage : model.stages) {
    for (const SpecParameter& parameter : stage) {
      const std::string& name = parameter.full.name;
      const Told told = ToldByReplicas(parameter, model.devices);
      const bool is_copy = SpecModel::IsCopy(name);
      const bool is_refused = IsRefused(report.status(), name);
      refused |= is_refused;
      RC_ASSERT((is_refused ? told.results > 1 : told.results == 1 || is_copy));
      if (report.ok() && !is_copy) RC_ASSERT(IsNamedOpen(*report, name) == (told.ways > 1));
    }
    if (refused) break;
  }
  RC_ASSERT(report.ok() != refused);
  if (report.ok()) RC_ASSERT(folder.Back() == InferredFolder::ByName(model.FullTensors()));
}

}  // namespace
}  // namespace reshard::strategy_inference_property_test
