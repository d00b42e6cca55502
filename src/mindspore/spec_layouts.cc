#include "src/mindspore/spec_layouts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "reshard/file_use.h"
#include "reshard/parameters.h"
#include "reshard/strategy.h"
#include "src/base/checked.h"
#include "src/base/glob_list.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/base/zero_byte.h"
#include "src/io/source_files.h"
#include "src/io/storage.h"
#include "src/mindspore/optimizer_copy.h"
#include "src/mindspore/strategy_writer.h"
#include "src/os/write_file.h"
#include "src/source/indexed_file.h"

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

// Returns why the tensor cannot be cut so, or nothing.
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

// Applies the entries of one stage to one parameter after the other.
class StageCutter {
 public:
  StageCutter(const StrategySpec& spec, const SpecStage& stage, const ShapesByName& shapes)
      : spec_(spec),
        stage_(stage),
        shapes_(shapes),
        patterns_(PatternsOf(stage)),
        used_(stage.entries.size()) {
    layouts_.stage = stage.number;
  }

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
    layouts_.layouts.push_back(
        {tensor.name, LayoutOfCuts(spec_.devices, CutsOf(*entry, tensor.shape.size()),
                                   entry->optimizer_shards)});
    return true;
  }

  // Ends the stage. Errors: kMismatch.
  Status Finish(const std::string& checkpoint, SpecLayouts& out) {
    if (misfits_.count() > 0) {
      return MismatchError(
          fmt::format("{}: {} parameters of {} cannot be cut as it says; add an entry for them "
                      "before it (these shapes have to be full ones: is this one rank's file?):{}",
                      Escape(spec_.path), misfits_.count(), Escape(checkpoint), misfits_.Lines()));
    }
    if (layouts_.layouts.empty()) {
      return MismatchError(
          fmt::format("{}: expected an entry of stage {} to match a parameter of {}, found none",
                      Escape(spec_.path), stage_.number, Escape(checkpoint)));
    }
    for (size_t i = 0; i < used_.size(); ++i) {
      if (used_[i]) continue;
      const SpecEntry& entry = stage_.entries[i];
      out.warnings.push_back(
          {WarningCode::kUnusedPatterns,
           fmt::format("{}: {}: {} matches no parameter of {} that no entry before it matches",
                       Escape(spec_.path), entry.place, Quote(entry.parameter),
                       Escape(checkpoint))});
    }
    out.stages.push_back(std::move(layouts_));
    return {};
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
  StageLayouts layouts_;
  std::vector<bool> used_;  // as entries
  FirstFew misfits_;
};

using Json = nlohmann::json;

// Checks what a tree of the file no longer shows: that it is JSON and where it stops being so, that
// no key comes twice in an object; and that it is not nested deeper than the schema.
class SyntaxCheck : public Json::json_sax_t {
 public:
  SyntaxCheck(const std::string& path, uint64_t size) : path_(path), size_(size) {}

  const Status& status() const { return status_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool start_object(size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool key(std::string& key) override {
    return open_.back().insert(key).second ||
           Fail(fmt::format("the key {} occurs twice in one object", Quote(key)));
  }
  bool parse_error(size_t position, const std::string& token, const Json::exception&) override {
    return Fail(position > size_ ? fmt::format("expected JSON, found its end at byte {}", size_)
                                 : fmt::format("expected JSON, found an error at byte {}, near {}",
                                               position, Quote(token)));
  }

 private:
  static constexpr size_t kDeepest = 5;  // {"stages": [[{"cuts": []}]]}

  bool Open() {
    open_.emplace_back();
    return open_.size() <= kDeepest || Fail("is nested deeper than a specification is");
  }
  bool Close() {
    open_.pop_back();
    return true;
  }
  bool Fail(std::string_view what) {
    status_ = InvalidArgumentError(fmt::format("{}: {}", Escape(path_), what));
    return false;
  }

  const std::string& path_;
  const uint64_t size_;
  Status status_;
  std::vector<std::set<std::string>> open_;  // keys of the open objects; arrays have none
};

std::string Found(const Json& json) {
  if (json.is_object()) return "an object";
  if (json.is_array()) return fmt::format("a list of {}", json.size());
  if (json.is_string()) return Quote(json.get_ref<const std::string&>());
  return json.dump();
}

// Reads the tree of the file; places are as in "stages[0][2].cuts".
class SpecReader {
 public:
  explicit SpecReader(const std::string& path) { spec_.path = path; }

  Result<StrategySpec> Read(const Json& json) {
    RESHARD_RETURN_IF_ERROR(
        CheckObject(json, "", "devices", {"devices", "stage", "parameters", "stages"}));
    RESHARD_ASSIGN_OR_RETURN(spec_.devices, Number(json["devices"], "devices", 1, kMaxRanks));
    const int64_t most = kMaxRanks / spec_.devices;
    spec_.is_pipeline = json.contains("stages");
    if (json.contains("parameters") == spec_.is_pipeline) {
      return Bad("", "either \"parameters\" or \"stages\"", spec_.is_pipeline ? "both" : "neither");
    }
    if (!spec_.is_pipeline) {
      int64_t number = 0;
      if (json.contains("stage")) {
        RESHARD_ASSIGN_OR_RETURN(number, Number(json["stage"], "stage", 0, most - 1));
      }
      RESHARD_RETURN_IF_ERROR(ReadStage(json["parameters"], "parameters", number));
      return std::move(spec_);
    }
    if (json.contains("stage")) {
      return Bad("stage", "no such key beside \"stages\", which are 0, 1 and so on", "it");
    }
    const Json& stages = json["stages"];
    if (!stages.is_array() || stages.empty() || stages.size() > static_cast<size_t>(most)) {
      return Bad("stages", fmt::format("a list of 1 to {} lists of entries", most), Found(stages));
    }
    for (size_t i = 0; i < stages.size(); ++i) {
      RESHARD_RETURN_IF_ERROR(
          ReadStage(stages[i], fmt::format("stages[{}]", i), static_cast<int64_t>(i)));
    }
    return std::move(spec_);
  }

 private:
  Status ReadStage(const Json& entries, const std::string& place, int64_t number) {
    if (!entries.is_array() || entries.empty()) {
      return Bad(place, "a list of entries, one at least", Found(entries));
    }
    SpecStage stage{number, {}};
    std::set<std::string> patterns;
    for (size_t i = 0; i < entries.size(); ++i) {
      RESHARD_ASSIGN_OR_RETURN(SpecEntry entry,
                               ReadEntry(entries[i], fmt::format("{}[{}]", place, i)));
      if (!patterns.insert(entry.parameter).second) {
        return Bad(entry.place + ".parameter", "each name or pattern once in a stage",
                   Quote(entry.parameter) + " again");
      }
      stage.entries.push_back(std::move(entry));
    }
    spec_.stages.push_back(std::move(stage));
    return {};
  }

  Result<SpecEntry> ReadEntry(const Json& json, const std::string& place) const {
    RESHARD_RETURN_IF_ERROR(
        CheckObject(json, place, "parameter", {"parameter", "cuts", "optimizer_shards"}));
    SpecEntry entry;
    entry.place = place;
    const Json& parameter = json["parameter"];
    if (!parameter.is_string() || parameter.get_ref<const std::string&>().empty()) {
      return Bad(place + ".parameter", "the name of a parameter, or a pattern", Found(parameter));
    }
    entry.parameter = parameter.get<std::string>();
    if (json.contains("cuts")) {
      RESHARD_ASSIGN_OR_RETURN(entry.cuts, Cuts(json["cuts"], place + ".cuts"));
    }
    if (json.contains("optimizer_shards")) {
      RESHARD_ASSIGN_OR_RETURN(
          entry.optimizer_shards,
          Number(json["optimizer_shards"], place + ".optimizer_shards", 1, spec_.devices));
    }
    RESHARD_RETURN_IF_ERROR(CheckEntry(spec_, entry));
    return entry;
  }

  Result<std::vector<int64_t>> Cuts(const Json& json, const std::string& place) const {
    if (!json.is_array() || json.size() > kMaxDims) {
      return Bad(place,
                 fmt::format("a list of at most {} integers, one for each dimension", kMaxDims),
                 Found(json));
    }
    std::vector<int64_t> cuts;
    for (size_t d = 0; d < json.size(); ++d) {
      RESHARD_ASSIGN_OR_RETURN(const int64_t cut,
                               Number(json[d], fmt::format("{}[{}]", place, d), 1, spec_.devices));
      cuts.push_back(cut);
    }
    return cuts;
  }

  Result<int64_t> Number(const Json& json, const std::string& place, int64_t least,
                         int64_t most) const {
    const bool fits = json.is_number_unsigned() && std::in_range<int64_t>(json.get<uint64_t>()) &&
                      json.get<int64_t>() >= least && json.get<int64_t>() <= most;
    if (!fits) return Bad(place, fmt::format("an integer from {} to {}", least, most), Found(json));
    return json.get<int64_t>();
  }

  Status CheckObject(const Json& json, const std::string& place, const char* needed,
                     const std::vector<std::string>& known) const {
    if (!json.is_object()) return Bad(place, "an object", Found(json));
    if (!json.contains(needed)) {
      return Bad(place, fmt::format("the key \"{}\"", needed), "an object without it");
    }
    for (const auto& [key, value] : json.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      return Bad(place, fmt::format("no other keys than {}", fmt::join(known, ", ")), Quote(key));
    }
    return {};
  }

  Status Bad(const std::string& place, std::string_view expected, std::string_view found) const {
    return InvalidArgumentError(fmt::format("{}: {}{}expected {}, found {}", Escape(spec_.path),
                                            place, place.empty() ? "" : ": ", expected, found));
  }

  StrategySpec spec_;
};

Result<StrategySpec> ReadSpec(const std::string& path) {
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

Result<std::vector<FullTensor>> TensorsOf(const std::string& path) {
  SourceFiles files(1);
  RESHARD_ASSIGN_OR_RETURN(const IndexedFile index, ReadFileTable(files, files.Add(path)));
  std::vector<FullTensor> tensors;
  for (const StoredArray& parameter : index.arrays()) {
    if (parameter.kind == ArrayKind::kTensor) {
      tensors.push_back({std::string(parameter.name), parameter.shape});
    }
  }
  return tensors;
}

Result<SpecLayouts> LayoutsOf(const StrategySpec& spec, const std::string& checkpoint) {
  if (checkpoint.empty()) return LayoutsOfNames(spec);
  RESHARD_ASSIGN_OR_RETURN(const std::vector<FullTensor> tensors, TensorsOf(checkpoint));
  return LayoutsOfTensors(spec, checkpoint, tensors);
}

}  // namespace

ParameterLayout LayoutOfCuts(int64_t devices, const std::vector<int64_t>& cuts,
                             int64_t optimizer_shards) {
  int64_t parts = 1;
  int64_t axis = 0;  // counted from the right; those of the cuts stand behind that of the replicas
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
      return InvalidArgumentError(
          fmt::format("{}: {}.cuts: expected cuts whose product divides the {} devices, found {}",
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

Result<SpecLayouts> LayoutsOfTensors(const StrategySpec& spec, const std::string& checkpoint,
                                     const std::vector<FullTensor>& parameters) {
  SpecLayouts out;
  std::vector<bool> matched(parameters.size());
  ShapesByName shapes;
  for (const FullTensor& tensor : parameters) shapes.emplace(tensor.name, &tensor.shape);
  for (const SpecStage& stage : spec.stages) {
    StageCutter cutter(spec, stage, shapes);
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (cutter.Add(parameters[i])) matched[i] = true;
    }
    RESHARD_RETURN_IF_ERROR(cutter.Finish(checkpoint, out));
  }
  std::vector<std::string> left_out;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!matched[i]) left_out.push_back(Quote(parameters[i].name));
  }
  if (!left_out.empty()) {
    out.notes.push_back(
        fmt::format("{} of {} parameters match no entry and get no layout, so that conversions "
                    "copy them as they stand: {}",
                    left_out.size(), parameters.size(), FirstOf(left_out)));
  }
  return out;
}

Result<SpecLayouts> LayoutsOfNames(const StrategySpec& spec) {
  SpecLayouts out;
  for (const SpecStage& stage : spec.stages) {
    StageLayouts layouts{stage.number, {}};
    for (const SpecEntry& entry : stage.entries) {
      const auto error = [&](std::string_view what) {
        return InvalidArgumentError(
            fmt::format("{}: {}.{}; `checkpoint` tells names and dimensions", Escape(spec.path),
                        entry.place, what));
      };
      if (entry.parameter.find_first_of("*?[\\") != std::string::npos) {
        return error(fmt::format(
            "parameter: expected a name where no checkpoint is given, found the pattern {}",
            Quote(entry.parameter)));
      }
      if (!entry.cuts) {
        return error(
            "cuts: expected the cuts of each dimension where no checkpoint is given, "
            "found none");
      }
      layouts.layouts.push_back(
          {entry.parameter, LayoutOfCuts(spec.devices, *entry.cuts, entry.optimizer_shards)});
    }
    out.stages.push_back(std::move(layouts));
  }
  out.notes.emplace_back(
      "without a checkpoint (`checkpoint`), only parameters that entries name get layouts; name an "
      "optimizer's copies too");
  return out;
}

Result<StrategySpec> ParseStrategySpec(const std::string& path, std::string_view bytes) {
  RESHARD_RETURN_IF_ERROR(CheckNoZeroByte(path, bytes));
  SyntaxCheck check(path, bytes.size());
  if (!Json::sax_parse(bytes.begin(), bytes.end(), &check)) return check.status();
  return SpecReader(path).Read(Json::parse(bytes, nullptr, /*allow_exceptions=*/false));
}

Result<MakeStrategyReport> v0_1::MakeStrategy(const MakeStrategyOptions& options) {
  return CatchOutOfMemory([&]() -> Result<MakeStrategyReport> {
    FileUse use;
    RESHARD_RETURN_IF_ERROR(use.AddOutput(options.output));
    RESHARD_ASSIGN_OR_RETURN(const StrategySpec spec,
                             options.spec_text.empty()
                                 ? ReadSpec(options.spec)
                                 : ParseStrategySpec("the specification", options.spec_text));
    RESHARD_ASSIGN_OR_RETURN(SpecLayouts layouts, LayoutsOf(spec, options.checkpoint));
    RESHARD_ASSIGN_OR_RETURN(
        const std::string bytes,
        EncodeStrategy(layouts.stages, spec.is_pipeline, StrategyEncodingOfName(options.output)));
    RESHARD_RETURN_IF_ERROR(WriteFile(options.output, bytes, options.force));
    MakeStrategyReport report;
    report.stages = static_cast<int64_t>(layouts.stages.size());
    report.devices_per_stage = spec.devices;
    for (const StageLayouts& stage : layouts.stages) report.layouts += stage.layouts.size();
    report.bytes = bytes.size();
    report.warnings = std::move(layouts.warnings);
    report.notes = std::move(layouts.notes);
    return report;
  });
}

}  // namespace reshard
