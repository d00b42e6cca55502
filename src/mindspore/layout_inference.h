// Finds the layouts that explain the shards of a parameter in the ranks of a stage.
//
// It knows contents only by their digests, without bytes. A rank is a number with digits, as in a
// device matrix: each digit cuts a dimension, or is free. Ranks that differ in a free digit are
// replicas. Pure functions; any thread.
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
  std::vector<int64_t> cuts;        // parts of each dimension; their product divides the ranks
  std::vector<ContentClass> ranks;  // the content of each rank of the stage
  // the reference's content of each part, row-major; or empty
  std::vector<ContentClass> parts = {};
};

struct LayoutCandidate {
  ParameterLayout layout;
  std::vector<uint32_t> part_of_rank;  // row-major

  // Returns whether all replicas have the same content.
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

// Returns layouts that explain the contents. Ranks that hold the same part have the same content.
// With a reference, each rank has the content of its part, and if the parts of the reference differ
// from one another there is at most one layout. Without a reference, layouts are left out that cut
// a dimension over several device axes other than by optimizer sharding, because only values could
// confirm them.
LayoutCandidates FindLayouts(const ShardEvidence& evidence);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_LAYOUT_INFERENCE_H_
