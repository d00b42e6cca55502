#include "src/mindspore/strategy_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/strategy_codec.h"
#include "src/mindspore/strategy_json_items.h"
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

}  // namespace

Result<std::vector<StrategyFile>> ParseStageFiles(const std::vector<StageFile>& files,
                                                  const MemoryCheck& memory) {
  std::vector<StrategyFile> parsed;
  parsed.reserve(files.size());
  for (const StageFile& file : files) {
    if (StrategyEncodingOf(file.bytes) != StrategyEncodingOf(files.front().bytes)) {
      const bool json = StrategyEncodingOf(file.bytes) == StrategyEncoding::kJson;
      return MismatchError(
          fmt::format("{} is JSON and {} is not; expected strategy files of one encoding in one "
                      "folder; remove those of the other",
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
                           Strategy::FromStageFiles(folder, std::move(parsed)));
  std::vector<const StageFile*> stages;
  for (const StrategyStage& stage : strategy.stages()) {
    stages.push_back(&*std::find_if(files.begin(), files.end(), [&](const StageFile& file) {
      return file.path == stage.path();
    }));
  }
  const bool json = StrategyEncodingOf(stages.front()->bytes) == StrategyEncoding::kJson;
  RESHARD_ASSIGN_OR_RETURN(std::string bytes, json ? MergeJson(stages) : MergeProtobuf(stages));
  return MergedStrategy{static_cast<int64_t>(stages.size()), std::move(bytes), strategy.notes()};
}

}  // namespace reshard
