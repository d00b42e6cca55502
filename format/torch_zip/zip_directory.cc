#include "format/torch_zip/zip_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "format/container/file_table.h"
#include "src/base/checked.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/digest/crc32.h"

namespace reshard {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50;   // "PK\3\4"
constexpr uint32_t kEntry = 0x02014b50;         // "PK\1\2"
constexpr uint32_t kEndRecord = 0x06054b50;     // "PK\5\6"
constexpr uint32_t kZip64Record = 0x06064b50;   // "PK\6\6"
constexpr uint32_t kZip64Locator = 0x07064b50;  // "PK\6\7"

constexpr uint64_t kLocalHeaderBytes = 30;
constexpr uint64_t kEntryBytes = 46;
constexpr uint64_t kEndRecordBytes = 22;
constexpr uint64_t kZip64RecordBytes = 56;
constexpr uint64_t kZip64LocatorBytes = 20;

constexpr uint32_t kNo32 = 0xffffffff;  // in the place of a number that a ZIP64 record has
constexpr uint32_t kNo16 = 0xffff;
constexpr uint16_t kZip64Extra = 1;
constexpr uint32_t kEncrypted = 1;                    // of the flags
constexpr uint32_t kHasDescriptor = 8;                // sizes and CRC stand behind the content
constexpr uint32_t kOtherMeanings = 0x20              // patched data
                                    | 0x40 | 0x2000;  // strong encryption, masked headers

uint64_t Number(std::span<const std::byte> bytes, uint64_t at, size_t count) {
  uint64_t number = 0;
  for (size_t i = count; i-- > 0;) number = number << 8 | std::to_integer<uint64_t>(bytes[at + i]);
  return number;
}
uint32_t Number16(std::span<const std::byte> bytes, uint64_t at) {
  return static_cast<uint32_t>(Number(bytes, at, 2));
}
uint32_t Number32(std::span<const std::byte> bytes, uint64_t at) {
  return static_cast<uint32_t>(Number(bytes, at, 4));
}
uint64_t Number64(std::span<const std::byte> bytes, uint64_t at) { return Number(bytes, at, 8); }

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Whether a field of the old end record agrees with the ZIP64 one.
bool Agrees(uint64_t old, uint64_t number, uint64_t none) { return old == number || old == none; }

// Returns the data of the ZIP64 extra field, empty if there is none. No value: the fields do
// not fill `extra`.
std::optional<std::span<const std::byte>> Zip64Of(std::span<const std::byte> extra) {
  std::span<const std::byte> found;
  while (extra.size() >= 4) {
    const uint32_t id = Number16(extra, 0);
    const uint32_t bytes = Number16(extra, 2);
    if (bytes > extra.size() - 4) return std::nullopt;
    if (id == kZip64Extra) {
      if (!found.empty()) return std::nullopt;
      found = extra.subspan(4, bytes);
    }
    extra = extra.subspan(4 + bytes);
  }
  return found;
}

// Takes the next number of a ZIP64 field for `number`, if this stands for it.
bool TakeZip64(std::span<const std::byte>& zip64, uint64_t& number) {
  if (number != kNo32) return true;
  if (zip64.size() < 8) return false;
  number = Number64(zip64, 0);
  zip64 = zip64.subspan(8);
  return true;
}

}  // namespace

Status ZipDirectory::Error(StatusCode code, std::string_view what) const {
  const bool is_part = zip_.offset != 0 || zip_.length != file_->size;
  return InFile(file_->path, Status(code, is_part ? fmt::format("item at {}: {}", zip_.offset, what)
                                                  : std::string(what)));
}

Status ZipDirectory::ErrorIn(const ZipMember& member, StatusCode code,
                             std::string_view what) const {
  return Error(code, fmt::format("member {}: {}", Quote(member.name), what));
}

Result<ZipDirectory> ZipDirectory::Read(const FileBytes& file, ByteRange zip,
                                        const MemoryCheck& memory) {
  ZipDirectory directory(file, zip);
  if (zip.offset > file.size || zip.length > file.size - zip.offset) {
    return directory.Error(StatusCode::kCorrupt, fmt::format("{} bytes, but the file has {} in all",
                                                             zip.length, file.size));
  }
  RESHARD_RETURN_IF_ERROR(directory.ReadBlocks());
  RESHARD_ASSIGN_OR_RETURN(const Place place, directory.FindPlace());
  const uint64_t of_entries = place.count * (sizeof(ZipMember) + sizeof(uint32_t));
  if (place.bytes + of_entries > kMaxTableBytes) {
    return directory.Error(StatusCode::kResourceExhausted,
                           fmt::format("its directory of {} members takes more than {} MiB",
                                       place.count, kMaxTableBytes >> 20));
  }
  RESHARD_RETURN_IF_ERROR(CheckMemory(memory, place.bytes + of_entries));
  RESHARD_ASSIGN_OR_RETURN(directory.entries_, directory.Bytes(place.offset, place.bytes));
  RESHARD_RETURN_IF_ERROR(directory.ParseEntries(place));
  RESHARD_RETURN_IF_ERROR(directory.CheckMembers(place.offset));
  return directory;
}

Status ZipDirectory::ReadBlocks() {
  const uint64_t tail = std::min(zip_.length, kZipTailBytes);
  if (zip_.length <= kZipHeadBytes + kZipTailBytes) {
    tail_ = {0, std::vector<std::byte>(zip_.length)};
    return zip_.length == 0 ? Status() : file_->read(zip_.offset, tail_.bytes);
  }
  head_ = {0, std::vector<std::byte>(kZipHeadBytes)};
  tail_ = {zip_.length - tail, std::vector<std::byte>(tail)};
  RESHARD_RETURN_IF_ERROR(file_->read(zip_.offset, head_.bytes));
  return file_->read(zip_.offset + tail_.offset, tail_.bytes);
}

Result<std::vector<std::byte>> ZipDirectory::Bytes(uint64_t offset, uint64_t count) const {
  std::vector<std::byte> bytes(count);
  if (count == 0) return bytes;
  for (const Block* block : {&head_, &tail_}) {
    if (offset < block->offset || offset - block->offset > block->bytes.size() ||
        count > block->bytes.size() - (offset - block->offset)) {
      continue;
    }
    std::memcpy(bytes.data(), block->bytes.data() + (offset - block->offset), count);
    return bytes;
  }
  RESHARD_RETURN_IF_ERROR(file_->read(zip_.offset + offset, bytes));
  return bytes;
}

Result<ZipDirectory::Place> ZipDirectory::FindPlace() const {
  const std::span<const std::byte> tail(tail_.bytes);
  if (tail.size() < kEndRecordBytes ||
      Number32(tail, tail.size() - kEndRecordBytes) != kEndRecord) {
    return Error(
        StatusCode::kCorrupt,
        fmt::format("expected the end record of a zip in the last {} of {} bytes; the file "
                    "is truncated or has something else at its end: copy it again",
                    kEndRecordBytes, zip_.length));
  }
  const std::span<const std::byte> record = tail.last(kEndRecordBytes);
  const bool is_first = Number16(record, 4) == 0 && Number16(record, 6) == 0 &&
                        Number16(record, 8) == Number16(record, 10);
  if (!is_first || Number16(record, 20) != 0) {
    return Error(StatusCode::kCorrupt,
                 "the end record says that the zip has further parts, or a comment");
  }
  Place place{.offset = Number32(record, 16),
              .bytes = Number32(record, 12),
              .count = Number16(record, 10),
              .end = zip_.length - kEndRecordBytes};
  RESHARD_RETURN_IF_ERROR(ApplyZip64(place));
  if (place.offset > place.end || place.bytes > place.end - place.offset ||
      place.count > place.bytes / kEntryBytes) {
    return Error(
        StatusCode::kCorrupt,
        fmt::format("a directory of {} members in {} bytes at {}, but the end record is at "
                    "{}, and each member takes {} bytes or more",
                    place.count, place.bytes, place.offset, place.end, kEntryBytes));
  }
  return place;
}

Status ZipDirectory::ApplyZip64(Place& place) const {
  const std::span<const std::byte> tail(tail_.bytes);
  const bool needs = place.offset == kNo32 || place.bytes == kNo32 || place.count == kNo16;
  const uint64_t behind = kEndRecordBytes + kZip64LocatorBytes;
  if (tail.size() < behind || Number32(tail, tail.size() - behind) != kZip64Locator) {
    return needs ? Error(StatusCode::kCorrupt,
                         "the zip's end record needs a ZIP64 record, but "
                         "no locator stands before it")
                 : Status();
  }
  const uint64_t locator = zip_.length - behind;
  const uint64_t at = Number64(tail, tail.size() - behind + 8);
  if (at > locator || locator - at < kZip64RecordBytes) {
    return Error(StatusCode::kCorrupt,
                 fmt::format("the ZIP64 locator at {} says that the record is at {}", locator, at));
  }
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::byte> record, Bytes(at, kZip64RecordBytes));
  if (Number32(record, 0) != kZip64Record || Number64(record, 4) != locator - at - 12 ||
      Number32(record, 16) != 0 || Number32(record, 20) != 0) {
    return Error(StatusCode::kCorrupt,
                 fmt::format("expected a ZIP64 record of {} bytes at {}", locator - at, at));
  }
  const Place zip64{.offset = Number64(record, 48),
                    .bytes = Number64(record, 40),
                    .count = Number64(record, 32),
                    .end = at};
  if (!Agrees(place.offset, zip64.offset, kNo32) || !Agrees(place.bytes, zip64.bytes, kNo32) ||
      !Agrees(place.count, zip64.count, kNo16) || Number64(record, 24) != zip64.count) {
    return Error(StatusCode::kCorrupt,
                 fmt::format("the end record says {} members in {} bytes at {}, the ZIP64 record "
                             "{} in {} at {}",
                             place.count, place.bytes, place.offset, zip64.count, zip64.bytes,
                             zip64.offset));
  }
  place = zip64;
  return {};
}

Status ZipDirectory::ParseEntries(const Place& place) {
  members_.reserve(place.count);
  uint64_t at = 0;
  for (uint64_t i = 0; i < place.count; ++i) {
    RESHARD_ASSIGN_OR_RETURN(const ZipMember member, ParseEntry(at, at));
    members_.push_back(member);
    states_crcs_ = states_crcs_ || member.crc != 0;
  }
  if (at == entries_.size()) return {};
  return Error(StatusCode::kCorrupt,
               fmt::format("the {} members of the directory take {} of its {} bytes", place.count,
                           at, entries_.size()));
}

Result<ZipMember> ZipDirectory::ParseEntry(uint64_t at, uint64_t& next) const {
  const std::span<const std::byte> entry = std::span(entries_).subspan(at);
  if (entry.size() < kEntryBytes || Number32(entry, 0) != kEntry) {
    return Error(StatusCode::kCorrupt,
                 fmt::format("expected a member at byte {} of the directory", at));
  }
  const uint64_t name = Number16(entry, 28);
  const uint64_t extra = Number16(entry, 30);
  const uint64_t all = kEntryBytes + name + extra + Number16(entry, 32);
  if (all > entry.size()) {
    return Error(StatusCode::kCorrupt,
                 fmt::format("a member of {} bytes at byte {} of the directory, which has {}", all,
                             at, entries_.size()));
  }
  ZipMember member{.name = TextOf(entry.subspan(kEntryBytes, name)),
                   .header = Number32(entry, 42),
                   .size = Number32(entry, 24),
                   .crc = Number32(entry, 16)};
  const uint32_t flags = Number16(entry, 8);
  if ((flags & (kEncrypted | kOtherMeanings)) != 0) {
    return ErrorIn(
        member, StatusCode::kCorrupt,
        fmt::format("encrypted (flags {:#06x}); torch.save stores members as they are", flags));
  }
  if (const uint32_t method = Number16(entry, 10); method != 0) {
    return ErrorIn(
        member, StatusCode::kCorrupt,
        fmt::format("compressed (method {}); torch.save stores members as they are", method));
  }
  uint64_t stored = Number32(entry, 20);
  auto zip64 = Zip64Of(entry.subspan(kEntryBytes + name, extra));
  if (!zip64 || !TakeZip64(*zip64, member.size) || !TakeZip64(*zip64, stored) ||
      !TakeZip64(*zip64, member.header)) {
    return ErrorIn(member, StatusCode::kCorrupt, "its extra fields in the directory are cut short");
  }
  if (stored != member.size) {
    return ErrorIn(
        member, StatusCode::kCorrupt,
        fmt::format("{} bytes stored as {}, though it is not compressed", member.size, stored));
  }
  next = at + all;
  return member;
}

Status ZipDirectory::CheckMembers(uint64_t directory) {
  std::stable_sort(members_.begin(), members_.end(),
                   [](const ZipMember& a, const ZipMember& b) { return a.header < b.header; });
  uint64_t end = directory;
  for (size_t i = members_.size(); i-- > 0;) {
    ZipMember& member = members_[i];
    const std::optional<uint64_t> needed =
        CheckedAdd(kLocalHeaderBytes + member.name.size(), member.size);
    if (member.header > end || !needed || *needed > end - member.header) {
      return ErrorIn(
          member, StatusCode::kCorrupt,
          fmt::format("{} bytes and a header at {}, but {} begins at {}", member.size,
                      member.header, end == directory ? "the directory" : "the next member", end));
    }
    member.room = end - member.header;
    end = member.header;
  }
  by_name_.resize(members_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0U);
  const auto name = [this](uint32_t i) { return members_[i].name; };
  std::sort(by_name_.begin(), by_name_.end(),
            [&](uint32_t a, uint32_t b) { return name(a) < name(b); });
  const auto twice = std::adjacent_find(by_name_.begin(), by_name_.end(),
                                        [&](uint32_t a, uint32_t b) { return name(a) == name(b); });
  if (twice == by_name_.end()) return {};
  return ErrorIn(members_[*twice], StatusCode::kCorrupt, "its name occurs twice in the zip");
}

const ZipMember* ZipDirectory::Find(std::string_view name) const {
  const auto found =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [this](uint32_t i, std::string_view n) { return members_[i].name < n; });
  if (found == by_name_.end() || members_[*found].name != name) return nullptr;
  return &members_[*found];
}

Status ZipDirectory::PrefetchHeader(const ZipMember& member) const {
  return file_->prefetch({zip_.offset + member.header, kLocalHeaderBytes + member.name.size()});
}

Result<ByteRange> ZipDirectory::ContentOf(const ZipMember& member) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::byte> header,
                           Bytes(member.header, kLocalHeaderBytes + member.name.size()));
  if (Number32(header, 0) != kLocalHeader) {
    return ErrorIn(member, StatusCode::kCorrupt,
                   fmt::format("expected its local header at {}", member.header));
  }
  const uint32_t flags = Number16(header, 6);
  if ((flags & (kEncrypted | kOtherMeanings)) != 0 || Number16(header, 8) != 0 ||
      Number16(header, 26) != member.name.size() ||
      TextOf(std::span(header).subspan(kLocalHeaderBytes)) != member.name) {
    return ErrorIn(member, StatusCode::kCorrupt,
                   fmt::format("its local header at {} has another name, method or flags than the "
                               "directory",
                               member.header));
  }
  const uint32_t size = Number32(header, 22);
  if ((flags & kHasDescriptor) == 0 &&
      (Number32(header, 14) != member.crc || !Agrees(size, member.size, kNo32))) {
    return ErrorIn(member, StatusCode::kCorrupt,
                   fmt::format("{} bytes with CRC-32 {:08x} by its local header at {}, {} with "
                               "{:08x} by the directory",
                               size, Number32(header, 14), member.header, member.size, member.crc));
  }
  const uint64_t before = header.size() + Number16(header, 28);
  if (before > member.room || member.size > member.room - before) {
    return ErrorIn(member, StatusCode::kCorrupt,
                   fmt::format("{} bytes behind {} of its local header at {} reach beyond {}, the "
                               "begin of what is next",
                               member.size, before, member.header, member.header + member.room));
  }
  return ByteRange{zip_.offset + member.header + before, member.size};
}

Result<std::string> ZipDirectory::ReadChecked(const ZipMember& member, const MemoryCheck& memory) {
  RESHARD_ASSIGN_OR_RETURN(const ByteRange content, ContentOf(member));
  if (member.size > kMaxTableBytes) {
    return ErrorIn(
        member, StatusCode::kResourceExhausted,
        fmt::format("{} bytes; at most {} MiB are read", member.size, kMaxTableBytes >> 20));
  }
  RESHARD_RETURN_IF_ERROR(CheckMemory(memory, 2 * member.size));
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                           Bytes(content.offset - zip_.offset, content.length));
  if (!states_crcs_) return std::string(TextOf(bytes));
  Crc32 crc;
  crc.Update(bytes);
  if (crc.value() != member.crc) {
    return ErrorIn(member, StatusCode::kCorrupt,
                   fmt::format("its CRC-32 is {:08x}, the directory says {:08x}; the file is "
                               "damaged: take another copy",
                               crc.value(), member.crc));
  }
  return std::string(TextOf(bytes));
}

}  // namespace reshard
