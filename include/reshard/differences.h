// What comparisons of checkpoints find: in values, in files, between replicas.
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

namespace reshard {

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

// What the ranks of one checkpoint hold of the same parameters.
struct RankFindings {
  ReplicaReport replicas;
  // Parameters of which ranks hold different values, as they may: those that are in no layout, or
  // in one that does not cut them, in the order of the files, and accumulated gradients
  // (accu_grads*) whose replicas differ.
  std::vector<std::string> own_values;
};

}  // namespace reshard

#endif  // RESHARD_DIFFERENCES_H_
