// Casts on an x86-64 processor with AVX2.
#if defined(__x86_64__)

// The loops include these headers, which must not be compiled for the target.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "reshard/tensor.h"
#include "src/cast/cast.h"
#include "src/cast/cast_kernel.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
#include "src/cast/cast_loop.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace reshard {

const CastKernel kAvx2CastKernel{.name = "avx2", .cast = CastValues};

}  // namespace reshard

#endif  // defined(__x86_64__)
