// The logical digest of short runs with carry-less multiplication of 64 by 64 bits (PCLMULQDQ), for
// the kernels of x86-64. RESHARD_KERNEL_TARGET (kernel_target.h) has to include "pclmul".
#ifndef RESHARD_SRC_DIGEST_CLMUL_RUNS_H_
#define RESHARD_SRC_DIGEST_CLMUL_RUNS_H_

#include <emmintrin.h>
#include <wmmintrin.h>

#include <cstddef>
#include <cstdint>

#include "src/digest/gf128.h"
#include "src/digest/kernel_target.h"
#include "src/digest/load_word.h"
#include "src/digest/logical_kernel.h"

namespace reshard {

RESHARD_KERNEL_TARGET static inline __m128i MakeVector(uint64_t low, uint64_t high = 0) {
  return _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
}

RESHARD_KERNEL_TARGET static inline __m128i LoadVector(const void* bytes) {
  return _mm_loadu_si128(static_cast<const __m128i*>(bytes));
}

// A sum of products by factors of 64 bits: low + high * x^64.
struct NarrowProducts {
  __m128i low;
  __m128i high;
};

RESHARD_KERNEL_TARGET static inline void AddProduct(NarrowProducts& sum, __m128i value,
                                                    __m128i factor) {
  sum.low = _mm_xor_si128(sum.low, _mm_clmulepi64_si128(value, factor, 0x00));
  sum.high = _mm_xor_si128(sum.high, _mm_clmulepi64_si128(value, factor, 0x01));
}

// The sum modulo P, for factors of degree 56 at most: what exceeds x^128 then has 56 bits, and 64
// after its multiplication by the tail of P.
RESHARD_KERNEL_TARGET static inline __m128i Reduced(const NarrowProducts& sum) {
  const __m128i over = _mm_clmulepi64_si128(sum.high, MakeVector(kFieldTail), 0x01);
  return _mm_xor_si128(_mm_xor_si128(sum.low, _mm_slli_si128(sum.high, 8)), over);
}

// A sum of products of 128 by 128 bits: low + middle * x^64 + high * x^128.
struct WideProducts {
  __m128i low;
  __m128i middle;
  __m128i high;
};

RESHARD_KERNEL_TARGET static inline void AddProduct(WideProducts& sum, __m128i a, __m128i b) {
  sum.low = _mm_xor_si128(sum.low, _mm_clmulepi64_si128(a, b, 0x00));
  sum.middle = _mm_xor_si128(sum.middle, _mm_xor_si128(_mm_clmulepi64_si128(a, b, 0x01),
                                                       _mm_clmulepi64_si128(a, b, 0x10)));
  sum.high = _mm_xor_si128(sum.high, _mm_clmulepi64_si128(a, b, 0x11));
}

RESHARD_KERNEL_TARGET static inline __m128i Reduced(const WideProducts& sum) {
  const __m128i tail = MakeVector(kFieldTail);
  __m128i low = _mm_xor_si128(sum.low, _mm_slli_si128(sum.middle, 8));
  __m128i high = _mm_xor_si128(sum.high, _mm_srli_si128(sum.middle, 8));
  // The upper half of high is at x^192; the lower one, with what that leaves there, at x^128.
  const __m128i upper = _mm_clmulepi64_si128(high, tail, 0x01);
  low = _mm_xor_si128(low, _mm_slli_si128(upper, 8));
  high = _mm_xor_si128(high, _mm_srli_si128(upper, 8));
  return _mm_xor_si128(low, _mm_clmulepi64_si128(high, tail, 0x00));
}

RESHARD_KERNEL_TARGET static inline __m128i Product(__m128i a, __m128i b) {
  WideProducts product{_mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128()};
  AddProduct(product, a, b);
  return Reduced(product);
}

// sum * x^(128 count) + the words at `words`; count is 1 to 8.
RESHARD_KERNEL_TARGET static inline __m128i FoldWords(__m128i sum, const std::byte* words,
                                                      size_t count) {
  NarrowProducts products{_mm_setzero_si128(), _mm_setzero_si128()};
  AddProduct(products, sum, MakeVector(kWordPowers[count]));
  for (size_t k = 1; k < count; ++k) {
    AddProduct(products, LoadVector(words + 16 * k), MakeVector(kWordPowers[k]));
  }
  return _mm_xor_si128(Reduced(products), LoadVector(words));
}

// The polynomial of a run modulo P. From its end, so that each step multiplies what it has by one
// constant.
RESHARD_KERNEL_TARGET static inline __m128i ReduceRun(const std::byte* bytes, uint64_t size) {
  if (size < 16) {
    const Digest128 part = LoadPartOfWord(bytes, size);
    return MakeVector(part.low, part.high);
  }
  const std::byte* words = bytes + size - size % 16;
  __m128i sum;
  if (size % 16 != 0) {
    const Digest128 part = LoadPartOfWord(words, size % 16);
    sum = MakeVector(part.low, part.high);
  } else {
    words -= 16;
    sum = LoadVector(words);
  }
  uint64_t left = static_cast<uint64_t>(words - bytes) / 16;
  if (left % 8 != 0) {
    words -= left % 8 * 16;
    sum = FoldWords(sum, words, left % 8);
    left -= left % 8;
  }
  for (; left != 0; left -= 8) {
    words -= 8 * 16;
    sum = FoldWords(sum, words, 8);
  }
  return sum;
}

// The sum of run_powers[i] times run i, each an Integer: half the multiplications.
template <typename Integer>
RESHARD_KERNEL_TARGET static __m128i SumOfIntegers(const KernelRuns& runs,
                                                   const Digest128* run_powers) {
  NarrowProducts sum{_mm_setzero_si128(), _mm_setzero_si128()};
  for (uint64_t i = 0; i < runs.count; ++i) {
    AddProduct(sum, LoadVector(&run_powers[i]),
               MakeVector(LoadInteger<Integer>(runs.bytes + i * runs.stride)));
  }
  return Reduced(WideProducts{sum.low, sum.high, _mm_setzero_si128()});
}

RESHARD_KERNEL_TARGET static inline __m128i SumOfRuns(const KernelRuns& runs,
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
  WideProducts sum{_mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128()};
  for (uint64_t i = 0; i < runs.count; ++i) {
    AddProduct(sum, ReduceRun(runs.bytes + i * runs.stride, runs.size), LoadVector(&run_powers[i]));
  }
  return Reduced(sum);
}

// The end of LogicalKernel::add_runs, with the sum over the runs.
RESHARD_KERNEL_TARGET static inline void AddAtPower(__m128i runs, const Digest128& step,
                                                    Digest128& power, Digest128& sum) {
  const __m128i moved = Product(LoadVector(&power), LoadVector(&step));
  const __m128i added = _mm_xor_si128(LoadVector(&sum), Product(moved, runs));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&power), moved);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&sum), added);
}

RESHARD_KERNEL_TARGET static inline Digest128 ClmulMultiply(Digest128 a, Digest128 b) {
  const __m128i product = Product(MakeVector(a.low, a.high), MakeVector(b.low, b.high));
  return {.low = static_cast<uint64_t>(_mm_cvtsi128_si64(product)),
          .high = static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_srli_si128(product, 8)))};
}

RESHARD_KERNEL_TARGET static inline void ClmulAddRuns(const KernelRuns& runs,
                                                      const Digest128* run_powers,
                                                      const Digest128& step, Digest128& power,
                                                      Digest128& sum) {
  AddAtPower(SumOfRuns(runs, run_powers), step, power, sum);
}

}  // namespace reshard

#endif  // RESHARD_SRC_DIGEST_CLMUL_RUNS_H_
