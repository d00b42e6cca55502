// The logical digest on an x86-64 processor with AVX2 and PCLMULQDQ.
#if defined(__x86_64__)

#define RESHARD_KERNEL_TARGET __attribute__((target("avx2,pclmul")))

#include "src/digest/clmul_runs.h"
#include "src/digest/fold_ring.h"
#include "src/digest/logical_kernel.h"

namespace reshard {

const LogicalKernel kAvx2LogicalKernel{.name = "avx2",
                                       .multiply = ClmulMultiply,
                                       .add_runs = ClmulAddRuns,
                                       .fold_ring = FoldRing<32>,
                                       .ring_bytes = kRingUnits * 32};

}  // namespace reshard

#endif  // defined(__x86_64__)
