// DigestCheckpoint, Diff and MeasureValues: the contents of checkpoints, parameter by parameter.
// The results do not depend on how a checkpoint is cut. This header also has the findings of all
// comparisons: differences in values, in files and between replicas, and damage to a target folder.
//
// Two checkpoints hold the same parameters when names, dtypes, full shapes and digests agree. Every
// byte is read once, in pieces; memory does not depend on the tensors' sizes. Any number of calls
// may run at once; each uses its own threads and state. The functions do not print.
//
// Implemented in src/verify (the findings, plain values) and src/api.
#ifndef RESHARD_COMPARE_H_
#define RESHARD_COMPARE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {
inline namespace v0_1 {

// How the ranks of a checkpoint agree about the same parameters.
struct ReplicaReport {
  // Two ranks that should hold the same shard of a parameter.
  struct Pair {
    int64_t rank = 0;
    int64_t reference = 0;    // the lowest rank that holds the shard
    bool other_type = false;  // another dtype or shape
    uint64_t offset = 0;      // else: the first byte of the shard that differs
  };

  // A parameter with differing replicas.
  struct Difference {
    std::string parameter;
    int64_t stage = 0;        // of the source
    std::vector<Pair> pairs;  // the first 20, by shard, then by rank
    uint64_t pair_count = 0;  // all
  };

  uint64_t compared = 0;   // parameters with a shard that several ranks hold, counted in each stage
  uint64_t shards = 0;     // such shards, counted in each rank
  uint64_t bytes = 0;      // the bytes in these shards
  uint64_t differing = 0;  // of the parameters
  std::vector<Difference> differences;  // the first 20, in the order of the strategy
  // Parameters with other values in some ranks, as they may: first, in the order of the files,
  // parameters that no layout cuts (only DigestCheckpoint and Diff look at them), then accumulated
  // gradients (accu_grads*).
  std::vector<std::string> own_values;
};

struct DamageReport {
  struct Damage {
    enum class Kind {
      kManifest,   // a manifest is damaged; the files that it lists were not looked at
      kRecord,     // a part record is missing or damaged; its file was compared without it
      kMissing,    // the file does not exist
      kNoFile,     // something else is in its place, or on the path to it; links are not followed
      kSize,       // shorter or longer
      kContent,    // of the right size, but with other bytes
      kNotListed,  // in no manifest, but readers of the folder take it
    };

    // A part of a file with its own digest.
    struct Block {
      uint64_t index = 0;
      ByteRange range;
    };

    // The path of a target file, part record, manifest or list of checksums, in the target folder.
    std::string path;
    Kind kind = Kind::kContent;
    std::string detail = {};          // what was expected and found, in words
    std::optional<Block> block = {};  // the first bad or cut block, if known
    uint64_t bad_blocks = 0;
    // The first 20 parameters, in file order, with damaged content. If no content is damaged: the
    // parameters with a header in a bad block.
    std::vector<std::string> parameters = {};
    uint64_t parameter_count = 0;  // all such parameters
  };

  std::vector<std::string> manifests;  // their names, sorted
  uint64_t files = 0;                  // listed in the manifests
  uint64_t bytes = 0;                  // read of the listed files
  uint64_t files_without_digest = 0;   // only their sizes are known
  std::vector<Damage> damages;         // by manifest, then by path
  std::vector<std::string> notes;      // lists of checksums that are missing
};

// Returns the kind in words, such as "other content".
std::string_view DamageKindName(DamageReport::Damage::Kind kind);

// The contents that DigestCheckpoint, Diff and MeasureValues read.
struct ContentOptions {
  SourceSpec source;
  // Patterns (GlobMatch, reshard/parameters.h). A parameter is read if a pattern of `include`
  // matches its name, or `include` is empty, and no pattern of `exclude` matches.
  std::vector<std::string> include = {};
  std::vector<std::string> exclude = {};
  // Of DigestCheckpoint and Diff, which then compares byte by byte: read one replica of each shard.
  // For a parameter that no layout cuts, read the value of the lowest rank. MeasureValues always
  // reads so.
  bool one_replica = false;
  RunOptions run = {};
};

struct DigestReport {
  struct Parameter : TensorInfo {
    // 32 lower-case hexadecimal digits (docs/reference/cli.md, "digest"). The digest covers the
    // row-major bytes of a full tensor, the characters of a text, or a MapTensor's Values as in the
    // file.
    std::string digest;
    // The ranks that hold this value, ascending, if ranks hold different values of a parameter that
    // no layout cuts. Each value then has an entry; entries are ordered by the lowest rank. Else
    // empty.
    std::vector<int64_t> ranks;
  };

  std::vector<Warning> warnings;
  std::vector<std::string> notes;     // need no action
  std::vector<Parameter> parameters;  // in the order of the files
  // The digest of all parameters, 32 lower-case hexadecimal digits. It depends on names, types,
  // shapes, sizes and digests, not on order or ranks (docs/reference/cli.md, "digest").
  std::string digest;
  uint64_t bytes = 0;                     // of all parameters
  uint64_t bytes_read = 0;                // includes the full sizes of files that were read whole
  std::optional<ReplicaReport> replicas;  // none with one_replica
};

// Reads every file of a checkpoint once, and compares the replicas. If replicas differ, the digest
// covers the replica of the lowest rank. Files with a CRC trailer are checked first.
// Errors:
//   kInvalidArgument: also if the patterns select no parameter
//   kChanged: a file changed meanwhile
//   kNotFound, kCorrupt, kMismatch, kUnsupported, kIo, kResourceExhausted, kCancelled
Result<DigestReport> DigestCheckpoint(const ContentOptions& options);

// `source` is A. The other options of the base hold for both sides.
struct DiffOptions : ContentOptions {
  SourceSpec b;
  bool values = false;  // if float tensors differ: count and compare their elements
};

struct DiffReport {
  // Differences between the elements of two float tensors with equal dtype and shape. Elements with
  // equal bits are equal, NaNs too. Each differing element is in exactly one of the three counts.
  struct ValueDifference {
    uint64_t numbers = 0;             // two numbers of other bits (0 and -0 too)
    uint64_t nan_against_number = 0;  // a NaN on one side only
    uint64_t nan_against_nan = 0;     // two NaNs of other bits
    double greatest = 0;              // the greatest absolute difference of two numbers
  };

  enum class Relation {
    kEqual,      // every byte; without a layout, all values that ranks hold
    kDifferent,  // same dtype and full shape, other bytes
    kOtherType,  // another dtype or full shape; the bytes are not compared
    kOnlyInA,
    kOnlyInB,
  };

  struct Parameter {
    std::string name;
    Relation relation = Relation::kEqual;
    std::optional<TensorInfo> a;  // if A has the parameter
    std::optional<TensorInfo> b;
    // For different tensors of Float16, BFloat16, Float32 or Float64, if `values` was set. The
    // elements are those of the lowest rank that holds each shard.
    std::optional<ValueDifference> values;
    // Ranks whose value no rank of the other side holds. Filled only for a parameter that no layout
    // cuts, and only if these are some and not all of its ranks.
    std::vector<int64_t> a_ranks;
    std::vector<int64_t> b_ranks;
  };

  std::vector<Warning> warnings;
  std::vector<std::string> notes;     // need no action
  std::vector<Parameter> parameters;  // in the order of A's files, then those only in B
  uint64_t bytes = 0;                 // of the parameters that were compared, on each side
  uint64_t bytes_read = 0;  // of both sides; includes the full sizes of files that were read whole
  // How the ranks of each side agree; no value with one_replica.
  std::optional<ReplicaReport> a;
  std::optional<ReplicaReport> b;

  uint64_t Count(Relation relation) const;
  // Whether all parameters and all replicas on either side are equal.
  bool equal() const;
};

// Compares two checkpoints. Every file of both sides is read once, into digests of 128 bits of each
// shard. The digests of ranks that hold the same shard are compared, then the digests of the full
// tensors of both sides. Replicas that differ are compared again, byte by byte. Files with a CRC
// trailer are checked first.
// Errors:
//   kInvalidArgument: also if the patterns select no parameter
//   kChanged: a file changed meanwhile
//   kNotFound, kCorrupt, kMismatch, kUnsupported, kIo, kResourceExhausted, kCancelled
Result<DiffReport> Diff(const DiffOptions& options);

struct StatisticsReport {
  // int64_t for signed integers, uint64_t for unsigned integers and Bool, double for floats: exact.
  using Number = std::variant<int64_t, uint64_t, double>;

  struct Values {
    uint64_t values = 0;  // Complex: two for each element, its parts; Int4: two for each byte
    uint64_t nans = 0;
    uint64_t infinities = 0;
    // Of the values that are not NaN or infinite; no value if there are none.
    std::optional<Number> least;
    std::optional<Number> greatest;
    std::optional<double>
        mean;  // summed up in double: the same for every layout and number of jobs
  };

  struct Parameter : TensorInfo {
    std::optional<Values> statistics;  // of tensors, except HiFloat8
  };

  std::vector<Warning> warnings;
  std::vector<Parameter> parameters;  // in the order of the files
  uint64_t bytes = 0;                 // read
};

// Measures the values. For a parameter that no layout cuts, reads the lowest rank that has it. If
// the patterns select no parameter, the report is empty.
// Errors: kInvalidArgument, kNotFound, kCorrupt, kMismatch, kUnsupported; kChanged if a file
// changed meanwhile; kIo, kResourceExhausted, kCancelled.
Result<StatisticsReport> MeasureValues(const ContentOptions& options);

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_COMPARE_H_
