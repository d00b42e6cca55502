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
  // The polynomial of the bytes (gf128.h), byte 0 at x^0, modulo P.
  Digest128 (*reduce)(const std::byte* bytes, uint64_t size);
  Digest128 (*multiply)(const Digest128& a, const Digest128& b);
};

// Those that this processor can run, the fastest first; the last is the portable one.
std::span<const LogicalKernel* const> LogicalKernels();

extern const LogicalKernel kPortableLogicalKernel;
#if defined(__x86_64__)
extern const LogicalKernel kPclmulLogicalKernel;
#endif

}  // namespace reshard

#endif  // RESHARD_SRC_DIGEST_LOGICAL_KERNEL_H_
