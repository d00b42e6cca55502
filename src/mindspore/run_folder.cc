#include "src/mindspore/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "format/container_table/container_table.h"
#include "format/mindformers_metadata/file_names.h"
#include "src/base/quote.h"
#include "src/io/storage.h"
#include "src/mindspore/rank_folder.h"
#include "src/mindspore/rank_pattern.h"
#include "src/mindspore/strategy_loader.h"

namespace reshard {
namespace {

// The names that MindFormers gives them.
constexpr std::string_view kCheckpointFolder = "checkpoint";
constexpr std::string_view kStrategyFolder = "strategy";

bool IsRank(const DirectoryEntry& entry) {
  return entry.is_directory && RankOfFolder(entry.name).has_value();
}

// Whether any entry of `folder` passes `test`; not if it cannot be listed.
template <typename Test>
bool AnyIn(const std::string& folder, const Test& test) {
  const auto entries = Storage::Of(folder).List(folder);
  return entries.ok() && std::any_of(entries->begin(), entries->end(), test);
}

bool IsRunFolder(const std::string& path) {
  const std::string checkpoints = PathIn(path, kCheckpointFolder);
  const auto kind = Storage::Of(checkpoints).KindOf(checkpoints);
  if (!kind.ok() || *kind != PathKind::kDirectory) return false;
  if (!AnyIn(checkpoints, [](const DirectoryEntry& entry) {
        return IsRank(entry) || entry.name == kLatestIteration;  // version 2.0 has no ranks
      })) {
    return false;
  }
  return !AnyIn(path, [](const DirectoryEntry& entry) {
    return IsRank(entry) || (entry.is_regular && ContainerNamed(entry.name) != nullptr);
  });
}

bool HasStrategies(const std::string& folder) { return AnyIn(folder, IsStageFile); }

}  // namespace

SourceSpec InRunFolder(const SourceSpec& spec, std::vector<std::string>& notes) {
  SourceSpec found = spec;
  const bool is_path = !spec.path.empty() && spec.files.empty() && !IsRankPattern(spec.path);
  if (!is_path || !IsRunFolder(spec.path)) return found;
  found.path = PathIn(spec.path, kCheckpointFolder);
  const bool has_ranks = AnyIn(found.path, IsRank);
  notes.push_back(fmt::format("{}: the output folder of a run; its {} are in {}", Escape(spec.path),
                              has_ranks ? "ranks" : "checkpoints", Escape(found.path)));
  // Checkpoints of version 2.0 state their layouts themselves.
  const bool may_be_ranks = spec.format.value_or(SourceFormat::kPlain) == SourceFormat::kPlain;
  if (!spec.strategy.empty() || !has_ranks || !may_be_ranks) return found;
  const std::string strategies = PathIn(spec.path, kStrategyFolder);
  if (!HasStrategies(strategies)) return found;
  found.strategy = strategies;
  notes.back() += fmt::format(", their strategies in {}", Escape(strategies));
  return found;
}

SourceSpec InRunFolder(const SourceSpec& spec) {
  std::vector<std::string> notes;
  return InRunFolder(spec, notes);
}

std::string HintOfStrategyBeside(const SourceSpec& spec) {
  if (spec.path.empty() || !spec.strategy.empty() || IsRankPattern(spec.path)) return {};
  std::string_view path = spec.path;
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  const std::string folder(path.substr(0, slash == std::string_view::npos ? 0 : slash));
  const std::string inside = PathIn(std::string(path), kStrategyFolder);
  if (HasStrategies(inside)) return fmt::format("; strategies are in {}", Escape(inside));
  const std::string beside =
      slash == 0 ? fmt::format("/{}", kStrategyFolder) : PathIn(folder, kStrategyFolder);
  return HasStrategies(beside) ? fmt::format("; strategies are in {}", Escape(beside)) : "";
}

}  // namespace reshard
