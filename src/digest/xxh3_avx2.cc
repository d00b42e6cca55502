// XXH3 on an x86-64 processor with AVX2.
#if defined(__x86_64__)

// The library's header includes this one, which must not be compiled for the target.
#include <immintrin.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "src/digest/xxh3_update.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
// NOLINTNEXTLINE(readability-identifier-naming): the library reads it.
#define XXH_VECTOR XXH_AVX2
#include "src/digest/xxh3_loop.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace reshard {

const Xxh3Kernel kAvx2Xxh3Kernel{.name = "avx2", .update = UpdateXxh3};

}  // namespace reshard

#endif  // defined(__x86_64__)
