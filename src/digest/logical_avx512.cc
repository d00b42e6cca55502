// The logical digest on an x86-64 processor with AVX-512 and VPCLMULQDQ.
#if defined(__x86_64__)

#define RESHARD_KERNEL_TARGET \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,vpclmulqdq,pclmul")))

#include <immintrin.h>

#include "src/digest/clmul_runs.h"
#include "src/digest/fold_ring.h"
#include "src/digest/logical_kernel.h"

namespace reshard {
namespace {

// x^512 and x^1024 modulo P: x^128 = x^7 + x^2 + x + 1, squared two and three times.
constexpr uint64_t kX512 = uint64_t{1} << 28 | 1 << 8 | 1 << 4 | 1;
constexpr uint64_t kX1024 = uint64_t{1} << 56 | 1 << 16 | 1 << 8 | 1;

// Four values side by side: the polynomial of a vector is the sum of its lanes times x^(128 lane).
struct NarrowLanes {
  __m512i low;
  __m512i high;
};

// g++ 12 compiles the zero-masked forms, with all lanes in the mask, without warnings in its own
// headers.
RESHARD_KERNEL_TARGET inline __m512i Broadcast(Vector128 value) {
  return _mm512_maskz_broadcast_i32x4(0xffff, value);
}

RESHARD_KERNEL_TARGET inline Vector128 SumOfLanes(__m512i lanes) {
  return _mm_xor_si128(_mm_xor_si128(_mm512_maskz_extracti32x4_epi32(0xf, lanes, 0),
                                     _mm512_maskz_extracti32x4_epi32(0xf, lanes, 1)),
                       _mm_xor_si128(_mm512_maskz_extracti32x4_epi32(0xf, lanes, 2),
                                     _mm512_maskz_extracti32x4_epi32(0xf, lanes, 3)));
}

RESHARD_KERNEL_TARGET inline NarrowLanes Products(__m512i value, __m512i factor) {
  return {_mm512_clmulepi64_epi128(value, factor, 0x00),
          _mm512_clmulepi64_epi128(value, factor, 0x01)};
}

constexpr int kXor3 = 0x96;

// As for NarrowProducts, plus `more`.
RESHARD_KERNEL_TARGET inline __m512i Reduced(const NarrowLanes& sum, __m512i more) {
  const __m512i over = _mm512_clmulepi64_epi128(sum.high, Broadcast(MakeVector(kFieldTail)), 0x01);
  const __m512i low = _mm512_ternarylogic_epi64(sum.low, more, over, kXor3);
  return _mm512_xor_si512(low, _mm512_bslli_epi128(sum.high, 8));
}

// The lanes of a run of at least 64 bytes, modulo P.
RESHARD_KERNEL_TARGET inline __m512i ReduceLanes(const std::byte* bytes, uint64_t size) {
  const std::byte* vectors = bytes + size - size % 64;
  __m512i sum;
  if (size % 64 != 0) {
    sum = _mm512_maskz_loadu_epi8((uint64_t{1} << size % 64) - 1, vectors);
  } else {
    vectors -= 64;
    sum = _mm512_loadu_si512(vectors);
  }
  if ((static_cast<uint64_t>(vectors - bytes) / 64) % 2 != 0) {
    vectors -= 64;
    sum = Reduced(Products(sum, Broadcast(MakeVector(kX512))), _mm512_loadu_si512(vectors));
  }
  while (vectors != bytes) {
    vectors -= 128;
    NarrowLanes folded = Products(sum, Broadcast(MakeVector(kX1024)));
    const NarrowLanes upper =
        Products(_mm512_loadu_si512(vectors + 64), Broadcast(MakeVector(kX512)));
    folded.low = _mm512_xor_si512(folded.low, upper.low);
    folded.high = _mm512_xor_si512(folded.high, upper.high);
    sum = Reduced(folded, _mm512_loadu_si512(vectors));
  }
  // Each lane to its place.
  const __m512i places =
      _mm512_set_epi64(0, kWordPowers[3], 0, kWordPowers[2], 0, kWordPowers[1], 0, kWordPowers[0]);
  return Reduced(Products(sum, places), _mm512_setzero_si512());
}

RESHARD_KERNEL_TARGET Vector128 SumOfLongerRuns(const KernelRuns& runs,
                                                const Digest128* run_powers) {
  if (runs.count == 1) return SumOfLanes(ReduceLanes(runs.bytes, runs.size));
  __m512i low = _mm512_setzero_si512();
  __m512i middle = low;
  __m512i high = low;
  for (uint64_t i = 0; i < runs.count; ++i) {
    const __m512i run = ReduceLanes(runs.bytes + i * runs.stride, runs.size);
    const __m512i power = Broadcast(LoadVector(&run_powers[i]));
    low = _mm512_xor_si512(low, _mm512_clmulepi64_epi128(run, power, 0x00));
    middle = _mm512_ternarylogic_epi64(middle, _mm512_clmulepi64_epi128(run, power, 0x01),
                                       _mm512_clmulepi64_epi128(run, power, 0x10), kXor3);
    high = _mm512_xor_si512(high, _mm512_clmulepi64_epi128(run, power, 0x11));
  }
  return Reduced(WideProducts{SumOfLanes(low), SumOfLanes(middle), SumOfLanes(high)});
}

RESHARD_KERNEL_TARGET void AddRuns(const KernelRuns& runs, const Digest128* run_powers,
                                   const Digest128& step, Digest128& power, Digest128& sum) {
  if (runs.size < 64) return ClmulAddRuns(runs, run_powers, step, power, sum);
  AddAtPower(SumOfLongerRuns(runs, run_powers), step, power, sum);
}

}  // namespace

const LogicalKernel kAvx512LogicalKernel{.name = "avx512",
                                         .multiply = ClmulMultiply,
                                         .add_runs = AddRuns,
                                         .fold_ring = FoldRing<64>,
                                         .ring_bytes = kRingUnits * 64};

}  // namespace reshard

#endif  // defined(__x86_64__)
