#include "src/sharded/dcp_tables.h"

#include <utility>

#include "src/base/status_macros.h"

namespace reshard {

DcpTables::DcpTables(std::vector<std::unique_ptr<const DcpMetadata>> metadata,
                     std::vector<std::vector<DcpArray>> arrays, std::map<FileId, int64_t> numbers,
                     std::string path)
    : metadata_(std::move(metadata)),
      arrays_(std::move(arrays)),
      numbers_(std::move(numbers)),
      path_(std::move(path)) {}

Result<IndexedFile> DcpTables::Read(SourceFiles& files, FileId file, const MemoryCheck& memory,
                                    const std::shared_ptr<const FileTable>& /*like*/) const {
  RESHARD_ASSIGN_OR_RETURN(SourceReader reader, files.OpenReader(file));
  const FileBytes bytes = BytesOf(reader, files.path(file));
  RESHARD_ASSIGN_OR_RETURN(TableOfFile read, ReadDcpItems(bytes, ArraysOf(file), path_, memory));
  return IndexedFile(file, bytes.size, std::move(read));
}

Result<std::optional<IndexedFile>> DcpTables::Tell(const SourceFiles& files,
                                                   const ChosenFile& file) const {
  const uint64_t size = file.identity.size();
  if (size == 0) return std::optional<IndexedFile>();  // it may be missing
  RESHARD_ASSIGN_OR_RETURN(TableOfFile stated,
                           StatedDcpItems(files.path(file.id), size, ArraysOf(file.id), path_));
  return std::optional(IndexedFile(file.id, size, std::move(stated)));
}

Result<IndexedFile> DcpTables::Choose(IndexedFile read, const std::string& /*path*/) {
  return read;
}

std::span<const DcpArray> DcpTables::ArraysOf(FileId file) const {
  return arrays_[static_cast<size_t>(numbers_.at(file))];
}

}  // namespace reshard
