#include "src/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "format/mindspore_checkpoint/value_header.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/layout/rank_list.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

using Fate = ConversionRule::Fate;

// Makes room for `bytes` more of the target file.
Status Extend(TargetPlan& plan, std::string_view name, uint64_t bytes) {
  constexpr uint64_t kLargestFile = std::numeric_limits<int64_t>::max();
  if (bytes > kLargestFile - plan.size) {
    return MismatchError(
        fmt::format("{}: parameter {} of {} bytes makes the file larger than a file can be",
                    plan.path, Quote(name), bytes));
  }
  plan.size += bytes;
  return {};
}

// Appends the Values of a box of a tensor: for each a header and, where there are bytes, its
// content.
Status AppendTensor(const SourceTensor& tensor, const std::vector<SourceShard>& shards,
                    const Box& box, TargetPlan& plan) {
  const uint64_t bytes = Volume(ToByteBox(box, tensor.dtype));
  uint64_t begin = 0;
  do {
    const uint64_t length = std::min(bytes - begin, kValueContentBytes);
    Literal header{plan.size, EncodeValueHeader(tensor.name, tensor.dtype, box.extent, length)};
    RESHARD_RETURN_IF_ERROR(Extend(plan, tensor.name, header.bytes.size()));
    plan.segments.emplace_back(std::move(header));
    if (length != 0) {
      const uint64_t offset = plan.size;
      RESHARD_RETURN_IF_ERROR(Extend(plan, tensor.name, length));
      RESHARD_ASSIGN_OR_RETURN(ShardCopies made,
                               MakeCopies(tensor, shards, box, {begin, length}, offset));
      plan.segments.emplace_back(Content{.source_name = tensor.name,
                                         .target_name = tensor.name,
                                         .dtype = tensor.dtype,
                                         .full_shape = tensor.full_shape,
                                         .target_box = box,
                                         .box_offset = begin,
                                         .target = {offset, length},
                                         .copies = std::move(made.copies),
                                         .shards = std::move(made.shards)});
    }
    begin += length;
  } while (begin < bytes);
  ++plan.parameters;
  for (const SourceShard& shard : shards) plan.sources.push_back(shard.file);
  return {};
}

// Appends the Values of a note or a map as they stand in their file, headers included: as pieces of
// one tensor of their bytes.
Status AppendWholeValues(const ParameterInfo& parameter, FileId file, TargetPlan& plan) {
  uint64_t bytes = 0;
  for (const ByteRange& value : parameter.values) bytes += value.length;
  const Shape shape = {static_cast<int64_t>(bytes)};
  const Box box = Box::Whole(shape);
  uint64_t begin = 0;
  for (const ByteRange& value : parameter.values) {
    const ByteRange target = {plan.size, value.length};
    RESHARD_RETURN_IF_ERROR(Extend(plan, parameter.name, value.length));
    const auto place = static_cast<int64_t>(value.offset) - static_cast<int64_t>(begin);
    plan.segments.emplace_back(
        Content{.source_name = parameter.name,
                .target_name = parameter.name,
                .dtype = DType::kUInt8,
                .full_shape = shape,
                .target_box = box,
                .box_offset = begin,
                .target = target,
                .copies = {{file, value.offset, target.offset, value.length, {}}},
                .shards = {{box, place}}});
    begin += value.length;
  }
  ++plan.parameters;
  plan.sources.push_back(file);
  return {};
}

PlanNotes::Parameter NoteOf(const SourceTensor& tensor) {
  return {tensor.dtype, tensor.full_shape, TensorBytes(tensor.full_shape, tensor.dtype).value_or(0),
          tensor.file};
}

void NoteStatedShape(const ParameterLayout* layout, const Strategy* strategy,
                     const SourceTensor& tensor, PlanNotes& notes) {
  if (layout == nullptr || !layout->tensor_shape || *layout->tensor_shape == tensor.full_shape) {
    return;
  }
  notes.other_shapes.insert(fmt::format("{} {} ({}: {})", Quote(tensor.name),
                                        ToString(tensor.full_shape), Escape(strategy->path()),
                                        FirstNumbers(*layout->tensor_shape)));
}

const ParameterLayout* FindLayout(const Strategy* strategy, int64_t stage, std::string_view name) {
  return strategy == nullptr ? nullptr : strategy->stages()[static_cast<size_t>(stage)].Find(name);
}

}  // namespace

std::string Planner::TargetPath(int64_t rank) const {
  const auto stage = sources_.rule().stage_alone();
  return fmt::format("rank_{}/{}{}{}.ckpt", rank, prefix_, rank,
                     stage ? fmt::format("_part{}", *stage) : "");
}

Result<TargetPlan> Planner::PlanTarget(int64_t rank, PlanNotes& notes) const {
  RESHARD_ASSIGN_OR_RETURN(const Selection selection, Select(rank, notes));
  TargetPlan plan;
  plan.rank = rank;
  plan.path = TargetPath(rank);
  for (const std::string& name : selection.converted) {
    RESHARD_RETURN_IF_ERROR(AddConverted(name, rank, selection, plan, notes));
  }
  for (const std::string& name : selection.copied) {
    RESHARD_RETURN_IF_ERROR(AddCopied(name, rank, selection, plan, notes));
  }
  if (plan.parameters == 0) notes.empty_files.insert(plan.path);
  std::sort(plan.sources.begin(), plan.sources.end());
  plan.sources.erase(std::unique(plan.sources.begin(), plan.sources.end()), plan.sources.end());
  return plan;
}

Result<std::vector<std::string>> Planner::NamesInOrder(int64_t rank) const {
  const ConversionRule& rule = sources_.rule();
  const int64_t target_stage = rule.TargetStage(rank);
  RESHARD_ASSIGN_OR_RETURN(const std::vector<int64_t> ranks, RankList(rule, rank));
  std::vector<int64_t> stages = rule.NeededSourceStages(target_stage);
  if (!rule.stage_alone()) std::reverse(stages.begin(), stages.end());

  std::vector<std::string> names;
  std::unordered_set<std::string> seen;
  for (const int64_t stage : stages) {
    const int64_t first = rule.SourceRank(stage, 0);
    const auto begin = std::lower_bound(ranks.begin(), ranks.end(), first);
    const auto end = std::lower_bound(begin, ranks.end(), first + rule.source_devices());
    std::vector<int64_t> of_stage(begin, end);
    if (!rule.stage_alone()) std::reverse(of_stage.begin(), of_stage.end());
    RESHARD_ASSIGN_OR_RETURN(auto found, NamesInFiles(of_stage, stage, target_stage));
    if (!found) {
      RESHARD_ASSIGN_OR_RETURN(const SourceShards::Census* census, sources_.CensusOf(stage));
      found = census->names;
    }
    for (std::string& name : *found) {
      if (seen.insert(name).second) names.push_back(std::move(name));
    }
  }
  return names;
}

Result<std::optional<std::vector<std::string>>> Planner::NamesInFiles(
    const std::vector<int64_t>& ranks, int64_t stage, int64_t target_stage) const {
  const ConversionRule& rule = sources_.rule();
  std::vector<std::string> names;
  for (const int64_t rank : ranks) {
    RESHARD_ASSIGN_OR_RETURN(const IndexHandle index,
                             sources_.IndexOf(stage, rank - rule.SourceRank(stage, 0)));
    const auto lacks = [&](const std::string& name) { return index->Find(name) == nullptr; };
    if (!index) return std::optional<std::vector<std::string>>();
    if (names.empty()) {
      for (const ParameterInfo& parameter : index->parameters()) names.push_back(parameter.name);
    } else if (index->parameters().size() != names.size() ||
               std::any_of(names.begin(), names.end(), lacks)) {
      return std::optional<std::vector<std::string>>();
    }
    if (rule.source() == nullptr) continue;
    for (const NamedLayout& layout :
         rule.source()->stages()[static_cast<size_t>(stage)].layouts()) {
      if (rule.FateOf(layout.name, target_stage) == Fate::kConvert && lacks(layout.name)) {
        return std::optional<std::vector<std::string>>();
      }
    }
  }
  return std::optional(std::move(names));
}

Result<Planner::Selection> Planner::Select(int64_t rank, PlanNotes& notes) const {
  const ConversionRule& rule = sources_.rule();
  const int64_t stage = rule.TargetStage(rank);
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesInOrder(rank));
  RESHARD_RETURN_IF_ERROR(CheckStages(stage));
  Selection selection;
  selection.stages = rule.NeededSourceStages(stage);
  std::set<std::string> refused;
  for (const std::string& name : names) {
    const Fate fate = rule.FateOf(name, stage);
    if (fate == Fate::kConvert) {
      selection.converted.push_back(name);
    } else if (fate == Fate::kCopy) {
      const bool unmatched = rule.Unmatched(name);
      if (unmatched && unmatched_ == UnmatchedPolicy::kError) refused.insert(Quote(name));
      if (unmatched && unmatched_ == UnmatchedPolicy::kDrop) {
        notes.unmatched_dropped.insert(Quote(name));
        continue;
      }
      if (unmatched) notes.unmatched_copied.insert(Quote(name));
      selection.copied.push_back(name);
    }
  }
  if (!refused.empty()) {
    return MismatchError(fmt::format(
        "{} parameters are in only one of the two strategies: {}; --unmatched copy takes them as "
        "they stand, --unmatched drop leaves them out",
        refused.size(), FirstOf({refused.begin(), refused.end()})));
  }

  if (rule.stage_alone()) return selection;  // the other stages' parameters are absent by design
  const std::unordered_set<std::string_view> seen(names.begin(), names.end());
  RESHARD_RETURN_IF_ERROR(CheckMissingRanks(stage, seen));
  const auto note_absent = [&](const StrategyStage& layouts) {
    for (const NamedLayout& layout : layouts.layouts()) {
      if (!seen.contains(layout.name)) notes.absent.insert(Quote(layout.name));
    }
  };
  if (rule.target() != nullptr) {
    note_absent(rule.target()->stages()[static_cast<size_t>(stage)]);
  } else if (rule.source() != nullptr) {
    for (const StrategyStage& layouts : rule.source()->stages()) note_absent(layouts);
  }
  return selection;
}

// Where files that are there differ, as when each parameter was saved once, one that is in none of
// them is in those that are missing.
Status Planner::CheckMissingRanks(int64_t target_stage,
                                  const std::unordered_set<std::string_view>& seen) const {
  const ConversionRule& rule = sources_.rule();
  if (rule.source() == nullptr) return {};
  for (const int64_t stage : rule.NeededSourceStages(target_stage)) {
    std::vector<std::string> lost;
    for (const NamedLayout& layout :
         rule.source()->stages()[static_cast<size_t>(stage)].layouts()) {
      if (rule.FateOf(layout.name, target_stage) == Fate::kConvert && !seen.contains(layout.name)) {
        lost.push_back(Quote(layout.name));
      }
    }
    if (lost.empty()) continue;
    RESHARD_ASSIGN_OR_RETURN(const SourceShards::Census* census, sources_.CensusOf(stage));
    if (!census->files_differ || census->files == rule.source_devices()) continue;
    std::vector<std::string> missing;
    for (int64_t local = 0; local < rule.source_devices(); ++local) {
      const int64_t rank = rule.SourceRank(stage, local);
      if (!sources_.rank_files().contains(rank)) missing.push_back(std::to_string(rank));
    }
    return MismatchError(fmt::format(
        "{} parameters of {} are in none of the files of stage {}, which do not all hold the same "
        "ones: {}; add the "
        "folders of the missing ranks {}",
        lost.size(), Escape(rule.source()->path()), stage, FirstOf(lost), FirstOf(missing)));
  }
  return {};
}

Status Planner::CheckStages(int64_t target_stage) const {
  const ConversionRule& rule = sources_.rule();
  if (rule.source() == nullptr) return {};
  for (const int64_t stage : rule.NeededSourceStages(target_stage)) {
    if (sources_.HasFiles(stage)) continue;
    std::vector<std::string> lost;
    for (const NamedLayout& layout :
         rule.source()->stages()[static_cast<size_t>(stage)].layouts()) {
      if (rule.LowestSourceStage(layout.name) != stage) continue;
      const Fate fate = rule.FateOf(layout.name, target_stage);
      if (fate == Fate::kConvert || (fate == Fate::kCopy && unmatched_ == UnmatchedPolicy::kCopy)) {
        lost.push_back(Quote(layout.name));
      }
    }
    if (lost.empty()) continue;
    const int64_t first = rule.SourceRank(stage, 0);
    return MismatchError(fmt::format(
        "{}: stage {} has {} parameters of the target, but no file of its ranks {} to {} is there; "
        "add their folders; the parameters are {}",
        Escape(rule.source()->path()), stage, lost.size(), first, first + rule.source_devices() - 1,
        FirstOf(lost)));
  }
  return {};
}

Status Planner::NoteConverted(const SourceTensor& tensor, PlanNotes& notes) const {
  const auto place = notes.parameters.emplace(tensor.name, NoteOf(tensor)).first;
  const PlanNotes::Parameter& known = place->second;
  if (known.dtype == tensor.dtype && known.full_shape == tensor.full_shape) return {};
  return MismatchError(fmt::format(
      "{}: by this file it is {} {} in full, but {} {} by another: {}; are these ranks of one "
      "checkpoint?",
      sources_.Where(tensor.file, tensor.name), DTypeName(tensor.dtype),
      ToString(tensor.full_shape), DTypeName(known.dtype), ToString(known.full_shape),
      sources_.Where(known.file, tensor.name)));
}

Status Planner::AddConverted(const std::string& name, int64_t rank, const Selection& selection,
                             TargetPlan& plan, PlanNotes& notes) const {
  const ConversionRule& rule = sources_.rule();
  const int64_t stage = rule.TargetStage(rank);
  const int64_t preferred = rule.CopyRank(rank);
  RESHARD_ASSIGN_OR_RETURN(const SourceTensor tensor, sources_.Describe(name, preferred));
  RESHARD_RETURN_IF_ERROR(NoteConverted(tensor, notes));
  if (tensor.kind != ParameterKind::kTensor) return AddCopied(name, rank, selection, plan, notes);

  const ParameterLayout* layout = FindLayout(rule.target(), stage, name);
  NoteStatedShape(FindLayout(rule.source(), tensor.stage, name), rule.source(), tensor, notes);
  NoteStatedShape(layout, rule.target(), tensor, notes);
  Box box = Box::Whole(tensor.full_shape);
  if (layout != nullptr) {
    const std::string where =
        fmt::format("{}: parameter {}", Escape(rule.target()->path()), Quote(name));
    RESHARD_ASSIGN_OR_RETURN(const ShardGrid grid,
                             ShardGrid::Make(*layout, tensor.full_shape.size(), where));
    const auto shard_shape = grid.ShardShape(tensor.full_shape, where);
    if (!shard_shape.ok()) {
      return MismatchError(
          fmt::format("{}; the full shape follows from the source's shards and "
                      "strategy: are the two strategies swapped?",
                      shard_shape.status().message()));
    }
    box = grid.BoxOf(rule.TargetLocalRank(rank), *shard_shape);
  }
  RESHARD_ASSIGN_OR_RETURN(const auto shards, sources_.Cover(tensor, box, preferred));
  return AppendTensor(tensor, shards, box, plan);
}

Status Planner::AddCopied(const std::string& name, int64_t rank, const Selection& selection,
                          TargetPlan& plan, PlanNotes& notes) const {
  RESHARD_ASSIGN_OR_RETURN(
      const SourceShards::Holder holder,
      sources_.FindWhole(name, selection.stages, sources_.rule().CopyRank(rank)));
  const ParameterInfo& parameter = *holder.index->Find(name);
  const SourceTensor tensor =
      SourceShards::Standalone(parameter, holder.stage, holder.index->file());
  notes.parameters[name] = NoteOf(tensor);
  if (parameter.kind != ParameterKind::kTensor) {
    return AppendWholeValues(parameter, holder.index->file(), plan);
  }
  const Box box = Box::Whole(tensor.full_shape);
  return AppendTensor(tensor, {{holder.rank, holder.index->file(), box, parameter.content}}, box,
                      plan);
}

}  // namespace reshard
