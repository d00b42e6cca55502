// 128 bits in a register, with the carry-less multiplication of 64 by 64 bits that PCLMULQDQ and
// PMULL do. RESHARD_KERNEL_TARGET (kernel_target.h) has to include them.
#ifndef RESHARD_SRC_DIGEST_VECTOR128_H_
#define RESHARD_SRC_DIGEST_VECTOR128_H_

#include <cstdint>

#include "src/digest/digest128.h"
#include "src/digest/kernel_target.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#include <wmmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace reshard {

#if defined(__x86_64__)

using Vector128 = __m128i;

RESHARD_KERNEL_TARGET static inline Vector128 MakeVector(uint64_t low, uint64_t high = 0) {
  return _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
}
RESHARD_KERNEL_TARGET static inline Vector128 LoadVector(const void* bytes) {
  return _mm_loadu_si128(static_cast<const __m128i*>(bytes));
}
RESHARD_KERNEL_TARGET static inline void StoreVector(void* bytes, Vector128 value) {
  _mm_storeu_si128(static_cast<__m128i*>(bytes), value);
}
RESHARD_KERNEL_TARGET static inline Vector128 Xor(Vector128 a, Vector128 b) {
  return _mm_xor_si128(a, b);
}
// value * x^64 and value / x^64, without the overflow.
RESHARD_KERNEL_TARGET static inline Vector128 Up64(Vector128 value) {
  return _mm_slli_si128(value, 8);
}
RESHARD_KERNEL_TARGET static inline Vector128 Down64(Vector128 value) {
  return _mm_srli_si128(value, 8);
}
// The product of the halves that the name says, of a and then of b.
RESHARD_KERNEL_TARGET static inline Vector128 LowLow(Vector128 a, Vector128 b) {
  return _mm_clmulepi64_si128(a, b, 0x00);
}
RESHARD_KERNEL_TARGET static inline Vector128 HighLow(Vector128 a, Vector128 b) {
  return _mm_clmulepi64_si128(a, b, 0x01);
}
RESHARD_KERNEL_TARGET static inline Vector128 HighHigh(Vector128 a, Vector128 b) {
  return _mm_clmulepi64_si128(a, b, 0x11);
}

#elif defined(__aarch64__)

using Vector128 = uint64x2_t;

RESHARD_KERNEL_TARGET static inline Vector128 MakeVector(uint64_t low, uint64_t high = 0) {
  return vcombine_u64(vcreate_u64(low), vcreate_u64(high));
}
RESHARD_KERNEL_TARGET static inline Vector128 LoadVector(const void* bytes) {
  return vreinterpretq_u64_u8(vld1q_u8(static_cast<const uint8_t*>(bytes)));
}
RESHARD_KERNEL_TARGET static inline void StoreVector(void* bytes, Vector128 value) {
  vst1q_u8(static_cast<uint8_t*>(bytes), vreinterpretq_u8_u64(value));
}
RESHARD_KERNEL_TARGET static inline Vector128 Xor(Vector128 a, Vector128 b) {
  return veorq_u64(a, b);
}
// value * x^64 and value / x^64, without the overflow.
RESHARD_KERNEL_TARGET static inline Vector128 Up64(Vector128 value) {
  return vextq_u64(vdupq_n_u64(0), value, 1);
}
RESHARD_KERNEL_TARGET static inline Vector128 Down64(Vector128 value) {
  return vextq_u64(value, vdupq_n_u64(0), 1);
}
// The product of the halves that the name says, of a and then of b.
RESHARD_KERNEL_TARGET static inline Vector128 LowLow(Vector128 a, Vector128 b) {
  return vreinterpretq_u64_p128(vmull_p64(vgetq_lane_u64(a, 0), vgetq_lane_u64(b, 0)));
}
RESHARD_KERNEL_TARGET static inline Vector128 HighLow(Vector128 a, Vector128 b) {
  return vreinterpretq_u64_p128(vmull_p64(vgetq_lane_u64(a, 1), vgetq_lane_u64(b, 0)));
}
RESHARD_KERNEL_TARGET static inline Vector128 HighHigh(Vector128 a, Vector128 b) {
  return vreinterpretq_u64_p128(vmull_high_p64(vreinterpretq_p64_u64(a), vreinterpretq_p64_u64(b)));
}

#endif

RESHARD_KERNEL_TARGET static inline Digest128 ToDigest(Vector128 value) {
  Digest128 digest;
  StoreVector(&digest, value);
  return digest;
}

}  // namespace reshard

#endif  // RESHARD_SRC_DIGEST_VECTOR128_H_
