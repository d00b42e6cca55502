#include "src/io/decrypted_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <functional>
#include <string_view>

#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/shared_work.h"
#include "src/io/window_cache.h"
#include "src/os/file_pages.h"
#include "src/os/local_file.h"
#include "src/os/threads.h"

namespace reshard {
namespace {

// MindSpore's trailer behind the blocks if a CRC was requested: these letters and ten bytes.
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

// So many headers of blocks are asked for ahead, unless blocks are small: almost every page of the
// file has one then.
constexpr size_t kHeadersAhead = 64;
constexpr uint64_t kSmallBlock = uint64_t{16} << 10;

// Makes the disk read the headers of the next blocks from the one at `offset` on, with the bytes
// before each, assuming that blocks have `stride` bytes.
void AskForHeaders(const ByteSource& file, uint64_t offset, uint64_t stride) {
  for (size_t i = 1; i <= kHeadersAhead && file.size() > kMostBlockHeader; ++i) {
    const uint64_t next = offset + i * stride;
    if (next > file.size() - kMostBlockHeader) return;
    file.Prefetch({next - 2 * kCipherUnit, 2 * kCipherUnit + kMostBlockHeader});
  }
}

Result<bool> IsTrailer(const ByteSource& file, uint64_t offset) {
  if (file.size() - offset != kTrailerBytes) return false;
  std::array<char, kTrailerBegin.size()> begin;
  RESHARD_RETURN_IF_ERROR(file.ReadAt(offset, std::as_writable_bytes(std::span(begin))));
  return std::string_view(begin.data(), begin.size()) == kTrailerBegin;
}

}  // namespace

// Bytes of encrypted blocks, one step after the other. They are copied even if the file is mapped,
// because mapping and unmapping pages takes longer, and threads of a process wait for each other
// there. Pages that this reader brought into the page cache leave it again.
class EncryptedBlocks::CipherReader {
 public:
  // Of bytes in the file's `range`.
  CipherReader(const ByteSource& file, ByteRange range) : file_(file), range_(range) {}
  CipherReader(const CipherReader&) = delete;
  CipherReader& operator=(const CipherReader&) = delete;
  ~CipherReader() { Leave(); }

  // As ByteSource::ReadAt.
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

  // Starts reading the pages with these bytes and the next ones, unless a single read is enough.
  void Enter(ByteRange bytes) {
    const uint64_t begin = bytes.offset / PageSize() * PageSize();
    const uint64_t end = std::max(bytes.end(), std::min(range_.end(), begin + kAtATime));
    pages_ = {begin, end - begin};
    if (file_.pages() == nullptr) {
      if (end > bytes.end()) file_.Prefetch({bytes.offset, end - bytes.offset});
      return;
    }
    ForEachUncached(*file_.pages(), pages_,
                    [this](ByteRange uncached) { uncached_.push_back(uncached); });
    if (end == bytes.end()) return;
    for (const ByteRange& uncached : uncached_) {
      file_.Prefetch({uncached.offset, std::min(uncached.length, end - uncached.offset)});
    }
  }

  void Leave() {
    for (const ByteRange& uncached : uncached_) file_.pages()->DropCached(uncached);
    uncached_.clear();
    pages_ = {};
  }

  const ByteSource& file_;
  const ByteRange range_;
  ByteRange pages_;
  std::vector<ByteRange> uncached_;  // the uncached ones of these pages
};

Result<std::optional<TargetSpec::EncryptionMode>> EncryptionModeOf(const ByteSource& file) {
  if (file.size() < kMagicBytes) return std::optional<TargetSpec::EncryptionMode>();
  std::array<std::byte, kMagicBytes> head;
  RESHARD_RETURN_IF_ERROR(file.ReadAt(0, head));
  return EncryptionModeOf(head);
}

Result<std::shared_ptr<EncryptedBlocks>> EncryptedBlocks::Read(
    const ByteSource& file, TargetSpec::EncryptionMode mode,
    std::shared_ptr<const EncryptionKey> key) {
  Result<BlockCipher> cipher = BlockCipher::Make(std::move(key), mode);
  if (!cipher.ok()) {
    return cipher.status().WithMessage(
        fmt::format("{}: {}", Escape(file.path()), cipher.status().message()));
  }
  const std::shared_ptr<EncryptedBlocks> blocks(new EncryptedBlocks(*std::move(cipher)));
  RESHARD_ASSIGN_OR_RETURN(blocks->layout_, blocks->FindEach(file));
  blocks->states_.resize(blocks->layout_.count, BlockState::kUnknown);
  return blocks;
}

Result<EncryptedBlocks::Layout> EncryptedBlocks::FindEach(const ByteSource& file) const {
  RESHARD_ASSIGN_OR_RETURN(const Place second, EndOf(file, 0, {}));
  Layout found;
  found.even = second;
  for (Place place; place.offset < file.size(); place = found.end) {
    RESHARD_ASSIGN_OR_RETURN(const bool is_trailer, IsTrailer(file, place.offset));
    if (is_trailer) break;
    const size_t number = found.count++;
    const bool is_even = found.places.empty() && place.offset == number * second.offset &&
                         place.plain == number * second.plain;
    if (number >= (is_even ? kMostEvenBlocks : kMostBlocks)) {
      return ResourceExhaustedError(fmt::format(
          "{}: expected at most {} encrypted blocks, found more; save it again in larger blocks",
          Escape(file.path()), number));
    }
    if (!is_even) {
      for (size_t i = found.places.size(); i < number; ++i) {
        found.places.push_back({i * second.offset, i * second.plain});
      }
      found.places.push_back(place);
    }
    if (number % kHeadersAhead == 0 && second.offset > kSmallBlock) {
      AskForHeaders(file, place.offset, second.offset);
    }
    RESHARD_ASSIGN_OR_RETURN(found.end, EndOf(file, number, place));
  }
  return found;
}

Result<EncryptedBlock> EncryptedBlocks::ReadHeader(uint64_t offset, uint64_t left,
                                                   const CipherBytes& read) const {
  std::array<std::byte, kMostBlockHeader> buffer;
  const auto header =
      std::span(buffer).first(std::min<uint64_t>(BlockHeaderBytes(cipher_.mode()), left));
  RESHARD_RETURN_IF_ERROR(read(offset, header));
  return ParseBlockHeader(cipher_.mode(), header, left);
}

Result<EncryptedBlocks::Place> EncryptedBlocks::EndOf(const ByteSource& file, size_t number,
                                                      Place place) const {
  const auto find = [&]() -> Result<Place> {
    const auto read = [&file](uint64_t at, std::span<std::byte> buffer) {
      return file.ReadAt(at, buffer);
    };
    RESHARD_ASSIGN_OR_RETURN(const EncryptedBlock block,
                             ReadHeader(place.offset, file.size() - place.offset, read));
    const uint64_t first = place.offset + BlockHeaderBytes(cipher_.mode());
    RESHARD_ASSIGN_OR_RETURN(
        const uint32_t plain,
        cipher_.PlainBytes(block, [&](uint64_t at, std::span<std::byte> buffer) {
          return file.ReadAt(first + at, buffer);
        }));
    return Place{first + block.cipher_bytes, place.plain + plain};
  };
  const Result<Place> end = find();
  RESHARD_RETURN_IF_ERROR(InBlock(file, number, place.offset, end.status()));
  return *end;
}

EncryptedBlocks::Place EncryptedBlocks::PlaceOf(size_t number) const {
  if (number == layout_.count) return layout_.end;
  if (!layout_.places.empty()) return layout_.places[number];
  return {number * layout_.even.offset, number * layout_.even.plain};
}

size_t EncryptedBlocks::BlockAt(uint64_t plain) const {
  assert(plain < size());
  // The last block may be larger.
  if (layout_.places.empty())
    return std::min<size_t>(plain / layout_.even.plain, layout_.count - 1);
  const auto behind =
      std::upper_bound(layout_.places.begin(), layout_.places.end(), plain,
                       [](uint64_t offset, const Place& place) { return offset < place.plain; });
  return static_cast<size_t>(behind - layout_.places.begin()) - 1;
}

Status EncryptedBlocks::InBlock(const ByteSource& file, size_t number, uint64_t offset,
                                const Status& status) const {
  if (status.code() != StatusCode::kCorrupt) return status;
  // Somebody may have written to it meanwhile.
  Status unchanged = file.pages() == nullptr ? Status() : file.pages()->CheckUnchanged();
  if (unchanged.code() == StatusCode::kChanged) return unchanged;
  return CorruptError(fmt::format("{}: encrypted block {} at offset {}: {}", Escape(file.path()),
                                  number, offset, status.message()));
}

Result<EncryptedBlock> EncryptedBlocks::HeaderOf(size_t number, const CipherBytes& read) const {
  const uint64_t offset = PlaceOf(number).offset;
  const uint64_t end = PlaceOf(number + 1).offset;
  RESHARD_ASSIGN_OR_RETURN(const EncryptedBlock block,
                           ReadHeader(offset, layout_.end.offset - offset, read));
  const uint64_t expected = end - offset - BlockHeaderBytes(mode());
  if (block.cipher_bytes == expected) return block;
  return CorruptError(fmt::format("expected {} encrypted bytes, as when it was opened, found {}",
                                  expected, block.cipher_bytes));
}

Status EncryptedBlocks::CheckNow(const ByteSource& file, size_t number) const {
  const Place place = PlaceOf(number);
  const Place next = PlaceOf(number + 1);
  CipherReader reader(file, {place.offset, next.offset - place.offset});
  const auto read = [&reader](uint64_t at, std::span<std::byte> buffer) {
    return reader.Read(at, buffer);
  };
  RESHARD_ASSIGN_OR_RETURN(const EncryptedBlock block, HeaderOf(number, read));
  const uint64_t first = place.offset + BlockHeaderBytes(mode());
  const CipherBytes read_cipher = [&](uint64_t at, std::span<std::byte> buffer) {
    return reader.Read(first + at, buffer);
  };
  RESHARD_ASSIGN_OR_RETURN(const uint32_t plain, cipher_.PlainBytes(block, read_cipher));
  if (plain != next.plain - place.plain) {
    return CorruptError(fmt::format("expected {} plain bytes, as when it was opened, found {}",
                                    next.plain - place.plain, plain));
  }
  return cipher_.Authenticate(block, read_cipher);
}

size_t EncryptedBlocks::BeginChecks(size_t number) {
  std::unique_lock lock(mutex_);
  checked_.wait(lock, [&] { return states_[number] != BlockState::kBeingChecked; });
  if (states_[number] == BlockState::kFits) return 0;
  size_t count = 1;
  if (mode() == TargetSpec::EncryptionMode::kAesGcm && number > 0 &&
      states_[number - 1] == BlockState::kFits &&
      PlaceOf(number + 1).plain - PlaceOf(number).plain > kWindowBytes) {
    while (count < kCheckedTogether && number + count < layout_.count &&
           states_[number + count] == BlockState::kUnknown) {
      ++count;
    }
  }
  std::fill_n(states_.begin() + static_cast<ptrdiff_t>(number), count, BlockState::kBeingChecked);
  return count;
}

Status EncryptedBlocks::Check(const ByteSource& file, size_t number) {
  const size_t count = BeginChecks(number);
  if (count == 0) return {};
  std::array<BlockState, kCheckedTogether> found;
  found.fill(BlockState::kUnknown);
  // An error in a block behind the first one is reported when that block is read.
  Status status;
  const auto check = [&](size_t i, const std::stop_token& /*stop*/) -> Status {
    Status checked = CheckNow(file, number + i);
    if (checked.ok()) found[i] = BlockState::kFits;
    if (i == 0) status = std::move(checked);
    return {};
  };
  const Status done = CatchOutOfMemory([&] { return RunWorkers(Workers(0), count, check, {}); });
  if (!done.ok()) status = done;
  const std::scoped_lock lock(mutex_);
  std::copy_n(found.begin(), count, states_.begin() + static_cast<ptrdiff_t>(number));
  checked_.notify_all();
  return status;
}

bool EncryptedBlocks::IsUnknown(size_t number) const {
  const std::scoped_lock lock(mutex_);
  return states_[number] == BlockState::kUnknown;
}

Status EncryptedBlocks::ReadOfBlock(const ByteSource& file, size_t number, uint64_t from,
                                    std::span<std::byte> plain, CipherReader& reader) {
  const Place place = PlaceOf(number);
  const uint64_t first = place.offset + BlockHeaderBytes(mode());
  const bool is_gcm = mode() == TargetSpec::EncryptionMode::kAesGcm;
  const bool at_once =
      is_gcm && plain.size() == PlaceOf(number + 1).plain - place.plain && IsUnknown(number);
  if (is_gcm && !at_once) RESHARD_RETURN_IF_ERROR(Check(file, number));
  // A header that begins somewhere before is read by itself.
  RESHARD_ASSIGN_OR_RETURN(const EncryptedBlock block,
                           HeaderOf(number, [&](uint64_t at, std::span<std::byte> buffer) {
                             return from == 0 ? reader.Read(at, buffer) : file.ReadAt(at, buffer);
                           }));
  const CipherBytes read = [&](uint64_t at, std::span<std::byte> buffer) {
    return reader.Read(first + at, buffer);
  };
  if (at_once) {
    RESHARD_RETURN_IF_ERROR(cipher_.DecryptWhole(block, plain, read));
    const std::scoped_lock lock(mutex_);
    if (states_[number] == BlockState::kUnknown) states_[number] = BlockState::kFits;
    return {};
  }
  RESHARD_RETURN_IF_ERROR(cipher_.Decrypt(block, from, plain, read));
  // The padding lies behind these bytes, so its check can wait.
  return is_gcm ? Status() : Check(file, number);
}

Status EncryptedBlocks::ReadAt(const ByteSource& file, uint64_t offset,
                               std::span<std::byte> plain) {
  CipherReader reader(file, CipherOf({offset, plain.size()}));
  while (!plain.empty()) {
    const size_t number = BlockAt(offset);
    const Place place = PlaceOf(number);
    const std::span of_block =
        plain.first(std::min<uint64_t>(plain.size(), PlaceOf(number + 1).plain - offset));
    const Status status = ReadOfBlock(file, number, offset - place.plain, of_block, reader);
    RESHARD_RETURN_IF_ERROR(InBlock(file, number, place.offset, status));
    offset += of_block.size();
    plain = plain.subspan(of_block.size());
  }
  return {};
}

ByteRange EncryptedBlocks::CipherOf(ByteRange plain) const {
  if (plain.length == 0 || plain.offset >= size()) return {};
  const auto place_of = [this](uint64_t byte) {
    const Place place = PlaceOf(BlockAt(byte));
    return place.offset + BlockHeaderBytes(mode()) + (byte - place.plain);
  };
  const uint64_t begin = place_of(plain.offset);
  const uint64_t last = place_of(std::min(plain.end(), size()) - 1);
  return {begin, std::min(last + kCipherUnit, layout_.end.offset) - begin};
}

bool DecryptedFile::IsCached(ByteRange range) const {
  const ByteRange cipher = blocks_->CipherOf(range);
  if (file_->pages() == nullptr) return file_->IsCached(cipher);
  const uint64_t before = cipher.offset % PageSize();
  bool is_cached = true;
  const bool is_told =
      ForEachUncached(*file_->pages(), {cipher.offset - before, cipher.length + before},
                      [&is_cached](ByteRange /*pages*/) { is_cached = false; });
  return is_told && is_cached;
}

Status DecryptedFile::ReadAt(uint64_t offset, std::span<std::byte> destination) const {
  RESHARD_RETURN_IF_ERROR(CheckRange(offset, destination.size()));
  return blocks_->ReadAt(*file_, offset, destination);
}

}  // namespace reshard
