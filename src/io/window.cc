#include "src/io/window.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "src/base/status_macros.h"

namespace reshard {

Result<Window> Window::Make(OpenFiles::Lease file, uint64_t offset, uint64_t length) {
  assert(length <= kWindowBytes);
  RESHARD_RETURN_IF_ERROR(file->source.CheckRange(offset, length));
  Window window(std::move(file), offset, length);
  if (length == 0) {
    static constexpr std::byte kNothing{};  // memcpy wants a pointer even for no bytes
    window.data_ = &kNothing;
    return window;
  }
  FileWindows& windows = window.file_->windows;
  const uint64_t first = std::min(length, kWindowBytes - offset % kWindowBytes);
  Result<FileWindows::Pin> pin = windows.Hold({offset, first});
  if (window.file_->source.map() != nullptr) {
    RESHARD_ASSIGN_OR_RETURN(window.pins_[0], std::move(pin));
    if (first < length) {
      RESHARD_ASSIGN_OR_RETURN(window.pins_[1], windows.Hold({offset + first, length - first}));
    }
    window.data_ = window.pins_[0].At(offset);
    return window;
  }
  if (pin.ok() && first == length) {
    window.pins_[0] = std::move(*pin);
    window.data_ = window.pins_[0].At(offset);
    return window;
  }
  window.buffer_ = std::make_unique_for_overwrite<std::byte[]>(length);
  window.data_ = window.buffer_.get();
  if (pin.ok()) {
    std::memcpy(window.buffer_.get(), pin->At(offset), first);
    pin = windows.Hold({offset + first, length - first});
  }
  if (pin.ok()) {
    std::memcpy(window.buffer_.get() + first, pin->At(offset + first), length - first);
  } else {
    // Bytes beside those of the range may be to blame, which nobody needs.
    RESHARD_RETURN_IF_ERROR(window.file_->source.ReadAt(offset, {window.buffer_.get(), length}));
  }
  return window;
}

}  // namespace reshard
