// What a layout means, element by element: the oracle of the conversions.
//
// Straight from the definition (docs/reference/layouts.md), slow, and without a line of the
// library's: only its plain structs.
#ifndef RESHARD_TESTS_SUPPORT_NAIVE_RESHARD_H_
#define RESHARD_TESTS_SUPPORT_NAIVE_RESHARD_H_

#include <cstdint>
#include <vector>

#include "reshard/strategy.h"
#include "tests/support/test_tensor.h"

namespace reshard {

// What one rank of a stage holds of a tensor: part `part[d]` of `cuts[d]` equal ones along each
// dimension d.
struct NaiveParts {
  std::vector<int64_t> part;
  std::vector<int64_t> cuts;
  friend bool operator==(const NaiveParts&, const NaiveParts&) = default;
};

// Returns what local rank `rank` holds of a tensor of `dims` dimensions. Throws where optimizer
// sharding cannot be placed.
NaiveParts PartsByDefinition(const ParameterLayout& layout, size_t dims, int64_t rank);

// Returns the same of an entry of a specification (docs/guide/strategies.md): replicas are the
// slowest, the last dimension is the fastest; the optimizer's shard is the replica modulo their
// number.
NaiveParts PartsBySpecification(const std::vector<int64_t>& cuts, int64_t optimizer_shards,
                                int64_t rank);

// Returns the shard of the tensor `full` that local rank `rank` holds.
TestTensor NaiveShard(const TestTensor& full, const ParameterLayout& layout, int64_t rank);

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_NAIVE_RESHARD_H_
