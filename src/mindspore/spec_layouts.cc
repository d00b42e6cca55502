#include "src/mindspore/spec_layouts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "reshard/parameters.h"
#include "reshard/strategy.h"
#include "src/base/checked.h"
#include "src/base/glob_list.h"
#include "src/base/json_reader.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"
#include "src/mindspore/optimizer_copy.h"

namespace reshard {
namespace {

std::vector<int64_t> CutsOf(const SpecEntry& entry, size_t dims) {
  return entry.cuts ? *entry.cuts : std::vector<int64_t>(dims, 1);
}

std::vector<std::string> PatternsOf(const SpecStage& stage) {
  std::vector<std::string> patterns;
  patterns.reserve(stage.entries.size());
  for (const SpecEntry& entry : stage.entries) patterns.push_back(entry.parameter);
  return patterns;
}

// Returns the reason why the tensor cannot be cut so, or no value.
std::optional<std::string> Misfit(const SpecEntry& entry, const Shape& shape) {
  const std::vector<int64_t> cuts = CutsOf(entry, shape.size());
  if (cuts.size() != shape.size()) {
    return fmt::format("{} cuts for its {} dimensions", cuts.size(), shape.size());
  }
  if (shape.empty() && entry.optimizer_shards > 1) {
    return fmt::format("optimizer_shards {}, but a scalar has no first dimension",
                       entry.optimizer_shards);
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t parts = cuts[d] * (d == 0 ? entry.optimizer_shards : 1);
    if (shape[d] % parts != 0) {
      return fmt::format("dimension {} of {} elements cannot be cut into {} equal parts", d,
                         shape[d], parts);
    }
  }
  return std::nullopt;
}

using ShapesByName = std::unordered_map<std::string_view, const Shape*>;

// Applies the entries for a stage to one parameter after the other.
class StageCutter {
 public:
  StageCutter(const StrategySpec& spec, const SpecStage& stage, const ShapesByName& shapes)
      : spec_(spec),
        stage_(stage),
        shapes_(shapes),
        patterns_(PatternsOf(stage)),
        used_(stage.entries.size()) {}

  // Returns whether an entry matches.
  bool Add(const FullTensor& tensor) {
    const std::optional<size_t> number = FirstMatch(tensor);
    if (!number) return false;
    used_[*number] = true;
    const SpecEntry* const entry = &stage_.entries[*number];
    if (const auto misfit = Misfit(*entry, tensor.shape)) {
      misfits_.Add(fmt::format("{}: shape {}: {}: {}", Quote(tensor.name), ToString(tensor.shape),
                               entry->place, *misfit));
      return true;
    }
    layouts_.push_back(Strategy::Entry{
        tensor.name,
        LayoutOfCuts(spec_.devices, CutsOf(*entry, tensor.shape.size()), entry->optimizer_shards)});
    return true;
  }

  // Ends the stage. Errors: kMismatch.
  Result<LayoutTable> Finish(const std::string& checkpoint, std::vector<Warning>& warnings) {
    if (misfits_.count() > 0) {
      return MismatchError(
          fmt::format("{}: {} parameters of {} cannot be cut as it says; add an entry for them "
                      "before it (these shapes have to be full ones: is this one rank's file?):{}",
                      Escape(spec_.path), misfits_.count(), Escape(checkpoint), misfits_.Lines()));
    }
    if (layouts_.empty()) {
      return MismatchError(
          fmt::format("{}: expected an entry of stage {} to match a parameter of {}, found none",
                      Escape(spec_.path), stage_.number, Escape(checkpoint)));
    }
    for (size_t i = 0; i < used_.size(); ++i) {
      if (used_[i]) continue;
      const SpecEntry& entry = stage_.entries[i];
      warnings.push_back(
          {WarningCode::kUnusedPatterns,
           fmt::format("{}: {}: {} matches no parameter of {} that no entry before it matches",
                       Escape(spec_.path), entry.place, Quote(entry.parameter),
                       Escape(checkpoint))});
    }
    return std::move(layouts_);
  }

 private:
  // Returns the first entry that matches the name or, of an optimizer's copy, its parameter's.
  std::optional<size_t> FirstMatch(const FullTensor& tensor) const {
    const std::optional<size_t> own = patterns_.FirstMatch(tensor.name);
    const auto parameter = ParameterOfCopy(tensor.name, tensor.shape, [&](std::string_view name) {
      const auto found = shapes_.find(name);
      return found == shapes_.end() ? nullptr : found->second;
    });
    const auto of_parameter = parameter ? patterns_.FirstMatch(*parameter) : std::nullopt;
    return own && of_parameter ? std::min(own, of_parameter) : (own ? own : of_parameter);
  }

  const StrategySpec& spec_;
  const SpecStage& stage_;
  const ShapesByName& shapes_;  // of all parameters of the checkpoint
  const GlobList patterns_;
  LayoutTable layouts_;
  std::vector<bool> used_;  // as entries
  FirstFew misfits_;
};

Result<Strategy> StatedStrategy(const StrategySpec& spec, std::vector<LayoutTable> stages) {
  return StrategyTables::FromLayouts(std::move(stages), spec.is_pipeline,
                                     spec.stages.front().number);
}

// Reads entries as they come, and checks them against the devices once all keys have been read.
// Depths: 1 is the file's object; entries lie in a list, and in one of each stage within a list of
// stages.
class SpecReader final : public JsonReader {
 public:
  explicit SpecReader(const std::string& path)
      : JsonReader(path, StatusCode::kInvalidArgument), path_(path) {}

  Result<StrategySpec> Finish() && {
    spec_.path = path_;
    if (!keys_.contains("devices")) {
      return Bad("", "the key \"devices\"", "an object without it");
    }
    const int64_t most = kMaxRanks / spec_.devices;
    spec_.is_pipeline = keys_.contains("stages");
    if (keys_.contains("parameters") == spec_.is_pipeline) {
      return Bad("", "either \"parameters\" or \"stages\"", spec_.is_pipeline ? "both" : "neither");
    }
    if (spec_.is_pipeline && keys_.contains("stage")) {
      return Bad("stage", "no such key beside \"stages\", which are 0, 1 and so on", "it");
    }
    const auto stages = static_cast<int64_t>(spec_.stages.size());
    if (stages == 0 || stages > most) {
      return Bad("stages", fmt::format("a list of 1 to {} lists of entries", most),
                 fmt::format("a list of {}", stages));
    }
    if (stage_ >= most) {
      return Bad("stage", fmt::format("an integer from 0 to {}", most - 1),
                 fmt::format("{}", stage_));
    }
    if (!spec_.is_pipeline) spec_.stages[0].number = stage_;
    for (const SpecStage& stage : spec_.stages) {
      if (stage.entries.empty()) {
        return Bad(spec_.is_pipeline ? fmt::format("stages[{}]", stage.number) : "parameters",
                   kEntries, "a list of 0");
      }
      for (const SpecEntry& entry : stage.entries) {
        RESHARD_RETURN_IF_ERROR(CheckEntry(spec_, entry));
      }
    }
    return std::move(spec_);
  }

 private:
  static constexpr std::array<std::string_view, 4> kSpecKeys = {"devices", "stage", "parameters",
                                                                "stages"};
  static constexpr std::array<std::string_view, 3> kEntryKeys = {"parameter", "cuts",
                                                                 "optimizer_shards"};
  static constexpr std::string_view kEntries = "a list of entries, one at least";

  Status OnValue(JsonValue& value) override {
    if (depth() == 1 && Key(1) == "devices") return SetNumber(value, 1, kMaxRanks, spec_.devices);
    if (depth() == 1 && Key(1) == "stage") {
      return SetNumber(value, 0, kMaxRanks / spec_.devices - 1, stage_);
    }
    if (depth() <= entries_) return Other(value.Shown());
    if (depth() > entries_ + 1) return AddCut(value);
    if (Key(depth()) == "optimizer_shards") {
      return SetNumber(value, 1, MostParts(), entry_.optimizer_shards);
    }
    const bool is_name = Key(depth()) == "parameter" && value.kind == JsonValue::Kind::kString &&
                         !value.text->empty();
    if (!is_name) return Other(value.Shown());
    entry_.parameter = std::move(*value.text);
    return {};
  }

  Status OnOpen(bool is_list) override {
    const bool wants_list =
        depth() > 0 && (depth() < entries_ || (depth() == entries_ + 1 && Key(depth()) == "cuts"));
    const bool wants_object = depth() == 0 || depth() == entries_;
    if (is_list ? !wants_list : !wants_object) return Other(is_list ? "a list" : "an object");
    if (depth() == 0) return {};
    if (depth() + 1 == entries_) {
      spec_.stages.push_back({static_cast<int64_t>(spec_.stages.size()), {}});
      patterns_.clear();
    } else if (depth() > entries_) {
      entry_.cuts.emplace();
    } else if (depth() == entries_) {
      entry_ = {};
      entry_.place = Place(depth());
      entry_keys_.clear();
    }
    return {};
  }

  Status OnClose(bool is_list) override {
    if (is_list || depth() == 0) return {};
    if (entry_.parameter.empty()) {
      return Bad(entry_.place, "the key \"parameter\"", "an object without it");
    }
    if (!patterns_.insert(entry_.parameter).second) {
      return Bad(entry_.place + ".parameter", "each name or pattern once in a stage",
                 Quote(entry_.parameter) + " again");
    }
    spec_.stages.back().entries.push_back(std::move(entry_));
    return {};
  }

  Status OnKey(const std::string& key) override {
    const bool of_entry = depth() > 1;
    const auto known = of_entry ? std::span<const std::string_view>(kEntryKeys) : kSpecKeys;
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return Bad(Place(depth() - 1), fmt::format("only the keys {}", fmt::join(known, ", ")),
                 Quote(key));
    }
    if (!(of_entry ? entry_keys_ : keys_).insert(key).second) {
      return Error(fmt::format("the key {} occurs twice in one object", Quote(key)));
    }
    if (!of_entry) entries_ = key == "parameters" ? 2 : key == "stages" ? 3 : 0;
    return {};
  }

  // The devices may stand behind the entries.
  int64_t MostParts() const { return keys_.contains("devices") ? spec_.devices : kMaxRanks; }

  Status SetNumber(const JsonValue& value, int64_t least, int64_t most, int64_t& number) const {
    const std::optional<int64_t> found = value.Integer();
    if (!found || *found < least || *found > most) {
      return Bad(Place(depth()), fmt::format("an integer from {} to {}", least, most),
                 value.Shown());
    }
    number = *found;
    return {};
  }

  Status AddCut(const JsonValue& value) {
    if (entry_.cuts->size() == kMaxDims) {
      return Bad(Place(depth() - 1), ExpectedAt(depth() - 1), "more");
    }
    return SetNumber(value, 1, MostParts(), entry_.cuts->emplace_back());
  }

  // The expected value at the present place, at this depth.
  std::string ExpectedAt(size_t depth) const {
    if (depth == 0 || depth == entries_) return "an object";
    const bool of_entry = depth > 1 && depth > entries_;
    const std::string& key = Key(of_entry ? entries_ + 1 : 1);
    if (key == "parameter") return "the name of a parameter, or a pattern";
    if (key == "cuts" && depth == entries_ + 1) {
      return fmt::format("a list of at most {} integers, one for each dimension", kMaxDims);
    }
    if (of_entry) return fmt::format("an integer from 1 to {}", MostParts());
    if (key == "devices") return fmt::format("an integer from 1 to {}", kMaxRanks);
    if (key == "stage")
      return fmt::format("an integer from 0 to {}", kMaxRanks / spec_.devices - 1);
    if (depth + 1 == entries_) return std::string(kEntries);
    return fmt::format("a list of 1 to {} lists of entries", kMaxRanks / spec_.devices);
  }

  // As in "stages[0][2].cuts".
  std::string Place(size_t depth) const {
    std::string place;
    for (size_t i = 1; i <= depth; ++i) {
      const Level& level = LevelAt(i);
      place += level.is_list ? fmt::format("[{}]", level.element)
                             : (place.empty() ? "" : ".") + level.key;
    }
    return place;
  }

  Status Other(std::string_view found) const {
    return Bad(Place(depth()), ExpectedAt(depth()), found);
  }

  Status Bad(const std::string& place, std::string_view expected, std::string_view found) const {
    return Error(fmt::format("{}{}expected {}, found {}", place, place.empty() ? "" : ": ",
                             expected, found));
  }

  const std::string& path_;
  StrategySpec spec_;
  int64_t stage_ = 0;
  std::set<std::string> keys_;
  size_t entries_ = 0;  // depth of the list of entries under this key; 0 if there is none
  // Of the stage and the entry at hand.
  std::set<std::string> patterns_;
  SpecEntry entry_;
  std::set<std::string> entry_keys_;
};

}  // namespace

ParameterLayout LayoutOfCuts(int64_t devices, const std::vector<int64_t>& cuts,
                             int64_t optimizer_shards) {
  int64_t parts = 1;
  int64_t axis = 0;  // counted from the right; the axes of the cuts follow that of the replicas
  for (const int64_t cut : cuts) {
    parts *= cut;
    if (cut > 1) ++axis;
  }
  ParameterLayout layout;
  if (parts < devices || devices == 1) layout.device_matrix.push_back(devices / parts);
  layout.tensor_map.emplace_back();
  for (const int64_t cut : cuts) {
    if (cut > 1) layout.device_matrix.push_back(cut);
    layout.tensor_map[0].push_back(cut > 1 ? --axis : -1);
  }
  if (optimizer_shards > 1) {
    layout.opt_weight_shard_step = parts;  // ranks from a replica to the next
    layout.opt_weight_shard_size = optimizer_shards;
  }
  return layout;
}

Status CheckEntry(const StrategySpec& spec, const SpecEntry& entry) {
  std::optional<int64_t> parts = 1;
  if (entry.cuts) {
    for (const int64_t cut : *entry.cuts) parts = parts ? CheckedMul(*parts, cut) : parts;
    if (!parts || spec.devices % *parts != 0) {
      return InvalidArgumentError(fmt::format(
          "{}: {}.cuts: expected cuts with a product that divides the {} devices, found {}",
          Escape(spec.path), entry.place, spec.devices, *entry.cuts));
    }
  }
  const int64_t replicas = spec.devices / *parts;
  if (replicas % entry.optimizer_shards != 0) {
    return InvalidArgumentError(fmt::format(
        "{}: {}.optimizer_shards: expected a divisor of the {} replicas ({} devices, {} parts), "
        "found {}",
        Escape(spec.path), entry.place, replicas, spec.devices, *parts, entry.optimizer_shards));
  }
  if (entry.optimizer_shards > 1 && entry.cuts && entry.cuts->empty()) {
    return InvalidArgumentError(
        fmt::format("{}: {}.optimizer_shards: expected 1 for a scalar (no cuts), found {}",
                    Escape(spec.path), entry.place, entry.optimizer_shards));
  }
  return {};
}

Result<MadeStrategy> LayoutsOfTensors(const StrategySpec& spec, const std::string& checkpoint,
                                      const std::vector<FullTensor>& parameters) {
  std::vector<LayoutTable> stages;
  std::vector<Warning> warnings;
  std::vector<bool> matched(parameters.size());
  ShapesByName shapes;
  for (const FullTensor& tensor : parameters) shapes.emplace(tensor.name, &tensor.shape);
  for (const SpecStage& stage : spec.stages) {
    StageCutter cutter(spec, stage, shapes);
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (cutter.Add(parameters[i])) matched[i] = true;
    }
    RESHARD_ASSIGN_OR_RETURN(stages.emplace_back(), cutter.Finish(checkpoint, warnings));
  }
  std::vector<std::string> left_out;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!matched[i]) left_out.push_back(Quote(parameters[i].name));
  }
  std::vector<std::string> notes;
  if (!left_out.empty()) {
    notes.push_back(
        fmt::format("{} of {} parameters match no entry and get no layout, so that conversions "
                    "copy them as they stand: {}",
                    left_out.size(), parameters.size(), FirstOf(left_out)));
  }
  RESHARD_ASSIGN_OR_RETURN(const Strategy strategy, StatedStrategy(spec, std::move(stages)));
  return MadeStrategy{strategy, std::move(warnings), std::move(notes)};
}

Result<MadeStrategy> LayoutsOfNames(const StrategySpec& spec) {
  std::vector<LayoutTable> stages;
  for (const SpecStage& stage : spec.stages) {
    LayoutTable layouts;
    for (const SpecEntry& entry : stage.entries) {
      const auto error = [&](std::string_view what) {
        return InvalidArgumentError(
            fmt::format("{}: {}.{}; `checkpoint` tells names and dimensions", Escape(spec.path),
                        entry.place, what));
      };
      if (entry.parameter.find_first_of("*?[\\") != std::string::npos) {
        return error(fmt::format(
            "parameter: expected a name, as no checkpoint is given, found the pattern {}",
            Quote(entry.parameter)));
      }
      if (!entry.cuts) {
        return error(
            "cuts: expected the cuts of each dimension, as no checkpoint is given, found none");
      }
      layouts.push_back(Strategy::Entry{
          entry.parameter, LayoutOfCuts(spec.devices, *entry.cuts, entry.optimizer_shards)});
    }
    stages.push_back(std::move(layouts));
  }
  RESHARD_ASSIGN_OR_RETURN(const Strategy strategy, StatedStrategy(spec, std::move(stages)));
  return MadeStrategy{strategy,
                      {},
                      {"without a checkpoint (`checkpoint`), only parameters that entries name get "
                       "layouts; name an optimizer's copies too"}};
}

Result<StrategySpec> ParseStrategySpec(const std::string& path, std::string_view bytes) {
  SpecReader reader(path);
  RESHARD_RETURN_IF_ERROR(reader.Read(bytes));
  return std::move(reader).Finish();
}

Result<StrategySpec> ReadStrategySpec(const std::string& path) {
  RESHARD_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> file, Storage::Of(path).Open(path));
  if (file->size() > kMaxSpecBytes) {
    return InvalidArgumentError(fmt::format(
        "{}: expected the specification of a strategy, of at most {}, found a file of {}",
        Escape(path), FormatBytes(kMaxSpecBytes), FormatBytes(file->size())));
  }
  std::string bytes(file->size(), '\0');
  RESHARD_RETURN_IF_ERROR(file->ReadAt(0, std::as_writable_bytes(std::span(bytes))));
  return ParseStrategySpec(path, bytes);
}

}  // namespace reshard
