// XXH3 on an x86-64 processor with AVX-512.
#if defined(__x86_64__)

#if defined(__GNUC__) && !defined(__clang__)
// GCC takes the intrinsics' own undefined values for a mistake (its bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// The library's header includes these, which must not be compiled for the target.
#include <immintrin.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "src/digest/xxh3_update.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,avx512f"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,avx512f")
#endif
// NOLINTNEXTLINE(readability-identifier-naming): the library reads it.
#define XXH_VECTOR XXH_AVX512
#include "src/digest/xxh3_loop.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace reshard {

const Xxh3Kernel kAvx512Xxh3Kernel{.name = "avx512", .update = UpdateXxh3};

}  // namespace reshard

#endif  // defined(__x86_64__)
