#include "src/plan/extra_files_target.h"

#include <algorithm>

namespace reshard {

void ExtraFilesTarget::IndexSources(std::span<const int64_t> files, const Indexers& indexers,
                                    const std::stop_token& stop) const {
  // The extra files, which need no index, come last.
  const auto extra =
      std::find_if(files.begin(), files.end(), [this](int64_t file) { return IsExtra(file); });
  files = files.first(static_cast<size_t>(extra - files.begin()));
  if (!files.empty()) others_.IndexSources(files, indexers, stop);
}

Result<TargetFile> ExtraFilesTarget::MakeFile(int64_t file, PlanFindings& findings) const {
  const ExtraFile* const extra = Find(file);
  if (extra == nullptr) return others_.MakeFile(file, findings);
  TargetFile made;
  made.literal = extra->literal;
  made.copied = extra->copied;
  return made;
}

}  // namespace reshard
