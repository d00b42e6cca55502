// The logical digest with carry-less multiplication of 64 by 64 bits (PCLMULQDQ).
#if defined(__x86_64__)

#include "src/digest/logical_pclmul.h"

#include <emmintrin.h>
#include <wmmintrin.h>

#include <array>
#include <cstring>

#include "src/digest/fold_ring.h"
#include "src/digest/gf128.h"
#include "src/digest/logical_kernel.h"

#define RESHARD_PCLMUL __attribute__((target("pclmul")))

namespace reshard {
namespace {

constexpr size_t kWord = 16;  // bytes
constexpr size_t kGroup = 8;  // words folded at a time

RESHARD_PCLMUL inline __m128i Constant(uint64_t low) {
  return _mm_cvtsi64_si128(static_cast<int64_t>(low));
}

RESHARD_PCLMUL inline __m128i Load(const std::byte* bytes) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}

RESHARD_PCLMUL inline __m128i LoadDigest(const Digest128& digest) {
  return _mm_set_epi64x(static_cast<int64_t>(digest.high), static_cast<int64_t>(digest.low));
}

RESHARD_PCLMUL inline Digest128 ToDigest(__m128i value) {
  return {.low = static_cast<uint64_t>(_mm_cvtsi128_si64(value)),
          .high = static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_srli_si128(value, 8)))};
}

// A sum of products by factors of 64 bits: low + high * x^64.
struct NarrowProducts {
  __m128i low = _mm_setzero_si128();
  __m128i high = _mm_setzero_si128();
};

RESHARD_PCLMUL inline void AddProduct(NarrowProducts& sum, __m128i value, __m128i factor) {
  sum.low = _mm_xor_si128(sum.low, _mm_clmulepi64_si128(value, factor, 0x00));
  sum.high = _mm_xor_si128(sum.high, _mm_clmulepi64_si128(value, factor, 0x01));
}

// The sum modulo P, but for the 7 bits that `over` may have too many: factors of at most 57 bits.
RESHARD_PCLMUL inline __m128i Reduced(const NarrowProducts& sum) {
  const __m128i over = _mm_clmulepi64_si128(sum.high, Constant(kFieldTail), 0x01);
  return _mm_xor_si128(_mm_xor_si128(sum.low, _mm_slli_si128(sum.high, 8)), over);
}

// A sum of products of 128 by 128 bits: low + middle * x^64 + high * x^128.
struct WideProducts {
  __m128i low = _mm_setzero_si128();
  __m128i middle = _mm_setzero_si128();
  __m128i high = _mm_setzero_si128();
};

RESHARD_PCLMUL inline void AddProduct(WideProducts& sum, __m128i a, __m128i b) {
  sum.low = _mm_xor_si128(sum.low, _mm_clmulepi64_si128(a, b, 0x00));
  sum.middle = _mm_xor_si128(sum.middle, _mm_xor_si128(_mm_clmulepi64_si128(a, b, 0x01),
                                                       _mm_clmulepi64_si128(a, b, 0x10)));
  sum.high = _mm_xor_si128(sum.high, _mm_clmulepi64_si128(a, b, 0x11));
}

RESHARD_PCLMUL inline __m128i Reduced(const WideProducts& sum) {
  const __m128i tail = Constant(kFieldTail);
  __m128i low = _mm_xor_si128(sum.low, _mm_slli_si128(sum.middle, 8));
  __m128i high = _mm_xor_si128(sum.high, _mm_srli_si128(sum.middle, 8));
  // The upper half of high is at x^192, then the lower one, with what that left there, at x^128.
  const __m128i upper = _mm_clmulepi64_si128(high, tail, 0x01);
  low = _mm_xor_si128(low, _mm_slli_si128(upper, 8));
  high = _mm_xor_si128(high, _mm_srli_si128(upper, 8));
  return _mm_xor_si128(low, _mm_clmulepi64_si128(high, tail, 0x00));
}

// sum * x^(128 count) + the words at `words`; count is at most kGroup.
RESHARD_PCLMUL inline __m128i FoldWords(__m128i sum, const std::byte* words, size_t count) {
  NarrowProducts products;
  AddProduct(products, sum, Constant(kWordPowers[count]));
  for (size_t k = 1; k < count; ++k) {
    AddProduct(products, Load(words + k * kWord), Constant(kWordPowers[k]));
  }
  return _mm_xor_si128(Reduced(products), Load(words));
}

RESHARD_PCLMUL inline __m128i ReduceWords(const std::byte* bytes, uint64_t size) {
  // From the end, so that each step multiplies what it has by one small constant.
  const std::byte* words = bytes + size - size % kWord;
  __m128i sum = _mm_setzero_si128();
  if (size % kWord != 0) {
    alignas(kWord) std::byte last[kWord] = {};
    std::memcpy(last, words, size % kWord);
    sum = Load(last);
  }
  if (const size_t count = size / kWord % kGroup; count != 0) {
    words -= count * kWord;
    sum = FoldWords(sum, words, count);
  }
  while (words != bytes) {
    words -= kGroup * kWord;
    sum = FoldWords(sum, words, kGroup);
  }
  return sum;
}

// Runs that fit an integer take half the multiplications.
template <typename Integer>
RESHARD_PCLMUL Digest128 ReduceIntegers(const std::byte* bytes, uint64_t stride,
                                        const Digest128* powers, size_t count) {
  NarrowProducts sum;
  for (size_t i = 0; i < count; ++i) {
    Integer value;
    std::memcpy(&value, bytes + i * stride, sizeof(value));
    AddProduct(sum, LoadDigest(powers[i]), Constant(value));
  }
  // Factors of up to 64 bits: the sum is reduced as wide products are.
  return ToDigest(Reduced(WideProducts{.low = sum.low, .middle = sum.high}));
}

}  // namespace

RESHARD_PCLMUL Digest128 PclmulMultiply(const Digest128& a, const Digest128& b) {
  WideProducts product;
  AddProduct(product, LoadDigest(a), LoadDigest(b));
  return ToDigest(Reduced(product));
}

RESHARD_PCLMUL Digest128 PclmulReduce(const std::byte* bytes, uint64_t size) {
  return ToDigest(ReduceWords(bytes, size));
}

RESHARD_PCLMUL Digest128 PclmulReduceRuns(const std::byte* bytes, uint64_t size, uint64_t stride,
                                          const Digest128* powers, size_t count) {
  switch (size) {
    case 1:
      return ReduceIntegers<uint8_t>(bytes, stride, powers, count);
    case 2:
      return ReduceIntegers<uint16_t>(bytes, stride, powers, count);
    case 4:
      return ReduceIntegers<uint32_t>(bytes, stride, powers, count);
    case 8:
      return ReduceIntegers<uint64_t>(bytes, stride, powers, count);
    default:
      break;
  }
  WideProducts sum;
  for (size_t i = 0; i < count; ++i) {
    AddProduct(sum, ReduceWords(bytes + i * stride, size), LoadDigest(powers[i]));
  }
  return ToDigest(Reduced(sum));
}

const LogicalKernel kPclmulLogicalKernel{.name = "pclmul",
                                         .multiply = PclmulMultiply,
                                         .reduce = PclmulReduce,
                                         .reduce_runs = PclmulReduceRuns,
                                         .fold_ring = FoldRing<16>,
                                         .ring_bytes = kRingUnits * 16};

}  // namespace reshard

#endif  // defined(__x86_64__)
