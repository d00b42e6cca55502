// Folds long runs with XOR alone. This part of the logical digest has to be as fast as memory.
//
// A run is a polynomial in z = x^(8 kUnit) whose coefficients are units of kUnit bytes. As kUnit is
// a power of two times 16, squaring x^128 = x^7 + x^2 + x + 1 often enough gives
//     1 = z + z^2 + z^7 + z^128    (modulo P).
// So the lowest unit may be dropped if it is added 1, 2, 7 and 128 units further up. Repeated from
// the front to the back, that leaves 128 units, at the position of the end of the dropped part.
#ifndef RESHARD_SRC_DIGEST_FOLD_RING_H_
#define RESHARD_SRC_DIGEST_FOLD_RING_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/digest/kernel_target.h"

namespace reshard {

inline constexpr size_t kRingUnits = 128;

template <size_t kUnit>
struct RingUnit {
  typedef uint64_t Type __attribute__((vector_size(kUnit), may_alias));
};

// Folds `rings` times kRingUnits units into `ring`, which is aligned to kUnit and receives the
// remaining bytes: bytes == ring * x^(8 rings * kRingUnits * kUnit) modulo P. `rings` is not 0.
template <size_t kUnit>
RESHARD_KERNEL_TARGET static void FoldRing(const std::byte* bytes, uint64_t rings,
                                           std::byte* ring) {
  using Unit = typename RingUnit<kUnit>::Type;
  static_assert(kRingUnits % 8 == 0);
  // sums[u % 128]: unit u with all additions before it was dropped.
  Unit* sums = reinterpret_cast<Unit*>(ring);
  for (size_t u = 0; u < kRingUnits; ++u) sums[u] = Unit{};
  Unit last[8] = {};  // sums of the last units, by u % 8
  for (uint64_t r = 0; r < rings; ++r, bytes += kRingUnits * kUnit) {
    for (size_t u = 0; u < kRingUnits; u += 8) {
#pragma GCC unroll 8
      for (size_t i = 0; i < 8; ++i) {
        Unit unit;
        std::memcpy(&unit, bytes + (u + i) * kUnit, kUnit);
        // The previous unit is added last, because all other terms can be computed ahead.
        last[i] = unit ^ sums[u + i] ^ last[(i + 1) % 8] ^ last[(i + 6) % 8] ^ last[(i + 7) % 8];
        sums[u + i] = last[i];
      }
    }
  }
  // The terms of the dropped units 128 units further up are in place. The terms 1, 2 and 7 units
  // further up are added here.
  sums[0] ^= sums[127] ^ sums[126] ^ sums[121];
  sums[1] ^= sums[127] ^ sums[122];
  for (size_t u = 2; u < 7; ++u) sums[u] ^= sums[121 + u];
}

}  // namespace reshard

#endif  // RESHARD_SRC_DIGEST_FOLD_RING_H_
