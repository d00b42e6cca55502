#include "src/mindspore/spec_layouts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "src/base/checked.h"
#include "src/base/glob_list.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
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

// Applies the entries of one stage to one parameter after the other.
class StageCutter {
 public:
  StageCutter(const StrategySpec& spec, const SpecStage& stage)
      : spec_(spec), stage_(stage), patterns_(PatternsOf(stage)), used_(stage.entries.size()) {
    layouts_.stage = stage.number;
  }

  // Returns whether an entry matches.
  bool Add(const FullTensor& tensor) {
    const std::optional<size_t> number = FirstMatch(tensor.name);
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
      return MismatchError(fmt::format(
          "{}: {} of the parameters of {} cannot be cut as it says; an entry before those may say "
          "otherwise for them (shapes here are taken for full ones: is this one rank's file?):{}",
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
          fmt::format("{}: {}: {} matches no parameter of {} that no entry before it matches",
                      Escape(spec_.path), entry.place, Quote(entry.parameter), Escape(checkpoint)));
    }
    out.stages.push_back(std::move(layouts_));
    return {};
  }

 private:
  // Returns the first entry that matches the name or, of an optimizer's copy, its parameter's.
  std::optional<size_t> FirstMatch(const std::string& name) const {
    const std::optional<size_t> own = patterns_.FirstMatch(name);
    const auto parameter = ParameterOfCopy(name);
    const auto of_parameter = parameter ? patterns_.FirstMatch(*parameter) : std::nullopt;
    return own && of_parameter ? std::min(own, of_parameter) : (own ? own : of_parameter);
  }

  const StrategySpec& spec_;
  const SpecStage& stage_;
  const GlobList patterns_;
  StageLayouts layouts_;
  std::vector<bool> used_;  // as entries
  FirstFew misfits_;
};

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
      return CorruptError(
          fmt::format("{}: {}.cuts: expected cuts whose product divides the {} devices, found {}",
                      Escape(spec.path), entry.place, spec.devices, *entry.cuts));
    }
  }
  const int64_t replicas = spec.devices / *parts;
  if (replicas % entry.optimizer_shards != 0) {
    return CorruptError(fmt::format(
        "{}: {}.optimizer_shards: expected a divisor of the {} replicas ({} devices, {} parts), "
        "found {}",
        Escape(spec.path), entry.place, replicas, spec.devices, *parts, entry.optimizer_shards));
  }
  if (entry.optimizer_shards > 1 && entry.cuts && entry.cuts->empty()) {
    return CorruptError(
        fmt::format("{}: {}.optimizer_shards: expected 1 for a scalar (no cuts), found {}",
                    Escape(spec.path), entry.place, entry.optimizer_shards));
  }
  return {};
}

Result<SpecLayouts> LayoutsOfTensors(const StrategySpec& spec, const std::string& checkpoint,
                                     const std::vector<FullTensor>& parameters) {
  SpecLayouts out;
  std::vector<bool> matched(parameters.size());
  for (const SpecStage& stage : spec.stages) {
    StageCutter cutter(spec, stage);
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
        return InvalidArgumentError(fmt::format("{}: {}.{}; --from CKPT tells names and dimensions",
                                                Escape(spec.path), entry.place, what));
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
      "no checkpoint is given (--from): only the parameters that the entries name have layouts, "
      "an optimizer's copies too");
  return out;
}

}  // namespace reshard
