#include "src/digest/logical_kernel.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <array>

namespace reshard {
namespace {

struct Available {
  std::array<const LogicalKernel*, 4> kernels{};
  size_t size = 0;
};

Available Detect() {
  Available available;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("pclmul")) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("vpclmulqdq")) {
      available.kernels[available.size++] = &kAvx512LogicalKernel;
    }
    if (__builtin_cpu_supports("avx2")) available.kernels[available.size++] = &kAvx2LogicalKernel;
    available.kernels[available.size++] = &kPclmulLogicalKernel;
  }
#elif defined(__aarch64__)
  if ((getauxval(AT_HWCAP) & HWCAP_PMULL) != 0) {
    available.kernels[available.size++] = &kPmullLogicalKernel;
  }
#endif
  available.kernels[available.size++] = &kPortableLogicalKernel;
  return available;
}

}  // namespace

std::span<const LogicalKernel* const> LogicalKernels() {
  static const Available kAvailable = Detect();
  return std::span(kAvailable.kernels).first(kAvailable.size);
}

}  // namespace reshard
