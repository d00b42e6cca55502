// The logical digest on an x86-64 processor with PCLMULQDQ.
#if defined(__x86_64__)

#define RESHARD_KERNEL_TARGET __attribute__((target("pclmul")))

#include "src/digest/clmul_runs.h"
#include "src/digest/fold_ring.h"
#include "src/digest/logical_kernel.h"

namespace reshard {

const LogicalKernel kPclmulLogicalKernel{.name = "pclmul",
                                         .multiply = ClmulMultiply,
                                         .add_runs = ClmulAddRuns,
                                         .fold_ring = FoldRing<16>,
                                         .ring_bytes = kRingUnits * 16};

}  // namespace reshard

#endif  // defined(__x86_64__)
