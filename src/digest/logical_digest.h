// The logical digest of a parameter: 128 bits that do not depend on how the parameter is cut.
//
// Its bytes (row-major, whole) are a polynomial over GF(2): the sum of byte_i * x^(8 i), in which
// bit j of a byte counts x^j more, modulo x^128 + x^7 + x^2 + x + 1. Each run contributes its own
// polynomial times x^(8 position). So the contributions of any cut add up, in any order, by XOR.
// Exchanging or shifting runs with unequal digests changes the sum. Zeros contribute 0, so dtype,
// full shape and length are compared beside it. It guards against accidents, not malice.
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

  // Adds the contribution of `size` bytes to `sum`. The first byte has logical offset `position`.
  // Positions are below 2^63.
  void Add(Digest128& sum, const std::byte* bytes, uint64_t size, uint64_t position);
  void AddRuns(Digest128& sum, const LogicalRuns& runs);

 private:
  // x^(8 distance) for one distance between two positions.
  struct Step {
    uint64_t distance = 0;
    Digest128 power{.low = 1, .high = 0};
  };
  // x^(8 i * distance) for the first `count` values of i.
  struct RunPowers {
    uint64_t distance = 0;
    size_t count = 1;
    std::array<Digest128, 64> powers{Digest128{.low = 1, .high = 0}};
  };

  void AddLong(Digest128& sum, const std::byte* bytes, uint64_t size, uint64_t position);
  void AddAt(Digest128& sum, const KernelRuns& runs, const Digest128* run_powers,
             uint64_t position);
  // Distances are modulo 2^64: from 2^63 on they are negative.
  const Digest128& StepPower(uint64_t distance);
  const Digest128* PowersOfRuns(uint64_t distance, size_t count);

  const LogicalKernel* kernel_;
  uint64_t position_ = 0;                 // of the last runs
  Digest128 power_{.low = 1, .high = 0};  // x^(8 position_)
  // Positions mostly move by a few distances that repeat. The oldest entry is replaced.
  std::array<Step, 8> steps_;
  size_t next_step_ = 0;
  std::array<RunPowers, 4> run_powers_;
  size_t next_run_powers_ = 0;
};

}  // namespace reshard

#endif  // RESHARD_SRC_DIGEST_LOGICAL_DIGEST_H_
