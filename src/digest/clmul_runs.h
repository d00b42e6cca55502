// The logical digest of short runs with carry-less multiplication (vector128.h), for the kernels of
// processors that have it.
#ifndef RESHARD_SRC_DIGEST_CLMUL_RUNS_H_
#define RESHARD_SRC_DIGEST_CLMUL_RUNS_H_

#include <cstddef>
#include <cstdint>

#include "src/digest/gf128.h"
#include "src/digest/kernel_target.h"
#include "src/digest/load_word.h"
#include "src/digest/logical_kernel.h"
#include "src/digest/vector128.h"

namespace reshard {

// A sum of products by factors of 64 bits: low + high * x^64.
struct NarrowProducts {
  Vector128 low;
  Vector128 high;
};

RESHARD_KERNEL_TARGET static inline void AddProduct(NarrowProducts& sum, Vector128 value,
                                                    Vector128 factor) {
  sum.low = Xor(sum.low, LowLow(value, factor));
  sum.high = Xor(sum.high, HighLow(value, factor));
}

// The sum modulo P, for factors of degree 56 at most. Then the part beyond x^128 has 56 bits, and
// 64 bits after its multiplication by the tail of P.
RESHARD_KERNEL_TARGET static inline Vector128 Reduced(const NarrowProducts& sum) {
  const Vector128 over = HighLow(sum.high, MakeVector(kFieldTail));
  return Xor(Xor(sum.low, Up64(sum.high)), over);
}

// A sum of products of 128 by 128 bits: low + middle * x^64 + high * x^128.
struct WideProducts {
  Vector128 low;
  Vector128 middle;
  Vector128 high;
};

RESHARD_KERNEL_TARGET static inline void AddProduct(WideProducts& sum, Vector128 a, Vector128 b) {
  sum.low = Xor(sum.low, LowLow(a, b));
  sum.middle = Xor(sum.middle, Xor(HighLow(a, b), HighLow(b, a)));
  sum.high = Xor(sum.high, HighHigh(a, b));
}

RESHARD_KERNEL_TARGET static inline Vector128 Reduced(const WideProducts& sum) {
  const Vector128 tail = MakeVector(kFieldTail);
  Vector128 low = Xor(sum.low, Up64(sum.middle));
  Vector128 high = Xor(sum.high, Down64(sum.middle));
  // The upper half of high is at x^192. The lower half, with the remainder of the upper one, is at
  // x^128.
  const Vector128 upper = HighLow(high, tail);
  low = Xor(low, Up64(upper));
  high = Xor(high, Down64(upper));
  return Xor(low, LowLow(high, tail));
}

RESHARD_KERNEL_TARGET static inline Vector128 Product(Vector128 a, Vector128 b) {
  WideProducts product{MakeVector(0), MakeVector(0), MakeVector(0)};
  AddProduct(product, a, b);
  return Reduced(product);
}

// sum * x^(128 count) + the words at `words`; count is 1 to 8.
RESHARD_KERNEL_TARGET static inline Vector128 FoldWords(Vector128 sum, const std::byte* words,
                                                        size_t count) {
  NarrowProducts products{MakeVector(0), MakeVector(0)};
  AddProduct(products, sum, MakeVector(kWordPowers[count]));
  for (size_t k = 1; k < count; ++k) {
    AddProduct(products, LoadVector(words + 16 * k), MakeVector(kWordPowers[k]));
  }
  return Xor(Reduced(products), LoadVector(words));
}

// The polynomial of a run modulo P. It goes from the end of the run, so that each step multiplies
// the intermediate result by one constant.
RESHARD_KERNEL_TARGET static inline Vector128 ReduceRun(const std::byte* bytes, uint64_t size) {
  if (size < 16) {
    const Digest128 part = LoadPartOfWord(bytes, size);
    return MakeVector(part.low, part.high);
  }
  const std::byte* words = bytes + size - size % 16;
  Vector128 sum;
  if (size % 16 != 0) {
    const Digest128 part = LoadPartOfWord(words, size % 16);
    sum = MakeVector(part.low, part.high);
  } else {
    words -= 16;
    sum = LoadVector(words);
  }
  constexpr size_t kGroup = 8;
  const size_t rest = static_cast<size_t>(words - bytes) / 16 % kGroup;
  if (rest != 0) {
    words -= 16 * rest;
    sum = FoldWords(sum, words, rest);
  }
  while (words != bytes) {
    words -= 16 * kGroup;
    sum = FoldWords(sum, words, kGroup);
  }
  return sum;
}

// The sum of run_powers[i] times run i, each an Integer: half the multiplications.
template <typename Integer>
RESHARD_KERNEL_TARGET static Vector128 SumOfIntegers(const KernelRuns& runs,
                                                     const Digest128* run_powers) {
  NarrowProducts sum{MakeVector(0), MakeVector(0)};
  for (uint64_t i = 0; i < runs.count; ++i) {
    AddProduct(sum, LoadVector(&run_powers[i]),
               MakeVector(LoadInteger<Integer>(runs.bytes + i * runs.stride)));
  }
  return Reduced(WideProducts{sum.low, sum.high, MakeVector(0)});
}

RESHARD_KERNEL_TARGET static inline Vector128 SumOfRuns(const KernelRuns& runs,
                                                        const Digest128* run_powers) {
  if (runs.count == 1) return ReduceRun(runs.bytes, runs.size);
  switch (runs.size) {
    case 1:
      return SumOfIntegers<uint8_t>(runs, run_powers);
    case 2:
      return SumOfIntegers<uint16_t>(runs, run_powers);
    case 4:
      return SumOfIntegers<uint32_t>(runs, run_powers);
    case 8:
      return SumOfIntegers<uint64_t>(runs, run_powers);
    default:
      break;
  }
  WideProducts sum{MakeVector(0), MakeVector(0), MakeVector(0)};
  for (uint64_t i = 0; i < runs.count; ++i) {
    AddProduct(sum, ReduceRun(runs.bytes + i * runs.stride, runs.size), LoadVector(&run_powers[i]));
  }
  return Reduced(sum);
}

// The end of LogicalKernel::add_runs, with the sum over the runs.
RESHARD_KERNEL_TARGET static inline void AddAtPower(Vector128 runs, const Digest128& step,
                                                    Digest128& power, Digest128& sum) {
  const Vector128 moved = Product(LoadVector(&power), LoadVector(&step));
  const Vector128 added = Xor(LoadVector(&sum), Product(moved, runs));
  StoreVector(&power, moved);
  StoreVector(&sum, added);
}

RESHARD_KERNEL_TARGET static inline Digest128 ClmulMultiply(Digest128 a, Digest128 b) {
  return ToDigest(Product(MakeVector(a.low, a.high), MakeVector(b.low, b.high)));
}

RESHARD_KERNEL_TARGET static inline void ClmulAddRuns(const KernelRuns& runs,
                                                      const Digest128* run_powers,
                                                      const Digest128& step, Digest128& power,
                                                      Digest128& sum) {
  AddAtPower(SumOfRuns(runs, run_powers), step, power, sum);
}

}  // namespace reshard

#endif  // RESHARD_SRC_DIGEST_CLMUL_RUNS_H_
