// Memory that is about to be written to.
#ifndef RESHARD_SRC_OS_FRESH_PAGES_H_
#define RESHARD_SRC_OS_FRESH_PAGES_H_

#include <cstddef>
#include <span>

namespace reshard {

// Brings the pages that lie wholly within these bytes into being, together, where the kernel can
// (Linux 5.14): touched one after the other, each would be a fault of its own. What they hold
// stays. Any thread.
void MakePagesPresent(std::span<std::byte> bytes);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_FRESH_PAGES_H_
