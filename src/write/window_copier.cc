#include "src/write/window_copier.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "src/base/status_macros.h"
#include "src/os/system_call.h"

namespace reshard {
namespace {

// A whole window, and small stretches of other files.
constexpr uint64_t kMostSharedBytes = kWindowBytes + (uint64_t{1} << 20);

// A shared window may hold a file descriptor. All together use at most 1/32 of the process's limit.
size_t MostSharedWindows() {
  static const size_t kMost = std::min<size_t>(8, DescriptorLimit() / 32);
  return kMost;
}

// Returns the end of the window around the source byte `source`. All lanes cut files into windows
// at the same places, so that they can share windows.
uint64_t WindowEnd(uint64_t source) { return (source / kWindowBytes + 1) * kWindowBytes; }

template <size_t kLength>
void CopyFixed(const std::byte* from, std::byte* to, const RunRow& row) {
  for (uint64_t i = 0; i < row.count; ++i) {
    std::memcpy(to + i * row.out_stride, from + i * row.source_stride, kLength);
  }
}

// Copies a row whose first run goes from `from` to `to`. Runs of a few elements are common: a cut
// of the last dimension makes them. Their length has to be known to the compiler, or the calls of
// memcpy would cost more than the copying. The fault guard of Window::Read forbids allocations,
// locks and destructors here.
void CopyRow(const std::byte* from, std::byte* to, const RunRow& row) {
  switch (row.length) {
    case 1:
      return CopyFixed<1>(from, to, row);
    case 2:
      return CopyFixed<2>(from, to, row);
    case 4:
      return CopyFixed<4>(from, to, row);
    case 8:
      return CopyFixed<8>(from, to, row);
    case 16:
      return CopyFixed<16>(from, to, row);
    case 32:
      return CopyFixed<32>(from, to, row);
    case 64:
      return CopyFixed<64>(from, to, row);
    default:
      for (uint64_t i = 0; i < row.count; ++i) {
        std::memcpy(to + i * row.out_stride, from + i * row.source_stride, row.length);
      }
  }
}

// As CopyRow, and adds the row to `digest`. Copies up to kCacheBytes, digests them while they are
// in the core's cache, and goes on with the next piece.
void CopyAndDigest(const std::byte* from, std::byte* to, const RunRow& row, CopyDigest& digest) {
  RunRow part = row;
  if (row.count == 1) {
    for (uint64_t at = 0; at < row.length; at += part.length) {
      part.length = std::min(kCacheBytes, row.length - at);
      std::memcpy(to + at, from + at, part.length);
      digest.Add(from + at, part.length, row.source + at);
    }
    return;
  }
  for (uint64_t i = 0; i < row.count; i += part.count) {
    part.source = row.source + i * row.source_stride;
    part.count = std::min(row.count - i, std::max<uint64_t>(1, kCacheBytes / row.length));
    const std::byte* const first = from + i * row.source_stride;
    CopyRow(first, to + i * row.out_stride, part);
    digest.AddRow(first, part.length, part.count, part.source_stride, part.source);
  }
}

// Returns how many runs of the row end within `room` bytes of its first byte; 1 if the gaps between
// them are too large to read. The first run fits, and there are several.
uint64_t CountThatFits(const RunRow& row, uint64_t room) {
  if (row.source_stride > row.length + kMaxRunGap) return 1;
  return 1 + (room - row.length) / row.source_stride;
}

}  // namespace

WindowCopier::WindowCopier(SourceFiles& files, std::vector<Stretch> stretches)
    : files_(files), stretches_(std::move(stretches)) {
  std::erase_if(stretches_, [](const Stretch& stretch) { return stretch.copies == 1; });
  if (stretches_.size() > kMostStretches) stretches_.resize(kMostStretches);
}

void WindowCopier::Begin(FileId file, std::span<std::byte> out, CopyDigest* digest) {
  file_ = file;
  out_ = out;
  digest_ = digest;
  added_bytes_ = 0;
}

Status WindowCopier::Flush() {
  if (size_ == 0) return {};
  const ByteRange range{begin_, end_ - begin_};
  if (const SharedWindow* const shared = FindOrOpenShared(range)) {
    return CopyRows(shared->window, shared->range.offset);
  }
  RESHARD_ASSIGN_OR_RETURN(const Window window, files_.Open(file_, range.offset, range.length));
  return CopyRows(window, range.offset);
}

// Returns a shared window that holds `range` of the current file, or null. If a stretch holds
// `range`, opens a window of the stretch, and may close others. The result is valid until the next
// call.
//
// Null: `range` is in no stretch or in two windows; or the window cannot be read. Flush then reads
// `range` alone: a bad byte beside `range` must not fail this copy.
const WindowCopier::SharedWindow* WindowCopier::FindOrOpenShared(ByteRange range) {
  const auto holds = [&range](ByteRange outer) {
    return range.offset >= outer.offset && range.end() <= outer.end();
  };
  for (const SharedWindow& shared : shared_) {
    if (shared.file == file_ && holds(shared.range)) return &shared;
  }
  const auto stretch =
      std::find_if(stretches_.begin(), stretches_.end(),
                   [&](const Stretch& other) { return other.file == file_ && holds(other.range); });
  if (stretch == stretches_.end() || MostSharedWindows() == 0) return nullptr;
  const uint64_t window_end = WindowEnd(range.offset);
  if (range.end() > window_end) return nullptr;
  const uint64_t begin = std::max(stretch->range.offset, window_end - kWindowBytes);
  const ByteRange whole{begin, std::min(stretch->range.end(), window_end) - begin};
  MakeRoomFor(whole.length);
  Result<Window> window = files_.Open(file_, whole.offset, whole.length);
  if (!window.ok()) {
    stretches_.erase(stretch);
    return nullptr;
  }
  shared_.push_back({file_, whole, std::move(*window)});
  return &shared_.back();
}

// Closes the shared window of the current file. Closes all if one more of `length` bytes would
// exceed a limit.
void WindowCopier::MakeRoomFor(uint64_t length) {
  std::erase_if(shared_, [this](const SharedWindow& shared) { return shared.file == file_; });
  uint64_t held = length;
  for (const SharedWindow& shared : shared_) held += shared.range.length;
  if (held > kMostSharedBytes || shared_.size() >= MostSharedWindows()) shared_.clear();
}

// Copies the rows from `window`, which begins at `begin` of the file.
Status WindowCopier::CopyRows(const Window& window, uint64_t begin) {
  RESHARD_RETURN_IF_ERROR(window.Read([rows = std::span(rows_).first(size_), begin,
                                       out = out_.data(), digest = digest_](const std::byte* data) {
    for (const RunRow& row : rows) {
      const std::byte* const from = data + (row.source - begin);
      if (digest != nullptr) {
        CopyAndDigest(from, out + row.out, row, *digest);
      } else {
        CopyRow(from, out + row.out, row);
      }
    }
  }));
  size_ = 0;
  return {};
}

// Splits the row where windows end and where gaps are too large to read, and adds each part.
Status WindowCopier::SplitAtWindows(RunRow row) {
  while (row.count > 0) {
    RunRow part = row;
    part.count = 1;
    const uint64_t room = WindowEnd(row.source) - row.source;
    if (row.length > room) {  // reaches over the boundary
      part.length = room;
      RESHARD_RETURN_IF_ERROR(AddPart(part));
      if (row.count == 1) {
        row.source += room;
        row.out += room;
        row.length -= room;
        continue;
      }
      RESHARD_RETURN_IF_ERROR(SplitAtWindows(
          {.source = row.source + room, .out = row.out + room, .length = row.length - room}));
    } else {
      if (row.count > 1) part.count = std::min(row.count, CountThatFits(row, room));
      RESHARD_RETURN_IF_ERROR(AddPart(part));
    }
    row.source += part.count * row.source_stride;
    row.out += part.count * row.out_stride;
    row.count -= part.count;
  }
  return {};
}

// Adds runs that lie in one window. Copies the rows before them first if there is no more room for
// rows, if they lie in another window, or if the gap between is too large to read.
Status WindowCopier::AddPart(const RunRow& part) {
  assert(size_ == 0 || part.source >= end_);
  const uint64_t end = part.source + (part.count - 1) * part.source_stride + part.length;
  if (size_ > 0 &&
      (size_ == rows_.size() || end > WindowEnd(begin_) || part.source - end_ > kMaxRunGap)) {
    RESHARD_RETURN_IF_ERROR(Flush());
  }
  if (size_ == 0) begin_ = part.source;
  rows_[size_++] = part;
  end_ = end;
  return {};
}

}  // namespace reshard
