#include "src/mindspore/strategy_file_target.h"

#include <algorithm>

namespace reshard {

void StrategyFileTarget::IndexSources(std::span<const int64_t> files, const Indexers& indexers,
                                      const std::stop_token& stop) const {
  // The extra files, which need no source, are the last ones.
  const auto extra = std::find_if(files.begin(), files.end(),
                                  [this](int64_t file) { return Find(file) != nullptr; });
  files = files.first(static_cast<size_t>(extra - files.begin()));
  if (!files.empty()) ranks_.IndexSources(files, indexers, stop);
}

Result<TargetFile> StrategyFileTarget::MakeFile(int64_t file, PlanFindings& findings) const {
  const ExtraFile* const extra = Find(file);
  if (extra == nullptr) return ranks_.MakeFile(file, findings);
  TargetFile made;
  made.rank = file;
  made.path = extra->path;
  made.literal = extra->literal;
  return made;
}

}  // namespace reshard
