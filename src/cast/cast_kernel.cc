#include "src/cast/cast_kernel.h"

#include "src/base/kernel_list.h"
#include "src/cast/cast_loop.h"

namespace reshard {
namespace {

using Available = KernelList<CastKernel, 3>;

Available Detect() {
  Available available;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    available.Add(kAvx512CastKernel);
  }
  if (__builtin_cpu_supports("avx2")) available.Add(kAvx2CastKernel);
#endif
  available.Add(kPortableCastKernel);
  return available;
}

}  // namespace

// The vectors that every processor of its kind has: SSE2, NEON. F16C is not used: it makes other
// NaNs than the rules require, and mending them takes as long as the loops take in all.
const CastKernel kPortableCastKernel{.name = "portable", .cast = CastValues};

std::span<const CastKernel* const> CastKernels() {
  static const Available kAvailable = Detect();
  return kAvailable.span();
}

}  // namespace reshard
