// What comparisons of checkpoints find: in values, in files, between replicas, and damage, what in
// a target folder is not as its manifests say.
//
// Plain values; no locking.
//
// Implemented in src/verify (header only).
#ifndef RESHARD_DIFFERENCES_H_
#define RESHARD_DIFFERENCES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reshard/byte_range.h"

namespace reshard {
inline namespace v0_1 {

// How the elements of two float tensors of one dtype and shape differ. Elements of the same bits
// are equal, NaNs among them; the three counts have no element in common.
struct ValueDifference {
  uint64_t numbers = 0;             // two numbers of other bits (0 and -0 too)
  uint64_t nan_against_number = 0;  // a NaN on one side only
  uint64_t nan_against_nan = 0;     // two NaNs of other bits
  double greatest = 0;              // the greatest absolute difference of two numbers
};

// The first byte of a target file that is not what the sources say.
struct FirstDifference {
  uint64_t offset = 0;  // in the target file
  std::string
      parameter;  // whose content it is, or whose header; "" in the header of an empty tensor
  bool in_header = false;
  // Of a byte of content, where it belongs and where it comes from.
  uint64_t shard_offset = 0;  // in the row-major bytes of the target's shard
  std::string source_path;
  uint64_t source_offset = 0;
  uint8_t expected = 0;
  uint8_t found = 0;
};

// A target file that is not what the sources say.
struct FileDifference {
  std::string path;  // relative to the target folder
  uint64_t expected_size = 0;
  std::optional<uint64_t> found_size;    // none: there is no such file
  std::optional<FirstDifference> first;  // within the bytes that both have
  uint64_t differing_bytes = 0;          // likewise
  std::vector<std::string> parameters;   // those that differ, in file order, at most 20
  uint64_t parameter_count = 0;          // all of them
};

// Two ranks that ought to hold the same shard of a parameter.
struct ReplicaPair {
  int64_t rank = 0;
  int64_t reference = 0;    // the lowest rank that holds the shard
  bool other_type = false;  // another dtype or shape
  uint64_t offset = 0;      // else: the first byte of the shard that differs
};

// A parameter whose replicas differ.
struct ReplicaDifference {
  std::string parameter;
  int64_t stage = 0;               // of the source
  std::vector<ReplicaPair> pairs;  // by shard, then by rank; at most 20
  uint64_t pair_count = 0;         // all of them
};

struct ReplicaReport {
  uint64_t compared = 0;  // parameters that two or more ranks hold the same shard of, in each stage
  uint64_t shards = 0;    // of these parameters, held by two or more ranks; each rank's counts
  uint64_t bytes = 0;     // of these shards
  uint64_t differing = 0;                      // of the parameters
  std::vector<ReplicaDifference> differences;  // in the order of the strategy, at most 20
};

// What a sample of replicas read.
struct ReplicaSample {
  uint64_t parameters = 0;    // sampled, in each stage
  uint64_t comparisons = 0;   // of a rank's part of a parameter with a replica of it
  uint64_t files = 0;         // sampled
  uint64_t files_opened = 0;  // of these, only for the sample
  uint64_t reads = 0;
  uint64_t bytes = 0;
  double seconds = 0;
};

// What the ranks of one checkpoint hold of the same parameters.
struct RankFindings {
  ReplicaReport replicas;
  // Parameters of which ranks hold different values, as they may: those that are in no layout, or
  // in one that does not cut them, in the order of the files, and accumulated gradients
  // (accu_grads*) whose replicas differ.
  std::vector<std::string> own_values;
};

enum class DamageKind {
  kManifest,  // it is damaged: what it lists was not looked at
  kRecord,    // a part record is missing or damaged: its file was compared without it
  kMissing,   // there is no such file
  kNoFile,    // something else is in its place, or on the way to it; links are not followed
  kSize,      // shorter or longer
  kContent,   // of the right size, but with other bytes
};

// A stretch of a file that has a digest of its own.
struct DamagedBlock {
  uint64_t index = 0;
  ByteRange range;
};

// One thing that is wrong.
struct Damage {
  // Relative to the target folder: of a target file, part record, manifest or list of checksums.
  std::string path;
  DamageKind kind = DamageKind::kContent;
  std::string detail = {};                 // what was expected and found, in words
  std::optional<DamagedBlock> block = {};  // the first that is bad or cut off, where that is known
  uint64_t bad_blocks = 0;
  // Those whose content in a bad block is not what it was; where no content is, those whose header
  // lies in a bad block. In file order, at most 20.
  std::vector<std::string> parameters = {};
  uint64_t parameter_count = 0;  // all of them
};

struct DamageReport {
  std::vector<std::string> manifests;  // their names, sorted
  uint64_t files = 0;                  // that the manifests list
  uint64_t bytes = 0;                  // that were read of them
  uint64_t files_without_digest = 0;   // of which nothing but the size is known
  std::vector<Damage> damages;         // by manifest, then by path
  std::vector<std::string> notes;      // lists of checksums that are missing
};

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_DIFFERENCES_H_
