// The functions of kPclmulLogicalKernel, which kernels with wider vectors use for short runs.
#ifndef RESHARD_SRC_DIGEST_LOGICAL_PCLMUL_H_
#define RESHARD_SRC_DIGEST_LOGICAL_PCLMUL_H_

#include <cstddef>
#include <cstdint>

#include "src/digest/digest128.h"

namespace reshard {

Digest128 PclmulMultiply(const Digest128& a, const Digest128& b);
Digest128 PclmulReduce(const std::byte* bytes, uint64_t size);
Digest128 PclmulReduceRuns(const std::byte* bytes, uint64_t size, uint64_t stride,
                           const Digest128* powers, size_t count);

}  // namespace reshard

#endif  // RESHARD_SRC_DIGEST_LOGICAL_PCLMUL_H_
