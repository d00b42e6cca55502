// The logical digest on a processor with AVX2 and PCLMULQDQ.
#if defined(__x86_64__)

#define RESHARD_KERNEL_TARGET __attribute__((target("avx2")))

#include "src/digest/fold_ring.h"
#include "src/digest/logical_kernel.h"
#include "src/digest/logical_pclmul.h"

namespace reshard {

const LogicalKernel kAvx2LogicalKernel{.name = "avx2",
                                       .multiply = PclmulMultiply,
                                       .reduce = PclmulReduce,
                                       .reduce_runs = PclmulReduceRuns,
                                       .fold_ring = FoldRing<32>,
                                       .ring_bytes = kRingUnits * 32};

}  // namespace reshard

#endif  // defined(__x86_64__)
