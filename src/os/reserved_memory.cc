#include "src/os/reserved_memory.h"

#include <sys/mman.h>

#include <cstdint>

#include "src/base/out_of_memory.h"

namespace reshard {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;  // on most machines; elsewhere it is just alignment

}  // namespace

Result<ReservedMemory> ReservedMemory::Make(size_t size) {
  void* const found = mmap(nullptr, size + kHugePage, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return OutOfMemoryError();
  // What is committed in huge pages costs next to no page faults.
  auto* const begin = static_cast<std::byte*>(found);
  const size_t before = -reinterpret_cast<uintptr_t>(found) & (kHugePage - 1);
  if (before > 0) munmap(begin, before);
  munmap(begin + before + size, kHugePage - before);
  madvise(begin + before, size, MADV_HUGEPAGE);
  return ReservedMemory(begin + before, size);
}

ReservedMemory::~ReservedMemory() {
  if (data_ != nullptr) munmap(data_, size_);
}

Status ReservedMemory::Commit(size_t offset, size_t length) {
  if (mprotect(data_ + offset, length, PROT_READ | PROT_WRITE) != 0) return OutOfMemoryError();
  return {};
}

}  // namespace reshard
