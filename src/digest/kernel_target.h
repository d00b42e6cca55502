// RESHARD_KERNEL_TARGET: the attribute with the instruction set of the including source, for
// functions that it shares with other kernels. A source defines it before its includes if it needs
// one. Functions with the attribute have internal linkage, so that each source has its own.
#ifndef RESHARD_SRC_DIGEST_KERNEL_TARGET_H_
#define RESHARD_SRC_DIGEST_KERNEL_TARGET_H_

#ifndef RESHARD_KERNEL_TARGET
#define RESHARD_KERNEL_TARGET
#endif

#endif  // RESHARD_SRC_DIGEST_KERNEL_TARGET_H_
