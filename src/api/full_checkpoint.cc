#include "src/api/full_checkpoint.h"

#include <fmt/format.h>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/plan/plan_notes.h"
#include "src/verify/full_parameters.h"

namespace reshard {

Result<FullCheckpoint> OpenFullCheckpoint(const std::string& path, const std::string& strategy,
                                          const std::string& suffix) {
  if (path.empty()) return InvalidArgumentError("a checkpoint file or folder is needed");
  FullCheckpoint checkpoint;
  RESHARD_ASSIGN_OR_RETURN(checkpoint.source, OpenedSource::Open({path, strategy, "", suffix}));
  PlanNotes notes;
  RESHARD_ASSIGN_OR_RETURN(checkpoint.parameters,
                           ListFullParameters(checkpoint.source->shards(), notes));
  checkpoint.warnings = checkpoint.source->warnings();
  for (const std::string& warning : notes.Warnings()) {
    checkpoint.warnings.push_back(fmt::format("{}: {}", Escape(path), warning));
  }
  return checkpoint;
}

}  // namespace reshard
