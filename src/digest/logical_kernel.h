// The arithmetic behind LogicalHasher, once for each kind of processor. All kernels give the same
// results; the functions are pure and may be called by any thread, and under Guarded().
#ifndef RESHARD_SRC_DIGEST_LOGICAL_KERNEL_H_
#define RESHARD_SRC_DIGEST_LOGICAL_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/digest/digest128.h"

namespace reshard {

struct LogicalKernel {
  const char* name;
  Digest128 (*multiply)(const Digest128& a, const Digest128& b);
  // The polynomial of the bytes (gf128.h), byte 0 at x^0, modulo P.
  Digest128 (*reduce)(const std::byte* bytes, uint64_t size);
  // The sum over i of powers[i] times the polynomial of the i-th of `count` runs of `size` bytes,
  // which lie `stride` bytes apart.
  Digest128 (*reduce_runs)(const std::byte* bytes, uint64_t size, uint64_t stride,
                           const Digest128* powers, size_t count);
  // FoldRing() with its ring of ring_bytes, at most kMaxRingBytes and aligned to kRingAlignment.
  void (*fold_ring)(const std::byte* bytes, uint64_t rings, std::byte* ring);
  size_t ring_bytes;
};

inline constexpr size_t kMaxRingBytes = 8192;
inline constexpr size_t kRingAlignment = 64;

// Those that this processor can run, the fastest first; the last is the portable one.
std::span<const LogicalKernel* const> LogicalKernels();

extern const LogicalKernel kPortableLogicalKernel;
#if defined(__x86_64__)
extern const LogicalKernel kPclmulLogicalKernel;
extern const LogicalKernel kAvx2LogicalKernel;
extern const LogicalKernel kAvx512LogicalKernel;
#endif

}  // namespace reshard

#endif  // RESHARD_SRC_DIGEST_LOGICAL_KERNEL_H_
