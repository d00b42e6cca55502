// Which layouts explain what the ranks of a stage hold of a parameter.
//
// Only contents that are told apart by their digests are known here, no bytes. A rank is taken for
// a number of digits, as in a device matrix: each digit cuts a dimension or is free, so that ranks
// which differ in it are replicas. Pure functions; any thread.
#ifndef RESHARD_SRC_MINDSPORE_LAYOUT_INFERENCE_H_
#define RESHARD_SRC_MINDSPORE_LAYOUT_INFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reshard/strategy.h"

namespace reshard {

// Equal numbers: equal bytes.
using ContentClass = uint32_t;

struct ShardEvidence {
  std::vector<int64_t> cuts;             // parts of each dimension; their product divides the ranks
  std::vector<ContentClass> ranks;       // what each rank of the stage holds
  std::vector<ContentClass> parts = {};  // what a reference holds at each part, row-major; or empty
};

struct LayoutCandidate {
  ParameterLayout layout;
  std::vector<uint32_t> part_of_rank;  // row-major

  // Returns whether ranks hold the same where they are replicas.
  bool Explains(const ShardEvidence& evidence) const;
  // Returns whether each rank holds its part of the reference, which there has to be.
  bool HasParts(const ShardEvidence& evidence) const;
  // Returns the class of each part: equal ones mean that conversions give equal bytes.
  std::vector<ContentClass> Contents(const ShardEvidence& evidence) const;
};

struct LayoutCandidates {
  std::vector<LayoutCandidate> found;  // distinct part_of_rank, the plainest layout first
  bool more = false;                   // the search was given up
};

// Returns layouts under which ranks that hold the same part have the same content, and, where there
// is a reference, each rank has that of its part. Where the parts of a reference differ from one
// another there is one at most. Without a reference those layouts are left out that cut a dimension
// over several device axes otherwise than by optimizer sharding: values have to ask for them.
LayoutCandidates FindLayouts(const ShardEvidence& evidence);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_LAYOUT_INFERENCE_H_
