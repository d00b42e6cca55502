// ValueSums: the sums of a tensor's values, for a stretch or for whole parameters in any layout.
//
// Plain values; as thread-safe as the arguments.
#ifndef RESHARD_SRC_VERIFY_VALUE_SUMS_H_
#define RESHARD_SRC_VERIFY_VALUE_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/io/shared_work.h"
#include "src/io/source_files.h"
#include "src/source/source.h"

namespace reshard {

struct ValueSums {
  uint64_t values = 0;
  uint64_t nans = 0;
  uint64_t infinities = 0;
  // Of the values that are not NaN or infinite, if there are any; int64_t, uint64_t or double.
  std::variant<int64_t, uint64_t, double> least{};
  std::variant<int64_t, uint64_t, double> greatest{};
  double sum = 0;

  uint64_t finite() const { return values - nans - infinities; }

  // Adds the sums of other values of the same tensor. The result depends on the order.
  void Add(const ValueSums& other);
};

// Returns whether SumValues knows the values of `dtype`: all but notes and HiFloat8.
bool HasSums(DType dtype);

// The most bytes of a stretch.
inline constexpr size_t kMostSummedBytes = size_t{1} << 20;

// Returns the sums of a stretch of whole elements of `dtype`, which HasSums.
ValueSums SumValues(DType dtype, std::span<const std::byte> bytes);

// Returns whether a parameter has values to be added up.
bool HasValues(const SourceTensor& parameter);

// Returns the sums of each of `parameters`, which belong to `source`; no value for parameters
// without values. The values are added in row-major order, in stretches of fixed length, so the
// sums do not depend on layout or number of workers. Errors: kMismatch if no file holds a shard;
// those of SourceFiles; kCancelled.
Result<std::vector<std::optional<ValueSums>>> SumParameters(
    const Source& source, const std::vector<SourceTensor>& parameters, const SharedWork& work);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_VALUE_SUMS_H_
