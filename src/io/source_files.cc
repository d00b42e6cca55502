#include "src/io/source_files.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>
#include <utility>

#include "src/base/status_macros.h"
#include "src/os/local_file.h"
#include "src/os/system_call.h"

namespace reshard {
namespace {

Status CheckGoesOn(const std::stop_token& stop) {
  return stop.stop_requested() ? CancelledError("stopped on request") : Status();
}

}  // namespace

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
  if (windows.map() != nullptr) {
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
    // Unneeded bytes beside the range may be the cause.
    RESHARD_RETURN_IF_ERROR(window.file_->source.ReadAt(offset, {window.buffer_.get(), length}));
  }
  return window;
}

size_t SourceFiles::DefaultMaxOpen() {
  // A worker has up to six others open: a window's file, an output, folders on the way to it.
  return std::clamp<size_t>(DescriptorLimit() / 4, 1, 1024);
}

Status Window::ExplainFault(size_t fault) const {
  return file_->source.pages()->ExplainFault(offset_ + fault);
}

Result<OpenFiles::Lease> SourceFiles::Acquire(FileId id) {
  RESHARD_RETURN_IF_ERROR(CheckGoesOn(stop_));
  return files_.Acquire(id);
}

Result<uint64_t> SourceFiles::Size(FileId id) {
  if (const std::optional<uint64_t> size = files_.KnownSize(id)) return *size;
  RESHARD_ASSIGN_OR_RETURN(const OpenFiles::Lease file, Acquire(id));
  return file->source.size();
}

Result<FileIdentity> SourceFiles::Identity(FileId id) {
  if (const std::optional<FileIdentity> pinned = files_.PinnedIdentity(id)) return *pinned;
  RESHARD_ASSIGN_OR_RETURN(const OpenFiles::Lease file, Acquire(id));
  return file->source.identity();
}

bool SourceReader::ReadPastCache(uint64_t offset, std::span<std::byte> destination) {
  const LocalFile* const pages = file_->source.pages();
  if (!is_remote_ || pages == nullptr || destination.size() <= kPrefetchBytes) return false;
  if (!past_cache_) past_cache_ = pages->OpenPastCache();
  if (past_cache_->get() < 0) return false;
  if (pages->ReadPastCache(*past_cache_, offset, destination)) return true;
  past_cache_ = FileDescriptor();
  return false;
}

Status SourceReader::Read(uint64_t offset, std::span<std::byte> destination) {
  RESHARD_RETURN_IF_ERROR(CheckGoesOn(stop_));
  RESHARD_RETURN_IF_ERROR(file_->source.CheckRange(offset, destination.size()));
  if (ReadPastCache(offset, destination)) return {};
  while (!destination.empty()) {
    const size_t length =
        std::min<uint64_t>(destination.size(), kWindowBytes - offset % kWindowBytes);
    RESHARD_RETURN_IF_ERROR(file_->windows.Read({offset, length}, destination.first(length)));
    offset += length;
    destination = destination.subspan(length);
  }
  return {};
}

Status SourceReader::Prefetch(ByteRange range) const {
  RESHARD_RETURN_IF_ERROR(CheckGoesOn(stop_));
  if (range.offset >= size()) return {};
  range.length = std::min(range.length, size() - range.offset);
  const bool is_in_window = range.offset % kWindowBytes + range.length <= kWindowBytes;
  if (file_->windows.map() != nullptr && range.length < kGranuleBytes && is_in_window) {
    file_->windows.PrefetchHeader(range);
  } else {
    file_->windows.PrefetchPages(range);
  }
  return {};
}

Result<SourceReader> SourceFiles::OpenReader(FileId id) {
  RESHARD_ASSIGN_OR_RETURN(OpenFiles::Lease file, Acquire(id));
  return SourceReader(std::move(file), stop_, BytesAhead());
}

Status SourceFiles::Read(FileId id, uint64_t offset, std::span<std::byte> destination) {
  RESHARD_ASSIGN_OR_RETURN(SourceReader file, OpenReader(id));
  return file.Read(offset, destination);
}

Status SourceFiles::PrefetchPages(FileId id, ByteRange range) {
  RESHARD_ASSIGN_OR_RETURN(const SourceReader file, OpenReader(id));
  return file.Prefetch(range);
}

Status SourceFiles::Prefetch(FileId id, uint64_t offset, uint64_t length) {
  RESHARD_ASSIGN_OR_RETURN(const OpenFiles::Lease file, Acquire(id));
  const uint64_t size = file->source.size();
  if (offset < size) file->windows.Prefetch({offset, std::min(length, size - offset)});
  return {};
}

Result<Window> SourceFiles::Open(FileId id, uint64_t offset, uint64_t length) {
  RESHARD_ASSIGN_OR_RETURN(OpenFiles::Lease file, Acquire(id));
  return Window::Make(std::move(file), offset, length);
}

}  // namespace reshard
