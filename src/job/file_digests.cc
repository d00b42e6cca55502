#include "src/job/file_digests.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "format/container_table/container_table.h"
#include "src/base/status_macros.h"
#include "src/digest/crc32.h"
#include "src/digest/xxh3.h"
#include "src/io/shared_work.h"
#include "src/io/source_files.h"
#include "src/source/array_crc.h"
#include "src/source/indexed_file.h"

namespace reshard {
namespace {

// Files are read in their order, so bytes that were read are not needed again.
SourceFiles::Options InOrderOnly() { return {.max_open = 1, .window_budget = 2 * kWindowBytes}; }

// Gives the bytes `range` of a file to `take`, in order, under the fault guard. After each call,
// calls `taken` with their end.
template <typename Take, typename Taken>
Status ReadInOrder(SourceFiles& files, FileId file, ByteRange range, const std::stop_token& stop,
                   const Take& take, const Taken& taken) {
  return InSteps(range, kWindowBytes, stop, {}, [&](ByteRange part) -> Status {
    RESHARD_ASSIGN_OR_RETURN(const Window window, files.Open(file, part.offset, part.length));
    RESHARD_RETURN_IF_ERROR(
        window.Read([&](const std::byte* data) { take(std::span(data, part.length)); }));
    taken(part.end());
    return {};
  });
}

// The digests of a file whose bytes come in order.
class DigestsInOrder {
 public:
  explicit DigestsInOrder(uint64_t size) : size_(size) {}

  // These two for bytes that lie in one block. Take makes no objects: it may be called under the
  // fault guard.
  void Take(std::span<const std::byte> bytes) {
    whole_.Update(bytes);
    block_.Update(bytes);
  }
  void Taken(uint64_t end) {
    if (end % kDigestBlockBytes != 0 && end != size_) return;
    blocks_.push_back(block_.HexDigest());
    block_.Reset();
  }

  // Of bytes anywhere, from `offset` on.
  void Add(uint64_t offset, std::string_view bytes) {
    while (!bytes.empty()) {
      const uint64_t length =
          std::min<uint64_t>(bytes.size(), kDigestBlockBytes - offset % kDigestBlockBytes);
      Take(std::as_bytes(std::span(bytes.data(), length)));
      offset += length;
      Taken(offset);
      bytes.remove_prefix(length);
    }
  }

  FileDigests Finish() && { return {whole_.HexDigest(), std::move(blocks_)}; }

 private:
  static_assert(kDigestBlockBytes % kWindowBytes == 0);

  const uint64_t size_;
  Xxh3 whole_;
  Xxh3 block_;
  std::vector<std::string> blocks_;
};

// Both digests of a file that has `without` or `with` at one place.
class BothDigests {
 public:
  BothDigests(uint64_t size, const CrcText& without, const CrcText& with)
      : without_(size), with_(size), text_without_(without), text_with_(with) {}

  // Adds the bytes from `offset` on, in which the place may lie.
  void Add(uint64_t offset, std::string bytes) {
    for (const auto& [digests, text] :
         {std::pair(&without_, &text_without_), std::pair(&with_, &text_with_)}) {
      if (text->offset >= offset && text->offset + text->bytes.size() <= offset + bytes.size()) {
        bytes.replace(text->offset - offset, text->bytes.size(), text->bytes);
      }
      digests->Add(offset, bytes);
    }
  }
  void Take(std::span<const std::byte> bytes) {
    without_.Take(bytes);
    with_.Take(bytes);
  }
  void Taken(uint64_t end) {
    without_.Taken(end);
    with_.Taken(end);
  }
  void Finish(CrcOfFile& found) && {
    found.without = std::move(without_).Finish();
    found.with = std::move(with_).Finish();
  }

 private:
  DigestsInOrder without_;
  DigestsInOrder with_;
  const CrcText& text_without_;
  const CrcText& text_with_;
};

// For a file whose last bytes state the CRC of the bytes before.
Result<CrcOfFile> FindTrailer(SourceFiles& files, FileId file, const CrcStatement& statement,
                              uint64_t size, const std::stop_token& stop) {
  CrcOfFile found;
  RESHARD_ASSIGN_OR_RETURN(const CrcText zero, statement.text({}, size, 0));
  Crc32 crc;
  BothDigests digests(size, zero, found.text);
  RESHARD_RETURN_IF_ERROR(ReadInOrder(
      files, file, {0, zero.offset}, stop,
      [&](std::span<const std::byte> bytes) {
        crc.Update(bytes);
        digests.Take(bytes);
      },
      [&](uint64_t end) { digests.Taken(end); }));
  RESHARD_ASSIGN_OR_RETURN(found.text, statement.text({}, size, crc.value()));
  digests.Add(zero.offset, zero.bytes);
  std::move(digests).Finish(found);
  return found;
}

// For a file whose header, which begins with `head`, states the CRC of the bytes behind it.
Result<CrcOfFile> FindInHeader(SourceFiles& files, FileId file, const CrcStatement& statement,
                               std::span<const std::byte> head, uint64_t size,
                               const std::stop_token& stop) {
  CrcOfFile found;
  RESHARD_ASSIGN_OR_RETURN(const CrcText zero, statement.text(head, size, 0));
  RESHARD_ASSIGN_OR_RETURN(const IndexedFile index, ReadFileTable(files, file));
  RESHARD_ASSIGN_OR_RETURN(const ArrayCrc crc, CrcOfArrays(files, file, index.table(), {}, stop));
  RESHARD_ASSIGN_OR_RETURN(found.text, statement.text(head, size, crc.mindspore));
  BothDigests digests(size, zero, found.text);
  digests.Add(0, std::string(reinterpret_cast<const char*>(head.data()), head.size()));
  RESHARD_RETURN_IF_ERROR(ReadInOrder(
      files, file, {head.size(), size - head.size()}, stop,
      [&](std::span<const std::byte> bytes) { digests.Take(bytes); },
      [&](uint64_t end) { digests.Taken(end); }));
  std::move(digests).Finish(found);
  return found;
}

}  // namespace

Result<bool> IsAsRecorded(const std::string& path, uint64_t expected_size,
                          const std::string& expected_digest,
                          const std::shared_ptr<const EncryptionKey>& key,
                          const std::stop_token& stop) {
  SourceFiles::Options options = InOrderOnly();
  options.key = key;
  SourceFiles files(options);
  const FileId file = files.Add(path);
  RESHARD_ASSIGN_OR_RETURN(const uint64_t size, files.Size(file));
  if (size != expected_size) return false;
  Xxh3 digest;
  RESHARD_RETURN_IF_ERROR(ReadInOrder(
      files, file, {0, size}, stop, [&](std::span<const std::byte> part) { digest.Update(part); },
      [](uint64_t) {}));
  return digest.HexDigest() == expected_digest;
}

Result<FileDigests> DigestFile(const std::string& path, const std::stop_token& stop) {
  SourceFiles files(InOrderOnly());
  const FileId file = files.Add(path);
  RESHARD_ASSIGN_OR_RETURN(const uint64_t size, files.Size(file));
  DigestsInOrder digests(size);
  RESHARD_RETURN_IF_ERROR(ReadInOrder(
      files, file, {0, size}, stop, [&](std::span<const std::byte> part) { digests.Take(part); },
      [&](uint64_t end) { digests.Taken(end); }));
  return std::move(digests).Finish();
}

Result<CrcOfFile> FindCrc(const std::string& path, const std::stop_token& stop) {
  SourceFiles files(InOrderOnly());
  const FileId file = files.Add(path);
  RESHARD_ASSIGN_OR_RETURN(const uint64_t size, files.Size(file));
  std::vector<std::byte> head(std::min<uint64_t>(size, kCrcHeadBytes));
  RESHARD_RETURN_IF_ERROR(files.Read(file, 0, head));
  RESHARD_ASSIGN_OR_RETURN(const Container* container, ContainerOf(head, size));
  const CrcStatement& statement = container->crc;
  if (statement.text == nullptr) {
    return CorruptError("there is no place in it that states a CRC-32");
  }
  if (statement.place == CrcPlace::kBehind) {
    return FindTrailer(files, file, statement, size, stop);
  }
  return FindInHeader(files, file, statement, head, size, stop);
}

}  // namespace reshard
