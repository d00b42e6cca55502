// DigestCheckpoint, Diff and MeasureValues: what checkpoints hold, parameter by parameter, however
// they are cut.
//
// Two checkpoints hold the same parameters when names, dtypes, full shapes and digests agree. Every
// byte is read once, in pieces; memory does not depend on the tensors' sizes. Any number of calls
// may run at once; each uses its own threads and state. They print nothing.
//
// Implemented in src/api.
#ifndef RESHARD_COMPARE_H_
#define RESHARD_COMPARE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reshard/conversion_options.h"
#include "reshard/differences.h"
#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {
inline namespace v0_1 {

struct DigestOptions {
  SourceSpec source;
  // Read one replica of each shard, and of what no layout cuts the lowest rank's value.
  bool one_replica = false;
  RunOptions run = {};
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

struct DiffOptions {
  SourceSpec a;
  SourceSpec b;
  bool values = false;  // of tensors of floats that differ: count and compare their elements
  // Compare one replica of each shard, and of what no layout cuts the lowest rank's value, byte by
  // byte, and read no other.
  bool one_replica = false;
  RunOptions run = {};
};

enum class ParameterRelation {
  kEqual,      // every byte; of what no layout cuts, all values that ranks hold
  kDifferent,  // same dtype and full shape, other bytes
  kOtherType,  // another dtype or full shape; the bytes are not compared
  kOnlyInA,
  kOnlyInB,
};

struct ParameterDiff {
  std::string name;
  ParameterRelation relation = ParameterRelation::kEqual;
  std::optional<TensorInfo> a;  // where it has the parameter
  std::optional<TensorInfo> b;
  // Of different tensors of Float16, BFloat16, Float32 or Float64, when they were asked for: of the
  // lowest ranks that hold each shard.
  std::optional<ValueDifference> values;
  // Of a parameter that no layout cuts: the ranks whose value no rank of the other side holds,
  // where these are some of those that have it.
  std::vector<int64_t> a_ranks;
  std::vector<int64_t> b_ranks;
};

struct DiffReport {
  std::vector<std::string> warnings;
  std::vector<ParameterDiff> parameters;  // in the order of A's files, then those only in B
  uint64_t bytes = 0;                     // of the parameters that were compared, on each side
  uint64_t bytes_read = 0;                // of both; of files that were read whole, their sizes
  // What the ranks of each side hold; none with one_replica.
  std::optional<RankFindings> a;
  std::optional<RankFindings> b;

  uint64_t Count(ParameterRelation relation) const;
  // Whether all parameters are equal, and all replicas on either side.
  bool equal() const;
};

// Compares. Every file of both sides is read once, to digests of 128 bits of each shard: those of
// the ranks that hold the same shard are compared, and those of the full tensors of both sides.
// Replicas that differ are then compared byte by byte. Files with a CRC trailer are checked first.
// Errors: kInvalidArgument, kNotFound, kCorrupt, kMismatch, kUnsupported; kChanged when files
// changed meanwhile; kIo, kResourceExhausted, kCancelled.
Result<DiffReport> Diff(const DiffOptions& options);

struct StatisticsOptions {
  SourceSpec source;
  std::function<bool(std::string_view name)> select;  // parameters to read; empty: all
  RunOptions run;
};

// int64_t of signed integers, uint64_t of unsigned ones and Bool, double of floats: exact.
using Number = std::variant<int64_t, uint64_t, double>;

struct ValueStatistics {
  uint64_t values = 0;  // Complex: two for each element, its parts; Int4: two for each byte
  uint64_t nans = 0;
  uint64_t infinities = 0;
  // Of the values that are neither; nothing where there is none.
  std::optional<Number> least;
  std::optional<Number> greatest;
  std::optional<double> mean;  // summed up in double: the same for every layout and number of jobs
};

struct ParameterStatistics : TensorInfo {
  std::optional<ValueStatistics> statistics;  // of tensors, but for HiFloat8
};

struct StatisticsReport {
  std::vector<std::string> warnings;
  std::vector<ParameterStatistics> parameters;  // in the order of the files
  uint64_t bytes = 0;                           // read
};

// Reads. A parameter that no layout cuts is taken from the lowest rank that has it.
// Errors: kInvalidArgument, kNotFound, kCorrupt, kMismatch, kUnsupported; kChanged when a file
// changed meanwhile; kIo, kResourceExhausted, kCancelled.
Result<StatisticsReport> MeasureValues(const StatisticsOptions& options);

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_COMPARE_H_
