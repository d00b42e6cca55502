// How much memory there is, and how much this process takes. Any thread.
#ifndef RESHARD_SRC_OS_MEMORY_USAGE_H_
#define RESHARD_SRC_OS_MEMORY_USAGE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "reshard/status.h"

namespace reshard {

// Returns the bytes of memory that this process may use: the host's memory, or less if a control
// group or `ulimit -v` allows less.
uint64_t MemoryOfHost();

// Returns how many bytes of addresses this process may have: `ulimit -v`, or the greatest number if
// it is not limited.
uint64_t AddressLimit();

// Returns the anonymous bytes that this process has in memory now; 0 when that cannot be told.
uint64_t AnonymousMemory();

// Gives memory that was freed, and that the allocator keeps, back to the system.
void ReturnFreeMemory();

// The growth of this process's anonymous memory since the meter was made. It includes the basic
// memory of this program's processes, but not the memory of another program before it called the
// library.
class MemoryMeter {
 public:
  // An upper bound for the basic memory of a process of this program.
  static constexpr uint64_t kProgram = uint64_t{4} << 20;

  MemoryMeter();

  // Returns the growth by now, in bytes.
  uint64_t Look();
  // The most growth, and the most anonymous bytes of the process, at any time that somebody looked.
  uint64_t peak() const { return Growth(anonymous_peak_); }
  uint64_t anonymous_peak() const { return anonymous_peak_; }

 private:
  uint64_t Growth(uint64_t anonymous) const { return anonymous - std::min(anonymous, before_); }

  uint64_t before_ = 0;  // anonymous bytes that do not count
  std::atomic<uint64_t> anonymous_peak_ = 0;
};

// ReservedMemory: address space whose parts become memory when they are committed.
//
// Owns it, move-only. Only committed parts count as memory of the process. Any thread.
class ReservedMemory {
 public:
  // `size` is a multiple of the page size. Errors: kResourceExhausted, for lack of address space.
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

  // Null if no addresses are reserved.
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

#endif  // RESHARD_SRC_OS_MEMORY_USAGE_H_
