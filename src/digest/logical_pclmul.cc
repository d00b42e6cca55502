// The logical digest with carry-less multiplication of 64 by 64 bits (PCLMULQDQ).
#if defined(__x86_64__)

#include <emmintrin.h>
#include <wmmintrin.h>

#include <array>
#include <cstring>

#include "src/digest/gf128.h"
#include "src/digest/logical_kernel.h"

#define RESHARD_PCLMUL __attribute__((target("pclmul,sse2")))

namespace reshard {
namespace {

constexpr size_t kWord = 16;  // bytes
constexpr size_t kGroup = 8;  // words folded at a time

// x^(128 k) modulo P: (x^7 + x^2 + x + 1)^k, whose degree 7 k fits 64 bits here.
constexpr std::array<uint64_t, kGroup + 1> MakeWordPowers() {
  std::array<uint64_t, kGroup + 1> powers{1};
  for (size_t k = 1; k < powers.size(); ++k) {
    const uint64_t p = powers[k - 1];
    powers[k] = p ^ p << 1 ^ p << 2 ^ p << 7;
  }
  return powers;
}
constexpr std::array<uint64_t, kGroup + 1> kWordPowers = MakeWordPowers();
static_assert(kWordPowers[8] == (uint64_t{1} << 56 | uint64_t{1} << 16 | uint64_t{1} << 8 | 1));

RESHARD_PCLMUL inline __m128i Constant(uint64_t low) {
  return _mm_cvtsi64_si128(static_cast<int64_t>(low));
}

RESHARD_PCLMUL inline __m128i Load(const std::byte* bytes) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}

// A sum of products: low + high * x^64.
struct Products {
  __m128i low;
  __m128i high;
};

RESHARD_PCLMUL inline void AddProduct(Products& sum, __m128i value, __m128i factor) {
  sum.low = _mm_xor_si128(sum.low, _mm_clmulepi64_si128(value, factor, 0x00));
  sum.high = _mm_xor_si128(sum.high, _mm_clmulepi64_si128(value, factor, 0x01));
}

// The sum modulo P. Degree of high: at most 119, so that what lies beyond x^128 times the tail of P
// fits 64 bits.
RESHARD_PCLMUL inline __m128i Reduced(const Products& sum) {
  const __m128i over = _mm_clmulepi64_si128(sum.high, Constant(kFieldTail), 0x01);
  return _mm_xor_si128(_mm_xor_si128(sum.low, _mm_slli_si128(sum.high, 8)), over);
}

// sum * x^(128 count) + the words at `words`.
RESHARD_PCLMUL inline __m128i FoldWords(__m128i sum, const std::byte* words, size_t count) {
  Products products{_mm_setzero_si128(), _mm_setzero_si128()};
  AddProduct(products, sum, Constant(kWordPowers[count]));
  for (size_t k = 1; k < count; ++k) {
    AddProduct(products, Load(words + k * kWord), Constant(kWordPowers[k]));
  }
  return _mm_xor_si128(Reduced(products), Load(words));
}

RESHARD_PCLMUL Digest128 ToDigest(__m128i value) {
  return {.low = static_cast<uint64_t>(_mm_cvtsi128_si64(value)),
          .high = static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_srli_si128(value, 8)))};
}

RESHARD_PCLMUL Digest128 Reduce(const std::byte* bytes, uint64_t size) {
  // From the end, so that each step multiplies what it has by one small constant.
  const std::byte* words = bytes + size - size % kWord;
  __m128i sum = _mm_setzero_si128();
  if (size % kWord != 0) {
    alignas(kWord) std::array<std::byte, kWord> last{};
    std::memcpy(last.data(), words, size % kWord);
    sum = Load(last.data());
  }
  if (const size_t count = size / kWord % kGroup; count != 0) {
    words -= count * kWord;
    sum = FoldWords(sum, words, count);
  }
  while (words != bytes) {
    words -= kGroup * kWord;
    sum = FoldWords(sum, words, kGroup);
  }
  return ToDigest(sum);
}

RESHARD_PCLMUL Digest128 Multiply(const Digest128& a, const Digest128& b) {
  const __m128i va = _mm_set_epi64x(static_cast<int64_t>(a.high), static_cast<int64_t>(a.low));
  const __m128i vb = _mm_set_epi64x(static_cast<int64_t>(b.high), static_cast<int64_t>(b.low));
  const __m128i tail = Constant(kFieldTail);
  const __m128i middle =
      _mm_xor_si128(_mm_clmulepi64_si128(va, vb, 0x01), _mm_clmulepi64_si128(va, vb, 0x10));
  __m128i low = _mm_clmulepi64_si128(va, vb, 0x00);
  __m128i high = _mm_clmulepi64_si128(va, vb, 0x11);
  low = _mm_xor_si128(low, _mm_slli_si128(middle, 8));
  high = _mm_xor_si128(high, _mm_srli_si128(middle, 8));
  // x^192 times the upper half of high, then x^128 times the lower one with what that left there.
  const __m128i upper = _mm_clmulepi64_si128(high, tail, 0x01);
  low = _mm_xor_si128(low, _mm_slli_si128(upper, 8));
  high = _mm_xor_si128(high, _mm_srli_si128(upper, 8));
  return ToDigest(_mm_xor_si128(low, _mm_clmulepi64_si128(high, tail, 0x00)));
}

}  // namespace

const LogicalKernel kPclmulLogicalKernel{.name = "pclmul", .reduce = Reduce, .multiply = Multiply};

}  // namespace reshard

#endif  // defined(__x86_64__)
