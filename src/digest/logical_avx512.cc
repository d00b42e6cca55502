// The logical digest on a processor with AVX-512 and VPCLMULQDQ.
#if defined(__x86_64__)

#define RESHARD_KERNEL_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,vpclmulqdq,pclmul")))

#include "src/digest/fold_ring.h"
#include "src/digest/logical_kernel.h"
#include "src/digest/logical_pclmul.h"

namespace reshard {

const LogicalKernel kAvx512LogicalKernel{.name = "avx512",
                                         .multiply = PclmulMultiply,
                                         .reduce = PclmulReduce,
                                         .reduce_runs = PclmulReduceRuns,
                                         .fold_ring = FoldRing<64>,
                                         .ring_bytes = kRingUnits * 64};

}  // namespace reshard

#endif  // defined(__x86_64__)
