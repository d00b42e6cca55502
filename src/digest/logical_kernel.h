// The arithmetic behind LogicalHasher, once for each kind of processor. All kernels give the same
// results. Their functions keep no state: any thread may call them, and under Guarded() too.
#ifndef RESHARD_SRC_DIGEST_LOGICAL_KERNEL_H_
#define RESHARD_SRC_DIGEST_LOGICAL_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/digest/digest128.h"

namespace reshard {

// Runs of `size` bytes, `stride` bytes apart in memory.
struct KernelRuns {
  const std::byte* bytes;
  uint64_t size;
  uint64_t stride;
  uint64_t count;
};

struct LogicalKernel {
  const char* name;

  // The product in the field of gf128.h.
  Digest128 (*multiply)(Digest128 a, Digest128 b);

  // Multiplies `power` by `step` and adds to `sum` the new power times the sum over i of
  // run_powers[i] times the polynomial of run i. run_powers[0] is 1. Changes power and sum only
  // after the last byte is read.
  void (*add_runs)(const KernelRuns& runs, const Digest128* run_powers, const Digest128& step,
                   Digest128& power, Digest128& sum);

  // FoldRing() with a ring of ring_bytes, which are at most kMaxRingBytes and aligned to
  // kRingAlignment.
  void (*fold_ring)(const std::byte* bytes, uint64_t rings, std::byte* ring);
  size_t ring_bytes;
};

inline constexpr size_t kMaxRingBytes = 8192;
inline constexpr size_t kRingAlignment = 64;

// The kernels that this processor can run, the fastest first; the last is the portable one.
std::span<const LogicalKernel* const> LogicalKernels();

extern const LogicalKernel kPortableLogicalKernel;
#if defined(__x86_64__)
extern const LogicalKernel kPclmulLogicalKernel;
extern const LogicalKernel kAvx2LogicalKernel;
extern const LogicalKernel kAvx512LogicalKernel;
#elif defined(__aarch64__)
extern const LogicalKernel kPmullLogicalKernel;
#endif

}  // namespace reshard

#endif  // RESHARD_SRC_DIGEST_LOGICAL_KERNEL_H_
