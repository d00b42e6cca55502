// Window: some bytes of a source file, in memory while it lives.
//
// Part of a map, or a buffer where there is no map. Keeps its file open. Move-only; any number of
// threads may read it.
#ifndef RESHARD_SRC_IO_WINDOW_H_
#define RESHARD_SRC_IO_WINDOW_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "reshard/status.h"
#include "src/io/open_files.h"
#include "src/io/window_cache.h"
#include "src/os/fault_guard.h"

namespace reshard {

class Window {
 public:
  // Made by SourceFiles::Open.
  // Returns `length` <= kWindowBytes bytes at `offset` of the file, its pages present.
  // Errors: kCorrupt when they end beyond the file; kChanged; kIo.
  static Result<Window> Make(OpenFiles::Lease file, uint64_t offset, uint64_t length);

  Window(Window&& other) noexcept = default;
  Window& operator=(Window&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(pins_, other.pins_);
    std::swap(offset_, other.offset_);
    std::swap(size_, other.size_);
    std::swap(buffer_, other.buffer_);
    std::swap(data_, other.data_);
    return *this;
  }

  uint64_t size() const { return size_; }

  // Calls reader(const std::byte* data) with the window's first byte, under the fault guard.
  // `reader` must not make objects with destructors, take locks or allocate: a fault abandons it
  // midway.
  // Errors: kChanged when the file shrank, kIo when a page could not be read.
  template <typename Reader>
  Status Read(Reader reader) const {
    if (buffer_ != nullptr || size_ == 0) {
      reader(data_);
      return {};
    }
    const std::optional<size_t> fault = Guarded(data_, size_, [this, &reader] { reader(data_); });
    return fault ? file_->source.ExplainFault(offset_ + *fault) : Status();
  }

 private:
  Window(OpenFiles::Lease file, uint64_t offset, uint64_t size)
      : file_(std::move(file)), offset_(offset), size_(size) {}

  OpenFiles::Lease file_;
  std::array<FileWindows::Pin, 2> pins_;  // a range may lie in two of the file's windows
  uint64_t offset_;
  uint64_t size_;
  std::unique_ptr<std::byte[]> buffer_;  // only without a map
  const std::byte* data_ = nullptr;      // in the buffer or the map
};

}  // namespace reshard

#endif  // RESHARD_SRC_IO_WINDOW_H_
