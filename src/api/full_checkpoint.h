// FullCheckpoint: a checkpoint as digest and diff see it, in no layout.
#ifndef RESHARD_SRC_API_FULL_CHECKPOINT_H_
#define RESHARD_SRC_API_FULL_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/differences.h"
#include "reshard/status.h"
#include "src/convert/opened_source.h"
#include "src/convert/source_checks.h"
#include "src/source/placement.h"
#include "src/verify/checkpoint_contents.h"
#include "src/verify/shared_work.h"

namespace reshard {

struct FullCheckpoint {
  std::unique_ptr<OpenedSource> source;
  std::vector<SourceTensor> parameters;  // in the order of the files
  std::vector<std::string> warnings;
  // When FindReading was called:
  CrcFiles crc;                // the files with a trailer, of those that are to be read
  uint64_t bytes_to_read = 0;  // of files or shards, and once more of those with a trailer
};

// Opens a folder of rank folders, or one file where `strategy` is empty, and lists its parameters.
// Errors: those of OpenedSource::Open, ListTensors and CheckNames; kInvalidArgument for an
// empty path; kCancelled.
Result<FullCheckpoint> OpenFullCheckpoint(const std::string& path, const std::string& strategy,
                                          const std::string& suffix, const std::stop_token& stop);

// Finds what there is to read: the files of all ranks, or one replica of each shard.
// Errors: those of FindCrcFiles and CopiesOf.
Status FindReading(bool one_replica, FullCheckpoint& checkpoint);

// Returns what was found of ranks that hold the same parameters.
RankFindings FindingsOf(const FullCheckpoint& checkpoint, const CheckpointContents& contents);

}  // namespace reshard

#endif  // RESHARD_SRC_API_FULL_CHECKPOINT_H_
