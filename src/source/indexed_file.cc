#include "src/source/indexed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "format/container/container.h"
#include "format/mindspore_checkpoint/checkpoint_reader.h"
#include "format/safetensors/safetensors_reader.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

// At the end of a file, where it may state its CRC.
constexpr uint64_t kTailBytes = 32;

}  // namespace

Result<TableOfFile> ReadTable(const FileBytes& bytes, const MemoryCheck& memory,
                              const std::shared_ptr<const FileTable>& like) {
  std::vector<std::byte> head(std::min(bytes.size, kHeaderPage));
  // Its end, too, is looked at: one answer to wait for in place of two.
  if (bytes.is_remote && bytes.size > kHeaderPage) {
    RESHARD_RETURN_IF_ERROR(bytes.prefetch({bytes.size - kTailBytes, kTailBytes}));
  }
  if (!head.empty()) RESHARD_RETURN_IF_ERROR(bytes.read(0, head));
  const Result<Container> container = ContainerOf(head, bytes.size);
  RESHARD_RETURN_IF_ERROR(InFile(bytes.path, container.status()));
  switch (*container) {
    case Container::kMindSpore:
      return ReadMindSporeTable(bytes, std::move(head), memory, like);
    case Container::kSafetensors:
      break;
  }
  return ReadSafetensorsTable(bytes, head, memory);
}

bool IndexedFile::IsWaitedFor() const {
  return table_->container() != Container::kMindSpore || WaitsForHeaders(*table_);
}

FileBytes BytesOf(SourceReader& reader, std::string_view path) {
  return {path,
          reader.size(),
          [&reader](uint64_t offset, std::span<std::byte> out) { return reader.Read(offset, out); },
          [&reader](ByteRange range) { return reader.Prefetch(range); },
          reader.BytesAhead(),
          reader.IsRemote()};
}

Result<IndexedFile> ReadFileTable(SourceFiles& files, FileId file, const MemoryCheck& memory,
                                  const std::shared_ptr<const FileTable>& like) {
  RESHARD_ASSIGN_OR_RETURN(SourceReader reader, files.OpenReader(file));
  const FileBytes bytes = BytesOf(reader, files.path(file));
  Result<TableOfFile> read = ReadTable(bytes, memory, like);
  if (reader.decryption() == Decryption::kUnproven &&
      (read.status().code() == StatusCode::kCorrupt ||
       read.status().code() == StatusCode::kUnsupported)) {
    return CorruptError(fmt::format("{}; this is what the file decrypts to: is the key right?",
                                    read.status().message()));
  }
  RESHARD_RETURN_IF_ERROR(read.status());
  return IndexedFile(file, bytes.size, *std::move(read));
}

Result<IndexedFile> ReadTableInSet(SourceFiles& files, FileId file, const MemoryCheck& memory,
                                   const std::shared_ptr<const FileTable>& like) {
  RESHARD_ASSIGN_OR_RETURN(const uint64_t size, files.Size(file));
  if (size > 0) return ReadFileTable(files, file, memory, like);
  TableBuilder none(Container::kMindSpore);
  return IndexedFile(file, 0, TableOfFile{std::move(none).Finish(), std::nullopt, false});
}

Result<std::optional<ByteRange>> CoveredByCrc(SourceFiles& files, FileId file) {
  const std::optional<ByteRange> none;
  RESHARD_ASSIGN_OR_RETURN(SourceReader reader, files.OpenReader(file));
  if (reader.decryption() != Decryption::kNone) return none;  // no trailer is encrypted
  const FileBytes bytes = BytesOf(reader, files.path(file));
  // Both ends: one answer to wait for in place of two.
  if (bytes.is_remote && bytes.size > kHeaderPage) {
    RESHARD_RETURN_IF_ERROR(bytes.prefetch({bytes.size - kTailBytes, kTailBytes}));
  }
  std::vector<std::byte> head(std::min<uint64_t>(bytes.size, kSignatureBytes));
  if (!head.empty()) RESHARD_RETURN_IF_ERROR(bytes.read(0, head));
  const Result<Container> container = ContainerOf(head, bytes.size);
  if (!container.ok()) return none;  // reading the file says what it is
  if (*container == Container::kMindSpore) return CoveredByTrailer(bytes);
  RESHARD_ASSIGN_OR_RETURN(const bool may_state, MayStateCrc(bytes));
  if (!may_state) return none;
  RESHARD_ASSIGN_OR_RETURN(const TableOfFile read, ReadTable(bytes, {}, nullptr));
  return read.crc ? std::optional(read.crc->covered) : std::nullopt;
}

}  // namespace reshard
