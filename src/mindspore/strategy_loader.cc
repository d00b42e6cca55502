#include "src/mindspore/strategy_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reshard/parameters.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"
#include "src/mindspore/foreign_file.h"
#include "src/mindspore/strategy_codec.h"
#include "src/mindspore/strategy_json.h"
#include "src/mindspore/strategy_tables.h"
#include "src/mindspore/strategy_wire.h"

namespace reshard {
namespace {

Result<std::string> MergeProtobuf(const std::vector<const StageFile*>& stages) {
  std::string strategies;
  std::string layouts;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const StrategyItemVisitor visitor = {
        .on_strategy = [&](uint64_t, const ParallelStrategyItem& item) -> Status {
          AppendItem(item, &strategies);
          return {};
        },
        .on_layout = [&](uint64_t, ParallelLayoutItem& item) -> Status {
          item.set_param_name(fmt::format("{}-{}", stage, item.param_name()));
          AppendItem(item, &layouts);
          return {};
        }};
    RESHARD_RETURN_IF_ERROR(VisitStrategyItems(stages[stage]->path, stages[stage]->bytes, visitor));
  }
  return std::string{kCurrentStageKey, kMergedCurrentStage} + strategies + layouts;
}

Result<std::string> MergeJson(const std::vector<const StageFile*>& stages) {
  JsonItems strategies;
  JsonItems layouts;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    RESHARD_ASSIGN_OR_RETURN(JsonStrategyItems file,
                             ReadJsonStrategyItems(stages[stage]->path, stages[stage]->bytes));
    for (JsonItem& item : file.strategies.TakeItems()) strategies.Set(std::move(item));
    for (JsonItem& item : file.layouts.TakeItems()) {
      item.name = fmt::format("{}-{}", stage, item.name);
      layouts.Set(std::move(item));
    }
  }
  return StrategyJson(kMergedCurrentStage, strategies, layouts);
}

Result<std::string> ReadStrategyFile(const std::string& path, const MemoryCheck& memory) {
  RESHARD_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> file, Storage::Of(path).Open(path));
  if (file->size() > kMaxStrategyFileBytes) {
    std::string head(kForeignHeadBytes, '\0');
    RESHARD_RETURN_IF_ERROR(file->ReadAt(0, std::as_writable_bytes(std::span(head))));
    RESHARD_RETURN_IF_ERROR(ForeignFileError(path, head));
    return CorruptError(fmt::format("{}: expected a strategy file of at most {}, found one of {}",
                                    Escape(path), FormatBytes(kMaxStrategyFileBytes),
                                    FormatBytes(file->size())));
  }
  RESHARD_RETURN_IF_ERROR(CheckMemory(memory, file->size()));
  std::string bytes(file->size(), '\0');
  RESHARD_RETURN_IF_ERROR(file->ReadAt(0, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

// Returns the strategy files of a folder by name; of files with the same bytes, the first.
Result<std::vector<StageFile>> ReadStageFiles(const std::string& folder,
                                              const MemoryCheck& memory) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries,
                           Storage::Of(folder).List(folder));
  std::vector<StageFile> files;
  std::unordered_multimap<size_t, size_t> by_hash;  // of the bytes, to the place in `files`
  for (const DirectoryEntry& entry : entries) {
    if (!IsStageFile(entry)) continue;
    RESHARD_RETURN_IF_ERROR(CheckMemory(memory));
    std::string path = (std::filesystem::path(folder) / entry.name).string();
    RESHARD_ASSIGN_OR_RETURN(std::string bytes, ReadStrategyFile(path, memory));
    const size_t hash = std::hash<std::string>()(bytes);
    const auto [first, last] = by_hash.equal_range(hash);
    const auto same = std::find_if(
        first, last, [&](const auto& place) { return files[place.second].bytes == bytes; });
    if (same != last) {
      files[same->second].copies.push_back(std::move(path));
    } else {
      by_hash.emplace(hash, files.size());
      files.push_back({std::move(path), std::move(bytes), {}});
    }
  }
  if (files.empty()) {
    return NotFoundError(fmt::format(
        "{}: expected a folder with the strategy files of all stages (*.ckpt or *.json), found "
        "none in it",
        Escape(folder)));
  }
  return files;
}

Result<PathKind> KindOfStrategy(const std::string& path) {
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, Storage::Of(path).KindOf(path));
  if (kind != PathKind::kMissing) return kind;
  return NotFoundError(fmt::format(
      "{}: expected a strategy file or a folder with the strategy files of all stages, found "
      "nothing",
      Escape(path)));
}

}  // namespace

bool IsStageFile(const DirectoryEntry& entry) {
  const std::string_view name = entry.name;
  return entry.is_regular && !name.starts_with('.') &&
         (name.ends_with(".ckpt") || name.ends_with(".json"));
}

Result<std::vector<StrategyFile>> ParseStageFiles(const std::vector<StageFile>& files,
                                                  const MemoryCheck& memory) {
  std::vector<StrategyFile> parsed;
  parsed.reserve(files.size());
  for (const StageFile& file : files) {
    if (StrategyEncodingOf(file.bytes) != StrategyEncodingOf(files.front().bytes)) {
      const bool json = StrategyEncodingOf(file.bytes) == StrategyEncoding::kJson;
      return MismatchError(
          fmt::format("{} is JSON and {} is not; expected one encoding for all strategy files in a "
                      "folder; keep the files of one encoding",
                      Escape(json ? file.path : files.front().path),
                      Escape(json ? files.front().path : file.path)));
    }
    RESHARD_ASSIGN_OR_RETURN(StrategyFile strategy, ParseStrategy(file.path, file.bytes, memory));
    strategy.copies = file.copies;
    parsed.push_back(std::move(strategy));
  }
  return parsed;
}

Result<MergedStrategy> MergeStageFiles(const std::string& folder,
                                       const std::vector<StageFile>& files) {
  RESHARD_ASSIGN_OR_RETURN(std::vector<StrategyFile> parsed, ParseStageFiles(files));
  RESHARD_ASSIGN_OR_RETURN(const Strategy strategy,
                           StrategyTables::FromStageFiles(folder, std::move(parsed)));
  std::vector<const StageFile*> stages;
  for (const Strategy::Stage& stage : strategy.stages()) {
    stages.push_back(&*std::find_if(files.begin(), files.end(), [&](const StageFile& file) {
      return file.path == stage.path();
    }));
  }
  const bool json = StrategyEncodingOf(stages.front()->bytes) == StrategyEncoding::kJson;
  RESHARD_ASSIGN_OR_RETURN(std::string bytes, json ? MergeJson(stages) : MergeProtobuf(stages));
  return MergedStrategy{strategy, std::move(bytes)};
}

Result<Strategy> LoadStrategy(const StrategyRef& strategy, const MemoryCheck& memory) {
  if (strategy.value() != nullptr) return *strategy.value();
  const std::string& path = strategy.path();
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, KindOfStrategy(path));
  if (kind != PathKind::kDirectory) {
    RESHARD_ASSIGN_OR_RETURN(std::string bytes, ReadStrategyFile(path, memory));
    RESHARD_ASSIGN_OR_RETURN(StrategyFile file, ParseStrategy(path, bytes, memory));
    std::string().swap(bytes);  // to assign an empty one would keep the memory
    return StrategyTables::FromFile(std::move(file));
  }
  RESHARD_ASSIGN_OR_RETURN(std::vector<StageFile> files, ReadStageFiles(path, memory));
  RESHARD_ASSIGN_OR_RETURN(std::vector<StrategyFile> parsed, ParseStageFiles(files, memory));
  files = {};
  if (parsed.size() == 1 && IsMerged(parsed.front().layouts)) {
    return StrategyTables::FromFile(std::move(parsed.front()));
  }
  return StrategyTables::FromStageFiles(path, std::move(parsed));
}

std::string StrategyName(const StrategyRef& strategy) {
  return strategy.value() != nullptr ? strategy.value()->path() : strategy.path();
}

Result<std::string> ReadStrategyBytes(const std::string& path, std::vector<std::string>& notes) {
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, KindOfStrategy(path));
  if (kind != PathKind::kDirectory) return ReadStrategyFile(path, {});
  RESHARD_ASSIGN_OR_RETURN(std::vector<StageFile> files, ReadStageFiles(path, {}));
  if (files.size() == 1) {
    StageFile& lone = files.front();
    RESHARD_ASSIGN_OR_RETURN(const StrategyFile file, ParseStrategy(lone.path, lone.bytes));
    if (IsMerged(file.layouts)) return std::move(lone.bytes);
  }
  RESHARD_ASSIGN_OR_RETURN(MergedStrategy merged, MergeStageFiles(path, files));
  notes = merged.strategy.notes();
  return std::move(merged.bytes);
}

Result<MergedStrategy> MergeStrategyFolder(const std::string& folder) {
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, Storage::Of(folder).KindOf(folder));
  if (kind != PathKind::kDirectory) {
    return NotFoundError(
        fmt::format("{}: expected a folder with the strategy files of all stages, found {}",
                    Escape(folder), kind == PathKind::kMissing ? "nothing" : "a file"));
  }
  RESHARD_ASSIGN_OR_RETURN(const std::vector<StageFile> files, ReadStageFiles(folder, {}));
  return MergeStageFiles(folder, files);
}

}  // namespace reshard
