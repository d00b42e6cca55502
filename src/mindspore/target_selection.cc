#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "format/container/container.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/mindspore_target.h"
#include "src/os/threads.h"

namespace reshard {
namespace {

using Fate = ConversionRule::Fate;

// Bytes that are held for a name while parameters are selected: it is in several lists and sets.
constexpr uint64_t kOfSelectedName = 320;

// So many files are looked into side by side: mostly that waits for the disk.
constexpr size_t kManyFiles = 64;

// All of `names` have layouts.
void PutInOrderOf(const Strategy::Stage& layouts, std::vector<std::string>& names) {
  const std::unordered_set<std::string> chosen(names.begin(), names.end());
  names.clear();
  for (const Strategy::Entry layout : layouts) {
    const auto name = chosen.find(std::string(layout.name));
    if (name != chosen.end()) names.push_back(*name);
  }
}

}  // namespace

Result<std::vector<std::string>> MindSporeTarget::NamesInOrder(int64_t rank) const {
  const int64_t target_stage = rule_.TargetStage(rank);
  RESHARD_ASSIGN_OR_RETURN(const Stage* const needed, FindStage(rank));
  const std::vector<RankLists::Source> sources = needed->needed.SourcesOf(rank);
  std::vector<int64_t> stages = rule_.NeededSourceStages(target_stage);
  if (!rule_.stage_alone()) std::reverse(stages.begin(), stages.end());

  std::vector<std::string> names;
  std::unordered_set<std::string_view> seen;
  std::vector<std::vector<std::string>> of_stages;  // that `seen` refers to
  for (const int64_t stage : stages) {
    std::vector<int64_t> of_stage;  // local ranks
    for (const RankLists::Source& source : sources) {
      if (source.stage == stage) of_stage.push_back(source.local);
    }
    if (!rule_.stage_alone()) std::reverse(of_stage.begin(), of_stage.end());
    RESHARD_ASSIGN_OR_RETURN(auto found, NamesInFiles(of_stage, stage, target_stage));
    if (!found) {
      RESHARD_ASSIGN_OR_RETURN(const Source::Census* census, source().CensusOf(stage));
      found = census->names;
    }
    if (stages.size() == 1) return *std::move(found);
    of_stages.push_back(*std::move(found));
    for (const std::string& name : of_stages.back()) {
      if (seen.insert(name).second) names.push_back(name);
    }
  }
  return names;
}

Result<std::optional<std::vector<std::string>>> MindSporeTarget::NamesInFiles(
    const std::vector<int64_t>& locals, int64_t stage, int64_t target_stage) const {
  if (source().placement().all_tensors() != nullptr) {
    return std::optional<std::vector<std::string>>();  // tables have other names
  }
  if (locals.size() >= kManyFiles) {
    const auto look = [&](size_t i, const std::stop_token& /*stop*/) {
      return source().TableIdOf(stage, locals[i]).status();
    };
    // Errors occur again below, when it is known whether they matter. The first file's table is
    // read before, as the others mostly have the same.
    if (look(0, {}).ok()) {
      static_cast<void>(RunWorkers(kMostWaiting, locals.size(), look, std::stop_token()));
    }
  }
  std::vector<std::string> names;
  uint64_t last = 0;
  for (const int64_t local : locals) {
    RESHARD_ASSIGN_OR_RETURN(const uint64_t table, source().TableIdOf(stage, local));
    if (table == 0) return std::optional<std::vector<std::string>>();
    if (table == last) continue;  // it holds the same
    last = table;
    RESHARD_ASSIGN_OR_RETURN(const TableHandle index, source().TableOf(stage, local));
    const auto lacks = [&](std::string_view name) { return index->Find(name) == nullptr; };
    if (names.empty()) {
      RESHARD_RETURN_IF_ERROR(
          CheckMemory(source().memory(), index->arrays().size() * kOfSelectedName));
      for (const StoredArray& parameter : index->arrays()) names.emplace_back(parameter.name);
    } else if (index->arrays().size() != names.size() ||
               std::any_of(names.begin(), names.end(), lacks)) {
      return std::optional<std::vector<std::string>>();
    }
    if (rule_.source() == nullptr) continue;
    for (const Strategy::Entry layout : rule_.source()->stages()[static_cast<size_t>(stage)]) {
      if (lacks(layout.name) && rule_.FateOf(layout.name, target_stage) != Fate::kDrop) {
        return std::optional<std::vector<std::string>>();
      }
    }
  }
  return std::optional(std::move(names));
}

Result<MindSporeTarget::Selected> MindSporeTarget::Select(int64_t rank,
                                                          PlanFindings& findings) const {
  const int64_t stage = rule_.TargetStage(rank);
  RESHARD_ASSIGN_OR_RETURN(std::vector<std::string> names, NamesInOrder(rank));
  RESHARD_RETURN_IF_ERROR(CheckStages(stage));
  Selected selection;
  selection.stages = rule_.NeededSourceStages(stage);
  std::set<std::string> refused;
  std::set<std::string> texts;
  std::vector<size_t> converted;  // places in `names`
  for (const std::string& name : names) {
    const Fate fate = rule_.FateOf(name, stage);
    if (fate == Fate::kDrop) continue;
    RESHARD_ASSIGN_OR_RETURN(const bool taken, Takes(name, fate, selection.stages, rank));
    if (!taken) {
      findings.left_out.insert(name);
    } else if (fate == Fate::kConvert) {
      converted.push_back(static_cast<size_t>(&name - names.data()));
    } else if (fate == Fate::kCopy) {
      RESHARD_ASSIGN_OR_RETURN(const bool text, IsTextLeftOut(name, selection.stages, rank));
      if (text && unmatched_ == Selection::Unmatched::kError) texts.insert(Quote(name));
      if (text) {
        findings.texts_left_out.insert(Quote(name));
        continue;
      }
      const bool unmatched = rule_.Unmatched(name);
      if (unmatched && unmatched_ == Selection::Unmatched::kError) refused.insert(Quote(name));
      if (unmatched && unmatched_ == Selection::Unmatched::kDrop) {
        findings.unmatched_dropped.insert(Quote(name));
        continue;
      }
      if (unmatched) findings.unmatched_copied.insert(Quote(name));
      selection.copied.push_back(name);
    }
  }
  if (!texts.empty()) {
    return MismatchError(
        fmt::format("{} text{}, which {} files cannot hold: {}; `unmatched=copy` leaves texts out",
                    texts.size(), texts.size() == 1 ? "" : "s", container_.extension,
                    FirstOf({texts.begin(), texts.end()})));
  }
  if (!refused.empty()) {
    return MismatchError(fmt::format(
        "{} parameters are in only one of the two strategies: {}; `unmatched=copy` takes them as "
        "they stand, `unmatched=drop` leaves them out",
        refused.size(), FirstOf({refused.begin(), refused.end()})));
  }

  // The other stages' parameters are absent by design.
  if (!rule_.stage_alone()) RESHARD_RETURN_IF_ERROR(FindAbsent(names, stage, findings));
  selection.converted.reserve(converted.size());
  for (const size_t place : converted) selection.converted.push_back(std::move(names[place]));
  if (source().ranks().is_folder && rule_.target() != nullptr) {
    PutInOrderOf(rule_.target()->stages()[static_cast<size_t>(stage)], selection.converted);
  }
  return selection;
}

Status MindSporeTarget::FindAbsent(const std::vector<std::string>& names, int64_t stage,
                                   PlanFindings& findings) const {
  const std::unordered_set<std::string_view> seen(names.begin(), names.end());
  RESHARD_RETURN_IF_ERROR(CheckMissingRanks(stage, seen));
  std::vector<std::string_view> absent;
  const auto note_absent = [&](const Strategy::Stage& layouts) {
    for (const Strategy::Entry layout : layouts) {
      if (!seen.contains(layout.name) && choice().Takes(layout.name)) {
        absent.push_back(layout.name);
      }
    }
  };
  if (rule_.target() != nullptr) {
    const Strategy::Stage& layouts = rule_.target()->stages()[static_cast<size_t>(stage)];
    absent.reserve(layouts.size());  // pages that are not used are not taken
    note_absent(layouts);
  } else if (rule_.source() != nullptr) {
    for (const Strategy::Stage& layouts : rule_.source()->stages()) note_absent(layouts);
  }
  // The caller's findings are going to hold them, too.
  RESHARD_RETURN_IF_ERROR(CheckMemory(source().memory(), absent.size() * sizeof(std::string_view)));
  findings.AddAbsent(std::move(absent));
  return {};
}

Result<bool> MindSporeTarget::Takes(const std::string& name, Fate fate,
                                    const std::vector<int64_t>& stages, int64_t rank) const {
  const bool takes_name = choice().Takes(name);
  if (!takes_name || !choice().DependsOnMore(name)) return takes_name;
  const int64_t near = rule_.CopyRank(rank);
  RESHARD_ASSIGN_OR_RETURN(const SourceTensor found, fate == Fate::kConvert
                                                         ? source().Describe(name, near)
                                                         : source().FindWhole(name, stages, near));
  return choice().Takes({name, found.kind, found.dtype, found.full_shape},
                        [&](std::string_view other) { return source().HasBeside(found, other); });
}

Result<bool> MindSporeTarget::IsTextLeftOut(const std::string& name,
                                            const std::vector<int64_t>& stages,
                                            int64_t rank) const {
  if (container_.can_hold(ArrayKind::kText, DType::kString)) return false;
  RESHARD_ASSIGN_OR_RETURN(const SourceTensor found,
                           source().FindWhole(name, stages, rule_.CopyRank(rank)));
  return found.kind == ArrayKind::kText;
}

// If existing files differ, as when each parameter was saved once, a parameter in no existing file
// is in a missing one.
Status MindSporeTarget::CheckMissingRanks(int64_t target_stage,
                                          const std::unordered_set<std::string_view>& seen) const {
  if (rule_.source() == nullptr) return CheckMissingReplicas();
  for (const int64_t stage : rule_.NeededSourceStages(target_stage)) {
    std::vector<std::string> lost;
    for (const Strategy::Entry layout : rule_.source()->stages()[static_cast<size_t>(stage)]) {
      if (!seen.contains(layout.name) && choice().Takes(layout.name) &&
          rule_.FateOf(layout.name, target_stage) == Fate::kConvert) {
        lost.push_back(Quote(layout.name));
      }
    }
    if (lost.empty()) continue;
    RESHARD_ASSIGN_OR_RETURN(const Source::Census* census, source().CensusOf(stage));
    if (!census->files_differ || census->files == rule_.source_devices()) continue;
    NumberRanges missing;
    for (int64_t local = 0; local < rule_.source_devices(); ++local) {
      const int64_t rank = rule_.SourceRank(stage, local);
      if (!source().ranks().files.contains(rank)) missing.Add(rank);
    }
    return MismatchError(
        fmt::format("{} parameters of {} are missing in the files of stage {}, which hold "
                    "different parameters: {}; add the folders of the missing {}",
                    lost.size(), Escape(rule_.source()->path()), stage, FirstOf(lost),
                    missing.ToWords("rank")));
  }
  return {};
}

// There is no list of the full tensors that should exist.
Status MindSporeTarget::CheckMissingReplicas() const {
  const std::span<const int64_t> holders = rule_.groups().HoldersLike(0);
  NumberRanges missing;
  for (const int64_t rank : holders) {
    if (!source().ranks().files.contains(rank)) missing.Add(rank);
  }
  if (missing.count() == 0) return {};
  RESHARD_ASSIGN_OR_RETURN(const Source::Census* census, source().CensusOf(0));
  if (!census->files_differ) return {};
  return MismatchError(fmt::format(
      "by `group_info` the ranks {} hold the same full tensors, but their files hold different "
      "parameters, as when redundancy was removed. The files of {} are missing; add them",
      RangesOf({holders.begin(), holders.end()}), missing.ToWords("rank")));
}

Status MindSporeTarget::CheckStages(int64_t target_stage) const {
  if (rule_.source() == nullptr) return {};
  std::vector<std::string> lost;
  NumberRanges stages;
  NumberRanges ranks;
  for (const int64_t stage : rule_.NeededSourceStages(target_stage)) {
    if (source().ranks().HasFiles(stage)) continue;
    const size_t before = lost.size();
    for (const Strategy::Entry layout : rule_.source()->stages()[static_cast<size_t>(stage)]) {
      if (rule_.LowestSourceStage(layout.name) != stage || !choice().Takes(layout.name)) continue;
      const Fate fate = rule_.FateOf(layout.name, target_stage);
      if (fate == Fate::kConvert ||
          (fate == Fate::kCopy && unmatched_ == Selection::Unmatched::kCopy)) {
        lost.push_back(Quote(layout.name));
      }
    }
    if (lost.size() == before) continue;
    stages.Add(stage);
    const int64_t first = rule_.SourceRank(stage, 0);
    ranks.AddRange(first, first + rule_.source_devices() - 1);
  }
  if (lost.empty()) return {};
  const auto& files = source().ranks().files;
  const std::string hint =
      files.empty() ? std::string()
                    : SwapHint(rule_, files.begin()->first, files.rbegin()->first, files.size());
  return MismatchError(fmt::format(
      "no checkpoint for {}, which {} needs ({}, with {} parameters of the target: {}); {}",
      ranks.ToSentence("rank"), Escape(rule_.source()->path()), stages.ToSentence("stage"),
      lost.size(), FirstOf(lost),
      "add their files; of ranks that hold the same, one is enough" +
          (hint.empty() ? std::string() : "; " + hint)));
}

}  // namespace reshard
