// Memory that is about to be written to.
#ifndef RESHARD_SRC_OS_FRESH_PAGES_H_
#define RESHARD_SRC_OS_FRESH_PAGES_H_

#include <cstddef>
#include <span>

namespace reshard {

// Makes the whole pages within these bytes present at once, if the kernel can (Linux 5.14).
// Otherwise each first touch would be a page fault. Their contents stay. Any thread.
void MakePagesPresent(std::span<std::byte> bytes);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_FRESH_PAGES_H_
