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
#include "src/os/file_pages.h"

namespace reshard {
namespace {

// What MindSpore puts behind the blocks where it was asked for a CRC, too: these letters, and ten
// bytes.
constexpr std::string_view kTrailerBegin = "crc_num";
constexpr uint64_t kTrailerBytes = 17;

// Reads bytes of the file, and takes those of their pages out of the page cache that were not in it
// before.
Status ReadAndDrop(const LocalFile& file, uint64_t offset, std::span<std::byte> out) {
  const uint64_t page = PageSize();
  const uint64_t begin = offset / page * page;
  const ByteRange pages{begin, std::min(file.size() - begin, offset + out.size() - begin)};
  bool any_uncached = false;
  for (uint64_t at = 0; at < pages.length && !any_uncached; at += kMostResidencyBytes) {
    const ByteRange part{begin + at, std::min(kMostResidencyBytes, pages.length - at)};
    file.FindUncached(part, [&any_uncached](ByteRange /*uncached*/) { any_uncached = true; });
  }
  RESHARD_RETURN_IF_ERROR(file.ReadAt(offset, out));
  if (any_uncached) file.DropCached(pages);
  return {};
}

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
    return Status(cipher.status().code(),
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
    const Result<uint32_t> plain = blocks->cipher_.PlainBytes(
        block,
        [&](uint64_t at, std::span<std::byte> out) { return file.ReadAt(offset + at, out); });
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
  const Status status = cipher_.Authenticate(block, [&](uint64_t at, std::span<std::byte> out) {
    return ReadAndDrop(file, first + at, out);
  });
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
    RESHARD_RETURN_IF_ERROR(cipher_.Decrypt(
        block, offset - place.plain, plain.first(length),
        [&](uint64_t at, std::span<std::byte> out) { return ReadAndDrop(file, first + at, out); }));
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
