#include "src/mindspore/strategy_file_target.h"

namespace reshard {

void StrategyFileTarget::IndexSources(std::span<const int64_t> files, const Indexers& indexers,
                                      const std::stop_token& stop) const {
  // The strategy, which needs no source, is the last one.
  if (!files.empty() && IsStrategy(files.back())) files = files.first(files.size() - 1);
  if (!files.empty()) ranks_.IndexSources(files, indexers, stop);
}

Result<TargetFile> StrategyFileTarget::MakeFile(int64_t file, PlanFindings& findings) const {
  if (!IsStrategy(file)) return ranks_.MakeFile(file, findings);
  TargetFile made;
  made.rank = file;
  made.path = kStrategyFilePath;
  made.literal = strategy_;
  return made;
}

}  // namespace reshard
