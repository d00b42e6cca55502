#include "src/os/fresh_pages.h"

#include <sys/mman.h>

#include <cstdint>

#include "src/os/file_pages.h"

// Older headers do not have it.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace reshard {

void MakePagesPresent(std::span<std::byte> bytes) {
  const size_t page = PageSize();
  const size_t before = (page - reinterpret_cast<uintptr_t>(bytes.data()) % page) % page;
  if (bytes.size() < before + page) return;
  // If this advice is ignored, touching the pages does the same.
  static_cast<void>(
      madvise(bytes.data() + before, (bytes.size() - before) / page * page, MADV_POPULATE_WRITE));
}

}  // namespace reshard
