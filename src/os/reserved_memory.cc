#include "src/os/reserved_memory.h"

#include <sys/mman.h>

#include "src/base/out_of_memory.h"

namespace reshard {

Result<ReservedMemory> ReservedMemory::Make(size_t size) {
  void* const data =
      mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return OutOfMemoryError();
  return ReservedMemory(static_cast<std::byte*>(data), size);
}

ReservedMemory::~ReservedMemory() {
  if (data_ != nullptr) munmap(data_, size_);
}

Status ReservedMemory::Commit(size_t offset, size_t length) {
  if (mprotect(data_ + offset, length, PROT_READ | PROT_WRITE) != 0) return OutOfMemoryError();
  return {};
}

}  // namespace reshard
