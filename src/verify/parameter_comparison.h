// Compares the contents of files: equal parameters of two checkpoints in any layouts, byte by byte
// or as floats; and contents that should be the same in several files.
//
// As thread-safe as the arguments.
#ifndef RESHARD_SRC_VERIFY_PARAMETER_COMPARISON_H_
#define RESHARD_SRC_VERIFY_PARAMETER_COMPARISON_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reshard/compare.h"
#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/io/shared_work.h"
#include "src/io/source_files.h"
#include "src/mindspore/merge_target.h"
#include "src/plan/make_copies.h"
#include "src/source/source.h"

namespace reshard {

// Returns whether CompareValues knows the elements of `dtype`: Float16, BFloat16, Float32, Float64.
bool HasComparableValues(DType dtype);

// Adds how the elements of `a` and `b` differ to `difference`. Both are equally long, whole
// elements of `dtype`, which HasComparableValues.
void CompareValues(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b,
                   DiffReport::ValueDifference& difference);

// Adds what was found in other elements of the same tensors.
void AddValues(const DiffReport::ValueDifference& other, DiffReport::ValueDifference& difference);

// Two parameters with the same dtype, full shape and length in bytes.
struct ParameterPair {
  const SourceTensor* a = nullptr;
  const SourceTensor* b = nullptr;
};

struct PairDifference {
  bool differs = false;
  DiffReport::ValueDifference values;  // if they were requested and HasComparableValues
};

// Returns the difference of each pair of parameters of `a` and `b`. Without `with_values`, stops
// reading a pair soon after the first difference. Errors: kMismatch if no file holds a shard; as
// SourceFiles; kCancelled.
Result<std::vector<PairDifference>> CompareParameters(const Source& a, const Source& b,
                                                      const std::vector<ParameterPair>& pairs,
                                                      bool with_values, const SharedWork& work);

// One that is not as the first of its group.
struct ContentDifference {
  size_t group = 0;
  size_t content = 0;
  uint64_t offset = 0;  // of the first byte that differs
};

// Returns the bytes that comparing `groups` reads.
uint64_t BytesToCompare(std::span<const EqualContents> groups);

// Reads each content once, in step with the others of its group. Returns contents that differ from
// the first, by group and content. Errors: as SourceFiles; kCancelled.
Result<std::vector<ContentDifference>> CompareContents(SourceFiles& files,
                                                       std::span<const EqualContents> groups,
                                                       const SharedWork& work);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_PARAMETER_COMPARISON_H_
