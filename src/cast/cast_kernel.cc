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

// The vectors that every processor of its kind has: SSE2, NEON. F16C is of no use to any kernel: it
// makes other NaNs than the rules say, and to mend them takes what the loops take for all.
const CastKernel kPortableCastKernel{.name = "portable", .cast = CastValues};

std::span<const CastKernel* const> CastKernels() {
  static const Available kAvailable = Detect();
  return kAvailable.span();
}

}  // namespace reshard
