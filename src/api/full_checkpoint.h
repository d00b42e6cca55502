// FullCheckpoint: a checkpoint as digest and diff see it, in no layout.
#ifndef RESHARD_SRC_API_FULL_CHECKPOINT_H_
#define RESHARD_SRC_API_FULL_CHECKPOINT_H_

#include <memory>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/api/opened_source.h"
#include "src/plan/full_parameter.h"

namespace reshard {

struct FullCheckpoint {
  std::unique_ptr<OpenedSource> source;
  std::vector<FullParameter> parameters;  // in the order of the files
  std::vector<std::string> warnings;
};

// Opens a folder of rank folders, or one file where `strategy` is empty, and lists its parameters.
// Errors: those of OpenedSource::Open and ListFullParameters; kInvalidArgument for an empty path.
Result<FullCheckpoint> OpenFullCheckpoint(const std::string& path, const std::string& strategy,
                                          const std::string& suffix);

}  // namespace reshard

#endif  // RESHARD_SRC_API_FULL_CHECKPOINT_H_
