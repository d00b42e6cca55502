// RESHARD_KERNEL_TARGET: the attribute that names the instruction set for which the including
// source compiles what it shares with other kernels. A source that wants one defines it before its
// includes; functions that carry it have internal linkage, so that no other source gets them.
#ifndef RESHARD_SRC_DIGEST_KERNEL_TARGET_H_
#define RESHARD_SRC_DIGEST_KERNEL_TARGET_H_

#ifndef RESHARD_KERNEL_TARGET
#define RESHARD_KERNEL_TARGET
#endif

#endif  // RESHARD_SRC_DIGEST_KERNEL_TARGET_H_
