#include "src/io/decrypted_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <functional>
#include <string_view>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/fault_guard.h"
#include "src/os/file_pages.h"

namespace reshard {
namespace {

// What MindSpore puts behind the blocks where it was asked for a CRC, too: these letters, and ten
// bytes.
constexpr std::string_view kTrailerBegin = "crc_num";
constexpr uint64_t kTrailerBytes = 17;

uint64_t RoundUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

// Cipher bytes of a block, one step after the other. Where the file is mapped they are used in the
// map, which the end of a file that shrinks shows zeros in; a few of them are copied, as headers
// are. Pages that were not in the page cache before leave it again.
class CipherReader {
 public:
  // Of bytes in the file's `range`.
  CipherReader(const LocalFile& file, ByteRange range) : file_(file), range_(range) {}
  CipherReader(const CipherReader&) = delete;
  CipherReader& operator=(const CipherReader&) = delete;
  ~CipherReader() { Leave(); }

  // As CipherBytes, at an offset of the file.
  Status Use(uint64_t offset, std::span<std::byte> buffer, const UseBytes& use) {
    const std::byte* const map = file_.map();
    const ByteRange bytes{offset, buffer.size()};
    const bool is_copied = map == nullptr || bytes.length < kWorthMap;
    if (bytes.offset < pages_.offset || bytes.end() > pages_.end()) {
      Leave();
      RESHARD_RETURN_IF_ERROR(Enter(bytes, is_copied));
    }
    if (is_copied) {
      RESHARD_RETURN_IF_ERROR(file_.ReadAt(offset, buffer));
      use(buffer.data());
      return {};
    }
    const std::optional<size_t> fault =
        Guarded(map + offset, buffer.size(), [map, offset, &use] { use(map + offset); });
    return fault ? file_.ExplainFault(offset + *fault) : Status();
  }

 private:
  // Fewer are copied in less time than their pages take to be mapped.
  static constexpr uint64_t kWorthMap = uint64_t{64} << 10;
  static constexpr uint64_t kMappedAround = uint64_t{64} << 10;
  // Pages that are mapped at a time.
  static constexpr uint64_t kAtATime = kMostResidencyBytes;

  // Makes the pages of these bytes present and, of a map, of what follows.
  Status Enter(ByteRange bytes, bool is_copied) {
    const uint64_t page = PageSize();
    const uint64_t begin = bytes.offset / page * page;
    uint64_t end = bytes.end();
    if (!is_copied) end = std::max(end, std::min(range_.end(), begin + kAtATime));
    pages_ = {begin, end - begin};
    is_mapped_ = !is_copied;
    for (uint64_t at = begin; at < end; at += kMostResidencyBytes) {
      const ByteRange part{at, std::min(kMostResidencyBytes, end - at)};
      file_.FindUncached(part, [this](ByteRange uncached) { uncached_.push_back(uncached); });
    }
    if (is_copied) return {};
    for (const ByteRange& uncached : uncached_) {
      file_.Prefetch({uncached.offset, std::min(uncached.length, end - uncached.offset)});
    }
    return file_.Populate(pages_);
  }

  void Leave() {
    if (is_mapped_) {
      // Around pages that are asked for, the kernel maps what it has.
      const uint64_t begin = pages_.offset / kMappedAround * kMappedAround;
      const uint64_t end = RoundUp(pages_.end(), kMappedAround);
      file_.Unmap({begin, std::min(end, RoundUp(file_.size(), PageSize())) - begin});
    }
    for (const ByteRange& uncached : uncached_) file_.DropCached(uncached);
    uncached_.clear();
    pages_ = {};
    is_mapped_ = false;
  }

  const LocalFile& file_;
  const ByteRange range_;
  ByteRange pages_;  // present, if the file is mapped
  bool is_mapped_ = false;
  std::vector<ByteRange> uncached_;  // of these pages
};

Result<bool> IsTrailer(const LocalFile& file, uint64_t offset) {
  if (file.size() - offset != kTrailerBytes) return false;
  std::array<char, kTrailerBegin.size()> begin;
  RESHARD_RETURN_IF_ERROR(file.ReadAt(offset, std::as_writable_bytes(std::span(begin))));
  return std::string_view(begin.data(), begin.size()) == kTrailerBegin;
}

}  // namespace

Result<std::optional<EncryptionMode>> EncryptionModeOf(const LocalFile& file) {
  if (file.size() < kMagicBytes) return std::optional<EncryptionMode>();
  std::array<std::byte, kMagicBytes> head;
  RESHARD_RETURN_IF_ERROR(file.ReadAt(0, head));
  return EncryptionModeOf(head);
}

Result<std::shared_ptr<EncryptedBlocks>> EncryptedBlocks::Read(
    const LocalFile& file, EncryptionMode mode, std::shared_ptr<const EncryptionKey> key) {
  Result<BlockCipher> cipher = BlockCipher::Make(std::move(key), mode);
  if (!cipher.ok()) {
    return cipher.status().WithMessage(
        fmt::format("{}: {}", Escape(file.path()), cipher.status().message()));
  }
  const std::shared_ptr<EncryptedBlocks> blocks(new EncryptedBlocks(*std::move(cipher)));
  for (uint64_t offset = 0; offset < file.size();) {
    RESHARD_ASSIGN_OR_RETURN(const bool is_trailer, IsTrailer(file, offset));
    if (is_trailer) break;
    const size_t number = blocks->places_.size();
    if (number == kMostBlocks) {
      return ResourceExhaustedError(fmt::format(
          "{}: expected at most {} encrypted blocks, found more; save it again in larger blocks",
          Escape(file.path()), kMostBlocks));
    }
    blocks->places_.push_back({offset, blocks->size_});
    RESHARD_ASSIGN_OR_RETURN(const EncryptedBlock block, blocks->ReadHeader(file, number));
    offset += BlockHeaderBytes(mode);
    const auto cipher_bytes = [&](uint64_t at, std::span<std::byte> buffer,
                                  const UseBytes& use) -> Status {
      RESHARD_RETURN_IF_ERROR(file.ReadAt(offset + at, buffer));
      use(buffer.data());
      return {};
    };
    const Result<uint32_t> plain = blocks->cipher_.PlainBytes(block, cipher_bytes);
    RESHARD_RETURN_IF_ERROR(blocks->InBlock(file, number, plain.status()));
    blocks->size_ += *plain;
    offset += block.cipher_bytes;
  }
  return blocks;
}

size_t EncryptedBlocks::BlockAt(uint64_t plain) const {
  const auto behind =
      std::upper_bound(places_.begin(), places_.end(), plain,
                       [](uint64_t offset, const Place& place) { return offset < place.plain; });
  assert(behind != places_.begin());
  return static_cast<size_t>(behind - places_.begin()) - 1;
}

Status EncryptedBlocks::InBlock(const LocalFile& file, size_t number, const Status& status) const {
  if (status.code() != StatusCode::kCorrupt) return status;
  return CorruptError(fmt::format("{}: encrypted block {} at offset {}: {}", Escape(file.path()),
                                  number, places_[number].offset, status.message()));
}

Result<EncryptedBlock> EncryptedBlocks::ReadHeader(const LocalFile& file, size_t number) const {
  const uint64_t offset = places_[number].offset;
  std::array<std::byte, kMostBlockHeader> buffer;
  const std::span header(
      buffer.data(), std::min<uint64_t>(BlockHeaderBytes(cipher_.mode()), file.size() - offset));
  RESHARD_RETURN_IF_ERROR(file.ReadAt(offset, header));
  Result<EncryptedBlock> block = ParseBlockHeader(cipher_.mode(), header, file.size() - offset);
  RESHARD_RETURN_IF_ERROR(InBlock(file, number, block.status()));
  return block;
}

Status EncryptedBlocks::CheckTag(const LocalFile& file, size_t number,
                                 const EncryptedBlock& block) {
  if (cipher_.mode() != EncryptionMode::kAesGcm) return {};
  std::unique_lock lock(mutex_);
  TagState& tag = places_[number].tag;
  checked_.wait(lock, [&tag] { return tag != TagState::kBeingChecked; });
  if (tag == TagState::kFits) return {};
  tag = TagState::kBeingChecked;
  lock.unlock();
  const uint64_t first = places_[number].offset + BlockHeaderBytes(cipher_.mode());
  CipherReader reader(file, {first, block.cipher_bytes});
  Status status = cipher_.Authenticate(
      block, [&](uint64_t at, std::span<std::byte> buffer, const UseBytes& use) {
        return reader.Use(first + at, buffer, use);
      });
  if (status.code() == StatusCode::kCorrupt) {
    // The end of a file that shrank reads as zeros in a map.
    const Result<FileIdentity> now = file.CurrentIdentity();
    if (now.ok() && *now != file.identity()) status = file.ExplainFault(first);
  }
  lock.lock();
  tag = status.ok() ? TagState::kFits : TagState::kUnknown;
  checked_.notify_all();
  return InBlock(file, number, status);
}

Status EncryptedBlocks::ReadAt(const LocalFile& file, uint64_t offset, std::span<std::byte> plain) {
  while (!plain.empty()) {
    const size_t number = BlockAt(offset);
    const Place& place = places_[number];
    const uint64_t end = number + 1 < places_.size() ? places_[number + 1].plain : size_;
    const size_t length = std::min<uint64_t>(plain.size(), end - offset);
    RESHARD_ASSIGN_OR_RETURN(const EncryptedBlock block, ReadHeader(file, number));
    RESHARD_RETURN_IF_ERROR(CheckTag(file, number, block));
    const uint64_t first = place.offset + BlockHeaderBytes(cipher_.mode());
    const uint64_t from = offset - place.plain;
    // To the end of a unit.
    CipherReader reader(
        file, {first + from, std::min<uint64_t>(length + kCipherUnit, block.cipher_bytes - from)});
    RESHARD_RETURN_IF_ERROR(
        cipher_.Decrypt(block, from, plain.first(length),
                        [&](uint64_t at, std::span<std::byte> buffer, const UseBytes& use) {
                          return reader.Use(first + at, buffer, use);
                        }));
    offset += length;
    plain = plain.subspan(length);
  }
  return {};
}

ByteRange EncryptedBlocks::CipherOf(ByteRange plain) const {
  if (plain.offset >= size_) return {};
  const size_t number = BlockAt(plain.offset);
  const Place& place = places_[number];
  return {place.offset + BlockHeaderBytes(cipher_.mode()) + (plain.offset - place.plain),
          plain.length};
}

Status DecryptedFile::ReadAt(uint64_t offset, std::span<std::byte> destination) const {
  RESHARD_RETURN_IF_ERROR(CheckRange(offset, destination.size()));
  return blocks_->ReadAt(file_, offset, destination);
}

}  // namespace reshard
