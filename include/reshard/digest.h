// DigestCheckpoint: digests of parameters that do not depend on how a checkpoint is cut.
//
// Two checkpoints hold the same parameters when names, dtypes, full shapes and digests agree,
// whatever their layouts. May run in several threads at once; each call uses its own threads and
// state. Prints nothing.
//
// Implemented in src/api.
#ifndef RESHARD_DIGEST_H_
#define RESHARD_DIGEST_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/differences.h"
#include "reshard/progress.h"
#include "reshard/status.h"
#include "reshard/tensor_info.h"

namespace reshard {

struct DigestOptions {
  std::string path;      // a folder or a pattern, as ConvertOptions::source (reshard/convert.h); or
                         // one .ckpt file when there is no strategy
  std::string strategy;  // a strategy file or a folder of stage files; empty: full tensors
  // "-EPOCH_STEP": which checkpoint of each rank folder; empty: the latest
  std::string suffix = {};
  // Read one replica of each shard, and of what no layout cuts the lowest rank's value.
  bool one_replica = false;
  int jobs = 2;               // threads that read; 0: one for each core
  std::stop_token stop = {};  // a request ends the call with kCancelled
  // Called from worker threads, one call at a time; may be empty.
  std::function<void(const Progress&)> progress = {};
};

struct ParameterDigest : TensorInfo {
  // 32 lower-case hexadecimal digits: of the row-major bytes of the full tensor (docs/cli.md,
  // "digest"); of a text its characters, of a MapTensor its Values as they stand in the file.
  std::string digest;
  // The ranks that hold this value, ascending, where ranks hold different values of a parameter
  // that no layout cuts: then each value is an entry of its own, by its lowest rank. Else empty.
  std::vector<int64_t> ranks;
};

struct DigestReport {
  std::vector<std::string> warnings;
  std::vector<ParameterDigest> parameters;  // in the order of the files
  uint64_t bytes = 0;                       // of all of them
  uint64_t bytes_read = 0;                  // of files that were read whole, their sizes
  std::optional<RankFindings> ranks;        // none with one_replica
};

// Reads every file of a checkpoint once, and compares the replicas; where they differ, the digest
// is of those of the lowest ranks. Files with a CRC trailer are checked first. Errors:
// kInvalidArgument, kNotFound, kCorrupt, kMismatch, kUnsupported; kChanged when files changed
// meanwhile; kIo, kResourceExhausted, kCancelled.
Result<DigestReport> DigestCheckpoint(const DigestOptions& options);

}  // namespace reshard

#endif  // RESHARD_DIGEST_H_
