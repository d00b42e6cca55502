// The logical digest in plain C++. x^128 has so few terms that long runs need no multiplication.
#include "src/digest/fold_ring.h"
#include "src/digest/gf128.h"
#include "src/digest/load_word.h"
#include "src/digest/logical_kernel.h"

namespace reshard {
namespace {

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

}  // namespace reshard
