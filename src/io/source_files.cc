#include "src/io/source_files.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "src/base/status_macros.h"
#include "src/os/system_call.h"

namespace reshard {

size_t SourceFiles::DefaultMaxOpen() {
  // A worker has up to six others open: a window's file, an output, folders on the way to it.
  return std::clamp<size_t>(DescriptorLimit() / 4, 1, 64);
}

Result<OpenFiles::Lease> SourceFiles::Acquire(FileId id) {
  if (stop_.stop_requested()) return CancelledError("stopped on request");
  return files_.Acquire(id);
}

Result<uint64_t> SourceFiles::Size(FileId id) {
  RESHARD_ASSIGN_OR_RETURN(const FileIdentity identity, Identity(id));
  return identity.size;
}

Result<FileIdentity> SourceFiles::Identity(FileId id) {
  if (const std::optional<FileIdentity> pinned = files_.PinnedIdentity(id)) return *pinned;
  RESHARD_ASSIGN_OR_RETURN(const OpenFiles::Lease file, Acquire(id));
  return file->source.identity();
}

Status SourceFiles::Read(FileId id, uint64_t offset, std::span<std::byte> destination) {
  // By pread, although the file may be mapped: the kernel copies the same pages and, where the file
  // has shrunk, counts them exactly instead of reading zeros to the end of a page.
  RESHARD_ASSIGN_OR_RETURN(const OpenFiles::Lease file, Acquire(id));
  RESHARD_RETURN_IF_ERROR(file->source.CheckRange(offset, destination.size()));
  while (!destination.empty()) {
    const size_t length =
        std::min<uint64_t>(destination.size(), kWindowBytes - offset % kWindowBytes);
    const FileWindows::Pin pin = file->windows.Touch({offset, length});
    RESHARD_RETURN_IF_ERROR(file->source.ReadAt(offset, destination.first(length)));
    offset += length;
    destination = destination.subspan(length);
  }
  return {};
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
