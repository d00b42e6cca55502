// The loops of a cast, once for each instruction set that they are compiled for.
#ifndef RESHARD_SRC_CAST_CAST_KERNEL_H_
#define RESHARD_SRC_CAST_CAST_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "reshard/tensor.h"
#include "src/cast/cast.h"

namespace reshard {

struct CastKernel {
  const char* name;
  // As Cast, of `count` elements.
  CastLoss (*cast)(DType from, DType to, const std::byte* values, size_t count, std::byte* out);
};

extern const CastKernel kPortableCastKernel;
#if defined(__x86_64__)
extern const CastKernel kAvx2CastKernel;
extern const CastKernel kAvx512CastKernel;
#endif

// Returns the kernels that this processor can run, the fastest first. The last one is portable.
std::span<const CastKernel* const> CastKernels();

}  // namespace reshard

#endif  // RESHARD_SRC_CAST_CAST_KERNEL_H_
