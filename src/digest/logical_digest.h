// The logical digest of a parameter: 128 bits that do not depend on how the parameter is cut.
//
// Its bytes (row-major, whole) are a polynomial over GF(2), the sum of byte_i * x^(8 i) where bit j
// of a byte is x^j more, modulo x^128 + x^7 + x^2 + x + 1. Each run contributes its own polynomial
// times x^(8 position), so the contributions of any cut add up, in any order, by XOR. Exchanging or
// shifting runs of unequal digests changes the sum. Zeros contribute nothing: dtype, full shape and
// length are compared beside it. It guards against accidents, not malice.
#ifndef RESHARD_SRC_DIGEST_LOGICAL_DIGEST_H_
#define RESHARD_SRC_DIGEST_LOGICAL_DIGEST_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/digest/digest128.h"
#include "src/digest/logical_kernel.h"

namespace reshard {

// Equally long runs at equal distances, both in memory and in the parameter.
struct LogicalRuns {
  const std::byte* bytes = nullptr;  // of the first run
  uint64_t size = 0;                 // of each run
  uint64_t position = 0;             // logical byte offset of the first run
  uint64_t count = 1;
  uint64_t bytes_stride = 0;     // from a run to the next, in memory
  uint64_t position_stride = 0;  // and in the parameter
};

// Computes contributions on the fastest path that this processor has. Holds caches only, no sums:
// one hasher serves any number of parameters. Belongs to one thread. Add and AddRuns may be called
// under Guarded(): after a fault the sum is undefined, the hasher is not.
class LogicalHasher {
 public:
  LogicalHasher();
  // On one path, for tests and benchmarks.
  explicit LogicalHasher(const LogicalKernel& kernel);

  // Adds to `sum` what the `size` bytes contribute whose first has logical byte offset `position`.
  void Add(Digest128& sum, const std::byte* bytes, uint64_t size, uint64_t position);
  void AddRuns(Digest128& sum, const LogicalRuns& runs);

 private:
  // As Add, by folding long runs first.
  void AddLong(Digest128& sum, const std::byte* bytes, uint64_t size, uint64_t position);
  // x^(8 position).
  Digest128 Power(uint64_t position);
  // x^(8 distance); a distance of 2^63 and more is a negative one.
  Digest128 StridePower(uint64_t distance);
  // The powers of runs that lie `stride` apart, at least `count` of them.
  const Digest128* RunPowers(uint64_t stride, size_t count);

  struct Stride {
    uint64_t distance = 0;  // between two positions, modulo 2^64
    Digest128 power{.low = 1, .high = 0};
  };

  const LogicalKernel* kernel_;
  uint64_t position_ = 0;  // the last one asked for
  Digest128 power_{.low = 1, .high = 0};
  // Positions mostly move by a few distances that repeat. Mapped directly by a hash of the
  // distance.
  std::array<Stride, 16> strides_;
  // x^(8 i * run_stride_) for the first run_count_ values of i.
  uint64_t run_stride_ = 0;
  size_t run_count_ = 1;
  std::array<Digest128, 32> run_powers_{Digest128{.low = 1, .high = 0}};
};

}  // namespace reshard

#endif  // RESHARD_SRC_DIGEST_LOGICAL_DIGEST_H_
