// ReservedMemory: address space, parts of which become memory when they are wanted.
//
// Owns it, move-only. Only what is committed counts as memory of the process. Any thread.
#ifndef RESHARD_SRC_OS_RESERVED_MEMORY_H_
#define RESHARD_SRC_OS_RESERVED_MEMORY_H_

#include <cstddef>
#include <utility>

#include "reshard/status.h"

namespace reshard {

class ReservedMemory {
 public:
  // `size` is a multiple of the page size. Errors: kResourceExhausted, for want of address space.
  static Result<ReservedMemory> Make(size_t size);

  ReservedMemory() = default;
  ReservedMemory(ReservedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  ReservedMemory& operator=(ReservedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ReservedMemory();

  // Null where nothing is reserved.
  std::byte* data() const { return data_; }

  // Makes `length` bytes at `offset` readable and writable; both are multiples of the page size.
  // Errors: kResourceExhausted.
  Status Commit(size_t offset, size_t length);

 private:
  ReservedMemory(std::byte* data, size_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace reshard

#endif  // RESHARD_SRC_OS_RESERVED_MEMORY_H_
