#include "src/source/source_files.h"

#include <optional>
#include <utility>

#include "src/base/status_macros.h"

namespace reshard {

Result<uint64_t> SourceFiles::Size(FileId id) {
  if (const std::optional<FileIdentity> pinned = files_.PinnedIdentity(id)) return pinned->size;
  RESHARD_ASSIGN_OR_RETURN(const OpenFiles::Lease file, files_.Acquire(id));
  return file->input.size();
}

Status SourceFiles::Read(FileId id, uint64_t offset, std::span<std::byte> destination) {
  // By pread, although the file may be mapped: the kernel copies the same pages and, where the file
  // has shrunk, counts them exactly instead of reading zeros to the end of a page.
  RESHARD_ASSIGN_OR_RETURN(const OpenFiles::Lease file, files_.Acquire(id));
  return file->input.ReadAt(offset, destination);
}

Result<Window> SourceFiles::Open(FileId id, uint64_t offset, uint64_t length) {
  RESHARD_ASSIGN_OR_RETURN(OpenFiles::Lease file, files_.Acquire(id));
  return Window::Make(std::move(file), offset, length);
}

}  // namespace reshard
