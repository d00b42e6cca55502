#include "src/source/indexed_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "format/container/container.h"
#include "format/mindspore_checkpoint/checkpoint_reader.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

Result<FileBytes> BytesOf(SourceFiles& files, FileId file) {
  RESHARD_ASSIGN_OR_RETURN(const uint64_t size, files.Size(file));
  return FileBytes{
      files.path(file), size,
      [&files, file](uint64_t offset, std::span<std::byte> out) {
        return files.Read(file, offset, out);
      },
      [&files, file](ByteRange range) { return files.Prefetch(file, range.offset, range.length); }};
}

Result<TableOfFile> ReadTable(const FileBytes& bytes, const MemoryCheck& memory) {
  std::vector<std::byte> head(std::min(bytes.size, kHeaderPage));
  if (!head.empty()) RESHARD_RETURN_IF_ERROR(bytes.read(0, head));
  const Result<Container> container = ContainerOf(head, bytes.size);
  RESHARD_RETURN_IF_ERROR(InFile(bytes.path, container.status()));
  switch (*container) {
    case Container::kMindSpore:
      break;
  }
  return ReadMindSporeTable(bytes, std::move(head), memory);
}

}  // namespace

Result<IndexedFile> ReadFileTable(SourceFiles& files, FileId file, const MemoryCheck& memory) {
  RESHARD_ASSIGN_OR_RETURN(const FileBytes bytes, BytesOf(files, file));
  RESHARD_ASSIGN_OR_RETURN(TableOfFile read, ReadTable(bytes, memory));
  return IndexedFile(file, bytes.size, std::move(read));
}

Result<std::optional<ByteRange>> CoveredByCrc(SourceFiles& files, FileId file) {
  RESHARD_ASSIGN_OR_RETURN(const FileBytes bytes, BytesOf(files, file));
  // Before the container, which is told by another place of the file: most files have no trailer.
  Result<std::optional<ByteRange>> trailer = CoveredByTrailer(bytes);
  if (trailer.ok() && !*trailer) return trailer;
  std::vector<std::byte> head(std::min<uint64_t>(bytes.size, kSignatureBytes));
  RESHARD_RETURN_IF_ERROR(bytes.read(0, head));
  const Result<Container> container = ContainerOf(head, bytes.size);
  if (!container.ok()) return std::optional<ByteRange>();
  switch (*container) {
    case Container::kMindSpore:
      return trailer;
  }
  return InternalError("a container that nothing reads");
}

}  // namespace reshard
