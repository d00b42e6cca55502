// Specifications of strategies against a tree of the same JSON and what docs/guide/strategies.md
// says.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/mindspore/spec_layouts.h"
#include "src/mindspore/strategy_codec.h"
#include "src/mindspore/strategy_writer.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/unique_json.h"
#include "tests/support/naive_reshard.h"

namespace reshard {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMostDevices = 1'048'576;  // of all stages
constexpr size_t kMostDims = 64;
// Beyond these the definition takes too long.
constexpr int64_t kManyDevices = 64;
constexpr size_t kManyEntries = 32;

bool HasOnly(const Json& object, const std::set<std::string>& keys) {
  return object.is_object() &&
         std::all_of(object.items().begin(), object.items().end(),
                     [&](const auto& item) { return keys.contains(item.key()); });
}

// The integer at `key`, `missing` where there is none, nothing beyond [least, most].
std::optional<uint64_t> Integer(const Json& object, const char* key, uint64_t missing,
                                uint64_t least, uint64_t most) {
  if (!object.contains(key)) return missing;
  const Json& number = object[key];
  if (!number.is_number_unsigned()) return std::nullopt;
  const auto value = number.get<uint64_t>();
  return value >= least && value <= most ? std::optional(value) : std::nullopt;
}

// The string at `key`; empty where there is none.
std::string StringAt(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<SpecEntry> Entry(const Json& json, const std::string& place, uint64_t devices) {
  if (!HasOnly(json, {"parameter", "cuts", "optimizer_shards"})) return std::nullopt;
  const std::string parameter = StringAt(json, "parameter");
  if (parameter.empty()) return std::nullopt;
  SpecEntry entry{place, parameter, std::nullopt, 1};
  uint64_t parts = 1;
  if (json.contains("cuts")) {
    const Json& cuts = json["cuts"];
    if (!cuts.is_array() || cuts.size() > kMostDims) return std::nullopt;
    entry.cuts.emplace();
    for (const Json& cut : cuts) {
      if (!cut.is_number_unsigned()) return std::nullopt;
      const auto number = cut.get<uint64_t>();
      if (number == 0 || number > devices || devices % (parts *= number) != 0) return std::nullopt;
      entry.cuts->push_back(static_cast<int64_t>(number));
    }
  }
  const auto shards = Integer(json, "optimizer_shards", 1, 1, devices / parts);
  if (!shards || devices / parts % *shards != 0) return std::nullopt;
  if (*shards > 1 && entry.cuts && entry.cuts->empty()) return std::nullopt;  // a scalar
  entry.optimizer_shards = static_cast<int64_t>(*shards);
  return entry;
}

std::optional<SpecStage> Stage(const Json& json, const std::string& place, uint64_t number,
                               uint64_t devices) {
  if (!json.is_array() || json.empty()) return std::nullopt;
  SpecStage stage{static_cast<int64_t>(number), {}};
  std::set<std::string> patterns;
  for (size_t i = 0; i < json.size(); ++i) {
    auto entry = Entry(json[i], fmt::format("{}[{}]", place, i), devices);
    if (!entry || !patterns.insert(entry->parameter).second) return std::nullopt;
    stage.entries.push_back(*std::move(entry));
  }
  return stage;
}

std::optional<StrategySpec> ExpectedSpec(std::string_view bytes) {
  const auto json = UniqueJson(bytes);
  if (!json || !HasOnly(*json, {"devices", "stage", "parameters", "stages"})) return std::nullopt;
  const auto devices = Integer(*json, "devices", 0, 1, kMostDevices);
  if (!devices || *devices == 0) return std::nullopt;
  StrategySpec spec{"spec.json", static_cast<int64_t>(*devices), json->contains("stages"), {}};
  if (json->contains("parameters") == spec.is_pipeline) return std::nullopt;
  if (!spec.is_pipeline) {
    const auto number = Integer(*json, "stage", 0, 0, kMostDevices / *devices - 1);
    const auto stage =
        number ? Stage((*json)["parameters"], "parameters", *number, *devices) : std::nullopt;
    if (!stage) return std::nullopt;
    spec.stages.push_back(*stage);
    return spec;
  }
  const Json& stages = (*json)["stages"];
  if (json->contains("stage") || !stages.is_array() || stages.empty()) return std::nullopt;
  if (stages.size() * *devices > kMostDevices) return std::nullopt;
  for (size_t s = 0; s < stages.size(); ++s) {
    const auto stage = Stage(stages[s], fmt::format("stages[{}]", s), s, *devices);
    if (!stage) return std::nullopt;
    spec.stages.push_back(*stage);
  }
  return spec;
}

std::string Difference(const StrategySpec& expected, const StrategySpec& found) {
  if (found.path != expected.path || found.devices != expected.devices ||
      found.is_pipeline != expected.is_pipeline || found.stages.size() != expected.stages.size()) {
    return "another kind of strategy";
  }
  for (size_t s = 0; s < expected.stages.size(); ++s) {
    const bool same =
        std::equal(expected.stages[s].entries.begin(), expected.stages[s].entries.end(),
                   found.stages[s].entries.begin(), found.stages[s].entries.end(),
                   [](const SpecEntry& a, const SpecEntry& b) {
                     return a.place == b.place && a.parameter == b.parameter && a.cuts == b.cuts &&
                            a.optimizer_shards == b.optimizer_shards;
                   });
    if (!same || found.stages[s].number != expected.stages[s].number) return "another stage";
  }
  return "";
}

std::string SpecFault(const StrategySpec& spec) {
  if (spec.devices > kManyDevices) return "";
  for (const SpecStage& stage : spec.stages) {
    for (size_t i = 0; i < std::min(stage.entries.size(), kManyEntries); ++i) {
      const SpecEntry& entry = stage.entries[i];
      if (!entry.cuts) continue;
      const ParameterLayout layout =
          LayoutOfCuts(spec.devices, *entry.cuts, entry.optimizer_shards);
      for (int64_t rank = 0; rank < spec.devices; ++rank) {
        if (PartsByDefinition(layout, entry.cuts->size(), rank) !=
            PartsBySpecification(*entry.cuts, entry.optimizer_shards, rank)) {
          return fmt::format("rank {} holds another part of {}", rank, entry.place);
        }
      }
    }
  }
  return "";
}

// What is written is a strategy that says the same.
std::string WrittenFault(const StrategySpec& spec, const Strategy& stated) {
  for (const StrategyEncoding encoding : {StrategyEncoding::kProtobuf, StrategyEncoding::kJson}) {
    const auto bytes = EncodeStrategy(stated, encoding);
    if (!bytes.ok()) {
      std::string fault = RefusalFault(bytes.status());
      if (!fault.empty()) return fault;
      continue;
    }
    auto file = ParseStrategy("made", *bytes);
    if (!file.ok()) return "made, it is not read: " + file.status().message();
    const auto strategy = StrategyTables::FromFile(*std::move(file));
    if (!strategy.ok()) return "made, it is refused: " + strategy.status().message();
    if (strategy->is_pipeline() != spec.is_pipeline ||
        strategy->devices_per_stage() != spec.devices ||
        strategy->stages().size() != stated.stages().size() ||
        (!spec.is_pipeline && strategy->own_stage() != spec.stages[0].number)) {
      return "made, it is of other stages";
    }
    for (size_t s = 0; s < stated.stages().size(); ++s) {
      if (!std::equal(strategy->stages()[s].begin(), strategy->stages()[s].end(),
                      stated.stages()[s].begin(), stated.stages()[s].end())) {
        return "made, it says something else";
      }
    }
  }
  return "";
}

std::string NamesFault(const StrategySpec& spec) {
  bool named = true;
  for (const SpecStage& stage : spec.stages) {
    for (const SpecEntry& entry : stage.entries) {
      named &= entry.cuts && entry.parameter.find_first_of("*?[\\") == std::string::npos;
    }
  }
  const auto made = LayoutsOfNames(spec);
  const bool refuses_entry = made.status().code() == StatusCode::kInvalidArgument;
  if (refuses_entry == named) return "entries without a checkpoint are judged wrongly";
  if (refuses_entry) return MessageFault(made.status());
  return made.ok() ? WrittenFault(spec, made->strategy) : RefusalFault(made.status());
}

std::string TensorsFault(const StrategySpec& spec) {
  const std::vector<FullTensor> tensors = {
      {"layer.w", {16, 12}}, {"layer.b", {12}}, {"adam_m.layer.w", {16, 12}}, {"step", {}}};
  const auto made = LayoutsOfTensors(spec, "full.ckpt", tensors);
  if (made.ok()) return WrittenFault(spec, made->strategy);
  std::string message = made.status().message();  // a list has lines
  std::replace(message.begin(), message.end(), '\n', ' ');
  return RefusalFault(Status(made.status().code(), message));
}

}  // namespace

std::string FuzzStrategySpec(std::string_view bytes) {
  const auto expected = ExpectedSpec(bytes);
  const auto found = ParseStrategySpec("spec.json", bytes);
  if (!found.ok()) {
    std::string fault = RefusalFault(found.status(), "spec.json", StatusCode::kInvalidArgument);
    if (!fault.empty()) return fault;
    return expected ? "refused: " + found.status().message() : "";
  }
  if (!expected) return "what is no specification is taken";
  std::string fault = Difference(*expected, *found);
  if (fault.empty()) fault = SpecFault(*found);
  if (fault.empty()) fault = NamesFault(*found);
  return fault.empty() ? TensorsFault(*found) : fault;
}

}  // namespace reshard
