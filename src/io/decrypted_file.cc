#include "src/io/decrypted_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
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

// As LocalFile::FindUncached, of any number of bytes. Returns whether the kernel told of all.
bool ForEachUncached(const LocalFile& file, ByteRange pages,
                     const std::function<void(ByteRange)>& visit) {
  bool is_told = true;
  for (uint64_t at = pages.offset; at < pages.end(); at += kMostResidencyBytes) {
    const ByteRange part{at, std::min(kMostResidencyBytes, pages.end() - at)};
    is_told = file.FindUncached(part, visit) != Residency::kUnknown && is_told;
  }
  return is_told;
}

// Cipher bytes of a block, one step after the other. They are copied, even where the file is
// mapped: to make pages of a map present and to give them back takes longer, and threads of a
// process wait for each other there. Pages that were not in the page cache before leave it again.
class CipherReader {
 public:
  // Of bytes in the file's `range`.
  CipherReader(const LocalFile& file, ByteRange range) : file_(file), range_(range) {}
  CipherReader(const CipherReader&) = delete;
  CipherReader& operator=(const CipherReader&) = delete;
  ~CipherReader() { Leave(); }

  // As CipherBytes, at an offset of the file.
  Status Read(uint64_t offset, std::span<std::byte> buffer) {
    const ByteRange bytes{offset, buffer.size()};
    if (bytes.offset < pages_.offset || bytes.end() > pages_.end()) {
      Leave();
      Enter(bytes);
    }
    return file_.ReadAt(offset, buffer);
  }

 private:
  // Pages that are asked for at a time.
  static constexpr uint64_t kAtATime = kMostResidencyBytes;

  // Starts reading the pages of these bytes and of what follows, unless that is a single read.
  void Enter(ByteRange bytes) {
    const uint64_t begin = bytes.offset / PageSize() * PageSize();
    const uint64_t end = std::max(bytes.end(), std::min(range_.end(), begin + kAtATime));
    pages_ = {begin, end - begin};
    ForEachUncached(file_, pages_, [this](ByteRange uncached) { uncached_.push_back(uncached); });
    if (end == bytes.end()) return;
    for (const ByteRange& uncached : uncached_) {
      file_.Prefetch({uncached.offset, std::min(uncached.length, end - uncached.offset)});
    }
  }

  void Leave() {
    for (const ByteRange& uncached : uncached_) file_.DropCached(uncached);
    uncached_.clear();
    pages_ = {};
  }

  const LocalFile& file_;
  const ByteRange range_;
  ByteRange pages_;
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
    const auto cipher_bytes = [&](uint64_t at, std::span<std::byte> buffer) {
      return file.ReadAt(offset + at, buffer);
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
  Status status = cipher_.Authenticate(block, [&](uint64_t at, std::span<std::byte> buffer) {
    return reader.Read(first + at, buffer);
  });
  if (status.code() == StatusCode::kCorrupt) {
    // Somebody may have written to it meanwhile.
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
    RESHARD_RETURN_IF_ERROR(cipher_.Decrypt(
        block, from, plain.first(length),
        [&](uint64_t at, std::span<std::byte> buffer) { return reader.Read(first + at, buffer); }));
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

bool DecryptedFile::IsCached(ByteRange range) const {
  const ByteRange cipher = blocks_->CipherOf(range);
  const uint64_t before = cipher.offset % PageSize();
  bool is_cached = true;
  const bool is_told = ForEachUncached(file_, {cipher.offset - before, cipher.length + before},
                                       [&is_cached](ByteRange /*pages*/) { is_cached = false; });
  return is_told && is_cached;
}

Status DecryptedFile::ReadAt(uint64_t offset, std::span<std::byte> destination) const {
  RESHARD_RETURN_IF_ERROR(CheckRange(offset, destination.size()));
  return blocks_->ReadAt(file_, offset, destination);
}

}  // namespace reshard
