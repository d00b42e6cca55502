// How many descriptors this process may have open. Any thread.
#ifndef RESHARD_SRC_OS_DESCRIPTOR_LIMIT_H_
#define RESHARD_SRC_OS_DESCRIPTOR_LIMIT_H_

#include <cstddef>

namespace reshard {

// Returns the limit (`ulimit -n`); where it cannot be told, what POSIX grants to everybody.
size_t DescriptorLimit();

}  // namespace reshard

#endif  // RESHARD_SRC_OS_DESCRIPTOR_LIMIT_H_
