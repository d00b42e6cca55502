// The logical digest on an aarch64 processor with PMULL. Compiled for these (CMakeLists.txt): the
// intrinsics need it.
#if defined(__aarch64__)

#include "src/digest/clmul_runs.h"
#include "src/digest/fold_ring.h"
#include "src/digest/logical_kernel.h"

namespace reshard {

const LogicalKernel kPmullLogicalKernel{.name = "pmull",
                                        .multiply = ClmulMultiply,
                                        .add_runs = ClmulAddRuns,
                                        .fold_ring = FoldRing<16>,
                                        .ring_bytes = kRingUnits * 16};

}  // namespace reshard

#endif  // defined(__aarch64__)
