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

#include "format/container_table/container_table.h"
#include "reshard/parameters.h"
#include "src/base/checked.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
bool IndexedFile::IsWaitedFor() const {
  const auto waits = table_->container().waits_for_headers;
  return waits == nullptr || waits(*table_);
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
    return CorruptError(
        fmt::format("{}, after decryption; give the key (`key`) that the file was encrypted with",
                    read.status().message()));
  }
  RESHARD_RETURN_IF_ERROR(read.status());
  return IndexedFile(file, bytes.size, *std::move(read));
}

Result<IndexedFile> ReadTableInSet(SourceFiles& files, FileId file, const MemoryCheck& memory,
                                   const std::shared_ptr<const FileTable>& like) {
  RESHARD_ASSIGN_OR_RETURN(const uint64_t size, files.Size(file));
  if (size > 0) return ReadFileTable(files, file, memory, like);
  TableBuilder none(DefaultContainer());
  return IndexedFile(file, 0, TableOfFile{std::move(none).Finish(), std::nullopt, false});
}

Status CheckNoneUnread(const IndexedFile& file, std::string_view path,
                       const std::function<Result<bool>(const std::string& name)>& wants) {
  const UnreadTensor* first = nullptr;
  FirstFew others;
  for (const UnreadTensor& tensor : file.beside().unread) {
    RESHARD_ASSIGN_OR_RETURN(const bool wanted, wants(tensor.name));
    if (!wanted) continue;
    if (first != nullptr) others.Add(Quote(tensor.name));
    if (first == nullptr) first = &tensor;
  }
  if (first == nullptr) return {};
  return UnsupportedError(fmt::format(
      "{}: tensor {}: {}{}", Escape(path), Quote(first->name), first->why,
      others.count() == 0 ? "" : fmt::format(" (likewise, tensors {})", others.Joined())));
}

std::vector<Warning> WarningsOfOthers(const std::vector<BesideOfFile>& files) {
  uint64_t others = 0;
  FirstFew paths;
  uint64_t bytes = 0;
  FirstFew holding;
  FirstFew objects;
  for (const BesideOfFile& file : files) {
    if (file.beside->values == 0) continue;
    others += file.beside->values;
    paths.Add(Escape(file.path));
    if (!file.beside->objects.empty()) holding.Add(Escape(file.path));
    for (const BesideObject& object : file.beside->objects) {
      objects.Add(fmt::format("{} ({})", Quote(object.name), object.kind));
      bytes = SaturatingAdd(bytes, object.bytes);
    }
  }
  std::vector<Warning> warnings;
  if (objects.count() > 0) {
    warnings.push_back({WarningCode::kLeftOut,
                        fmt::format("{}: objects hold {} of tensors that are not read: {}; save "
                                    "their state_dict()",
                                    holding.Joined(), FormatBytes(bytes), objects.Joined())});
  }
  if (others > 0) {
    warnings.push_back(
        {WarningCode::kLeftOut,
         fmt::format(
             "{}: {}, and not read", paths.Joined(),
             others == 1
                 ? "1 value is a number, a text or an object, not a tensor"
                 : fmt::format("{} values are numbers, texts and objects, not tensors", others))});
  }
  return warnings;
}

Warning WarningOfUnread(std::string_view source, const std::vector<UnreadTensor>& unread) {
  FirstFew named;
  for (const UnreadTensor& tensor : unread) {
    named.Add(fmt::format("{} ({})", Quote(tensor.name), tensor.why));
  }
  return {WarningCode::kLeftOut,
          unread.size() == 1
              ? fmt::format("{}: a tensor cannot be read: {}", source, named.Joined())
              : fmt::format("{}: {} tensors cannot be read: {}", source, unread.size(),
                            named.Joined())};
}

Result<std::optional<uint64_t>> CoveredByCrc(SourceFiles& files, FileId file) {
  RESHARD_ASSIGN_OR_RETURN(SourceReader reader, files.OpenReader(file));
  if (reader.decryption() != Decryption::kNone) return std::optional<uint64_t>();
  return CoveredByCrc(BytesOf(reader, files.path(file)));
}

}  // namespace reshard
