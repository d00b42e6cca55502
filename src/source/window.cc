#include "src/source/window.h"

#include <fmt/format.h>

#include <cassert>
#include <span>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/map_advice.h"

namespace reshard {

Result<Window> Window::Make(OpenFiles::Lease file, uint64_t offset, uint64_t length) {
  assert(length <= kWindowBytes);
  RESHARD_RETURN_IF_ERROR(file->input.CheckRange(offset, length));
  Window window(std::move(file), offset, length);
  if (length == 0) {
    static constexpr std::byte kNothing{};  // memcpy wants a pointer even for no bytes
    window.data_ = &kNothing;
    return window;
  }
  if (const std::optional<FileMap>& map = window.file_->map) {
    window.data_ = map->data() + offset;
    const std::optional<size_t> fault = Populate(window.data_, length);
    if (fault) return window.ExplainFault(*fault);
  } else {
    window.buffer_ = std::make_unique_for_overwrite<std::byte[]>(length);
    window.data_ = window.buffer_.get();
    RESHARD_RETURN_IF_ERROR(window.file_->input.ReadAt(offset, {window.buffer_.get(), length}));
  }
  return window;
}

Window::~Window() {
  // A page at the edge may belong to a neighbouring window as well: it stays.
  if (data_ != nullptr && buffer_ == nullptr) DropPages(data_, size_);
}

Status Window::ExplainFault(size_t fault) const {
  const InputFile& input = file_->input;
  RESHARD_ASSIGN_OR_RETURN(const FileIdentity now, input.CurrentIdentity());
  if (now != input.identity()) {
    return ChangedError(fmt::format(
        "{}: the file changed while it was in use: {}; start again when nothing writes to the "
        "sources",
        Escape(input.path()), DescribeChange(input.identity(), now)));
  }
  return IoError(
      fmt::format("{}: cannot read the page at offset {}: the disk or the file system does not "
                  "deliver it; look "
                  "at the kernel's log",
                  Escape(input.path()), offset_ + fault));
}

}  // namespace reshard
