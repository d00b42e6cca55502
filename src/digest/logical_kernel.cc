#include "src/digest/logical_kernel.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "src/base/kernel_list.h"
#include "src/digest/fold_ring.h"
#include "src/digest/gf128.h"
#include "src/digest/load_word.h"

namespace reshard {
namespace {

using Available = KernelList<LogicalKernel, 4>;

Available Detect() {
  Available available;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("pclmul")) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("vpclmulqdq")) {
      available.Add(kAvx512LogicalKernel);
    }
    if (__builtin_cpu_supports("avx2")) available.Add(kAvx2LogicalKernel);
    available.Add(kPclmulLogicalKernel);
  }
#elif defined(__aarch64__)
  if ((getauxval(AT_HWCAP) & HWCAP_PMULL) != 0) {
    available.Add(kPmullLogicalKernel);
  }
#endif
  available.Add(kPortableLogicalKernel);
  return available;
}

// In plain C++. x^128 has so few terms that long runs need no multiplication.
Digest128 ReduceRun(const std::byte* bytes, uint64_t size) {
  // By Horner's rule from the end.
  const std::byte* word = bytes + size - size % 16;
  Digest128 sum = LoadPartOfWord(word, size % 16);
  while (word != bytes) {
    word -= 16;
    sum = TimesX128(sum) ^ LoadWord(word);
  }
  return sum;
}

void AddRuns(const KernelRuns& runs, const Digest128* run_powers, const Digest128& step,
             Digest128& power, Digest128& sum) {
  Digest128 value = ReduceRun(runs.bytes, runs.size);
  for (uint64_t i = 1; i < runs.count; ++i) {
    // The factor that may be short second: FieldMultiply takes a step for each of its digits.
    value ^= FieldMultiply(run_powers[i], ReduceRun(runs.bytes + i * runs.stride, runs.size));
  }
  power = FieldMultiply(power, step);
  sum ^= FieldMultiply(power, value);
}

}  // namespace

const LogicalKernel kPortableLogicalKernel{.name = "portable",
                                           .multiply = FieldMultiply,
                                           .add_runs = AddRuns,
                                           .fold_ring = FoldRing<16>,
                                           .ring_bytes = kRingUnits * 16};

std::span<const LogicalKernel* const> LogicalKernels() {
  static const Available kAvailable = Detect();
  return kAvailable.span();
}

}  // namespace reshard
