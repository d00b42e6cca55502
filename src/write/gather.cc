#include "src/write/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/cast/cast.h"
#include "src/os/system_call.h"

namespace reshard {
namespace {

// Two runs at most this far apart are read through one window, with the gap.
constexpr uint64_t kMaxRunGap = uint64_t{64} << 10;
// The same for the source bytes of two copies. Such a gap is a header, or fills a page.
constexpr uint64_t kMaxCopyGap = 4096;
// What a core's cache holds of bytes that are used twice.
constexpr uint64_t kCacheBytes = uint64_t{256} << 10;

// Source bytes that lie side by side, or nearly so, and belong to one copy or to several.
struct Stretch {
  FileId file = 0;
  ByteRange range;
  size_t copies = 1;
};

// The search looks only at this many of the last stretches. With more files in turn, the gain would
// be small.
constexpr size_t kMostStretches = 64;

// Adds source bytes that are read after the earlier ones.
void AddToStretches(FileId file, ByteRange range, std::vector<Stretch>& stretches) {
  const size_t oldest = stretches.size() - std::min(stretches.size(), kMostStretches);
  for (size_t i = stretches.size(); i > oldest; --i) {
    Stretch& last = stretches[i - 1];
    if (last.file != file) continue;
    if (range.offset < last.range.offset || range.offset > last.range.end() + kMaxCopyGap) break;
    last.range.length = std::max(last.range.end(), range.end()) - last.range.offset;
    ++last.copies;
    return;
  }
  stretches.push_back({file, range});
}

// Orders stretches by file and offset, and joins those that overlap or lie side by side.
void JoinStretches(std::vector<Stretch>& stretches) {
  std::sort(stretches.begin(), stretches.end(), [](const Stretch& a, const Stretch& b) {
    return std::pair(a.file, a.range.offset) < std::pair(b.file, b.range.offset);
  });
  std::vector<Stretch> joined;
  for (const Stretch& stretch : stretches) {
    if (joined.empty() || joined.back().file != stretch.file ||
        stretch.range.offset > joined.back().range.end() + kMaxCopyGap) {
      joined.push_back(stretch);
      continue;
    }
    Stretch& last = joined.back();
    last.range.length = std::max(last.range.end(), stretch.range.end()) - last.range.offset;
    last.copies += stretch.copies;
  }
  stretches = std::move(joined);
}

size_t CountFiles(std::span<const Stretch> stretches) {
  std::set<FileId> files;
  for (const Stretch& stretch : stretches) files.insert(stretch.file);
  return files.size();
}

// Equally long runs at equal distances.
struct RunRow {
  uint64_t source = 0;  // offset in the source file
  uint64_t out = 0;     // offset in the output buffer
  uint64_t length = 0;  // of a run
  uint64_t count = 1;
  uint64_t source_stride = 0;
  uint64_t out_stride = 0;
};

template <size_t kLength>
void CopyFixed(const std::byte* from, std::byte* to, const RunRow& row) {
  for (uint64_t i = 0; i < row.count; ++i) {
    std::memcpy(to + i * row.out_stride, from + i * row.source_stride, kLength);
  }
}

// Copies a row whose first run goes from `from` to `to`. Runs of a few elements are common (a last
// dimension cut), and there the call of memcpy would cost more than the copying. Runs under the
// fault guard of Window::Read: no allocation, no lock, no destructor.
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

// As CopyRow, and adds the row to `digest`. Alternates in pieces of kCacheBytes, so that the second
// read comes from the core's cache.
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

// Collects rows of ascending source offsets until they fill a window, then copies them together.
// For each copy: Begin, Add for each row, Flush. After an error it is of no more use.
//
// Windows of stretches that several copies share stay open for the later copies. They are few, so a
// lane holds hardly more than one window.
class WindowCopier {
 public:
  explicit WindowCopier(SourceFiles& files, std::vector<Stretch> stretches = {})
      : files_(files), stretches_(std::move(stretches)) {
    std::erase_if(stretches_, [](const Stretch& stretch) { return stretch.copies == 1; });
    if (stretches_.size() > kMostStretches) stretches_.resize(kMostStretches);
  }

  // Begins a copy from `file`, after the last copy was flushed. The copied bytes are added to
  // `digest` too, unless it is null. `out` and `digest` are used until Flush.
  void Begin(FileId file, std::span<std::byte> out, CopyDigest* digest) {
    file_ = file;
    out_ = out;
    digest_ = digest;
    copied_ = 0;
  }

  Status Add(const RunRow& row) {
    copied_ += row.length * row.count;
    return AddRow(row);
  }

  Status Flush() {
    if (size_ == 0) return {};
    const ByteRange range{begin_, end_ - begin_};
    if (const SharedWindow* const shared = FindOrOpenShared(range)) {
      return CopyRows(shared->window, shared->range.offset);
    }
    RESHARD_ASSIGN_OR_RETURN(const Window window, files_.Open(file_, range.offset, range.length));
    return CopyRows(window, range.offset);
  }

  // Bytes added so far of the copy.
  uint64_t copied() const { return copied_; }

 private:
  struct SharedWindow {
    FileId file;
    ByteRange range;
    Window window;
  };

  static constexpr uint64_t kMostSharedBytes = kWindowBytes + (uint64_t{1} << 20);
  // Each may hold a file descriptor of its own.
  static size_t MostSharedWindows() {
    static const size_t kMost = std::min<size_t>(8, DescriptorLimit() / 32);
    return kMost;
  }

  // Returns the open window with the bytes of `range` in the file, valid until the next call. Opens
  // one if they lie in a stretch. Returns null if they do not, or if the window cannot be read:
  // perhaps no copy needs the bytes beside `range`, so Flush reads these alone and has the error.
  const SharedWindow* FindOrOpenShared(ByteRange range) {
    const auto holds = [&range](ByteRange outer) {
      return range.offset >= outer.offset && range.end() <= outer.end();
    };
    for (const SharedWindow& shared : shared_) {
      if (shared.file == file_ && holds(shared.range)) return &shared;
    }
    const auto stretch = std::find_if(
        stretches_.begin(), stretches_.end(),
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

  // Closes the file's window, and then all if one of `length` bytes would be too much.
  void MakeRoomFor(uint64_t length) {
    std::erase_if(shared_, [this](const SharedWindow& shared) { return shared.file == file_; });
    uint64_t held = length;
    for (const SharedWindow& shared : shared_) held += shared.range.length;
    if (held > kMostSharedBytes || shared_.size() >= MostSharedWindows()) shared_.clear();
  }

  // Copies the rows from `window`, which begins at `begin` of the file.
  Status CopyRows(const Window& window, uint64_t begin) {
    RESHARD_RETURN_IF_ERROR(
        window.Read([rows = std::span(rows_).first(size_), begin, out = out_.data(),
                     digest = digest_](const std::byte* data) {
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

  // All lanes cut windows at the same places, so that lanes with nearby bytes share them.
  static uint64_t WindowEnd(uint64_t source) { return (source / kWindowBytes + 1) * kWindowBytes; }

  // How many runs of the row end within `room` bytes from the first one's beginning, without gaps
  // that are too large. The first one does.
  static uint64_t CountThatFits(const RunRow& row, uint64_t room) {
    if (row.source_stride > row.length + kMaxRunGap) return 1;
    return 1 + (room - row.length) / row.source_stride;
  }

  Status AddRow(RunRow row) {
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
        RESHARD_RETURN_IF_ERROR(AddRow(
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

  // Adds runs that end within one window.
  Status AddPart(const RunRow& part) {
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

  SourceFiles& files_;
  std::vector<Stretch> stretches_;
  std::vector<SharedWindow> shared_;  // at most one of a file
  FileId file_ = 0;
  std::span<std::byte> out_;
  CopyDigest* digest_ = nullptr;
  std::array<RunRow, 128> rows_;
  size_t size_ = 0;
  uint64_t begin_ = 0;  // the window so far
  uint64_t end_ = 0;
  uint64_t copied_ = 0;
};

// Walks the innermost loop of a copy, cut to `range`. The first run goes from `source` to `target`.
// The result is at most three rows: a run cut in front, whole runs, a run cut at the end.
Status AddInnerLoop(const CopyDim& inner, uint64_t source, uint64_t target, uint64_t run_length,
                    ByteRange range, WindowCopier& copier) {
  const auto run_at = [&](uint64_t i) {
    const uint64_t begin = std::max(range.offset, target + i * inner.target_stride);
    const uint64_t end = std::min(range.end(), target + i * inner.target_stride + run_length);
    return RunRow{
        .source = source + i * inner.source_stride + (begin - target - i * inner.target_stride),
        .out = begin - range.offset,
        .length = end > begin ? end - begin : 0};
  };
  // Runs that begin before the range. The last one may reach into it.
  uint64_t next = 0;
  if (target < range.offset) {
    next = std::min(inner.count, (range.offset - target - 1) / inner.target_stride + 1);
    if (const RunRow run = run_at(next - 1); run.length > 0)
      RESHARD_RETURN_IF_ERROR(copier.Add(run));
  }
  // Runs that begin within the range. The last one may end behind it.
  uint64_t stop = next;
  if (target < range.end()) {
    stop = std::min(inner.count, (range.end() - target - 1) / inner.target_stride + 1);
  }
  if (stop <= next) return {};
  const uint64_t whole = run_at(stop - 1).length == run_length ? stop : stop - 1;
  if (run_length > kWindowBytes) {
    for (; next < whole; ++next) RESHARD_RETURN_IF_ERROR(copier.Add(run_at(next)));
  } else if (next < whole) {
    RunRow row = run_at(next);
    row.count = whole - next;
    row.source_stride = inner.source_stride;
    row.out_stride = inner.target_stride;
    RESHARD_RETURN_IF_ERROR(copier.Add(row));
  }
  return whole < stop ? copier.Add(run_at(whole)) : Status();
}

// Adds the runs of `copy` with target bytes in `range`, which overlaps the copy's target span.
Status AddRuns(const BlockCopy& copy, ByteRange range, WindowCopier& copier) {
  if (copy.dims.empty()) {
    return AddInnerLoop(
        {.count = 1, .source_stride = copy.run_length, .target_stride = copy.run_length},
        copy.source_offset, copy.target_offset, copy.run_length, range, copier);
  }
  // The outer loops are walked as a copy whose "run" is the innermost loop, gaps included.
  BlockCopy outer = copy;
  const CopyDim inner = outer.dims.back();
  outer.dims.pop_back();
  outer.run_length = (inner.count - 1) * inner.target_stride + copy.run_length;
  // Begins early enough that each innermost loop that reaches into `range` is visited whole.
  const uint64_t earlier = std::min(range.offset, outer.run_length - 1);
  const ByteRange reach{range.offset - earlier, range.length + earlier};
  for (RunCursor loop(outer, reach); !loop.done(); loop.Next()) {
    const Run& run = loop.run();
    if (run.target_offset + run.length <= range.offset) continue;
    RESHARD_RETURN_IF_ERROR(
        AddInnerLoop(inner, run.source_offset, run.target_offset, copy.run_length, range, copier));
  }
  return {};
}

// Returns the source bytes between the places of the first and the last byte of `range`, which
// overlaps the copy's target span. A byte in a gap counts as the last one of the run before it.
ByteRange SourceSpanOf(const BlockCopy& copy, ByteRange range) {
  // Returns the source offset of the byte at `target`.
  const auto source_of = [&copy](uint64_t target) {
    uint64_t source = copy.source_offset;
    target -= std::min(target, copy.target_offset);
    for (const CopyDim& dim : copy.dims) {
      const uint64_t i = std::min(target / dim.target_stride, dim.count - 1);
      source += i * dim.source_stride;
      target -= i * dim.target_stride;
    }
    return source + std::min(target, copy.run_length - 1);
  };
  const uint64_t begin = source_of(range.offset);
  return {begin, source_of(range.end() - 1) + 1 - begin};
}

// Returns the segment with the byte at `offset` of the target file.
auto SegmentAt(const TargetPlan& plan, uint64_t offset) {
  return std::partition_point(
      plan.segments.begin(), plan.segments.end(),
      [offset](const Segment& candidate) { return TargetRange(candidate).end() <= offset; });
}

// Adds the source bytes of the target file's `range`, in its order. Runs are left out if the gaps
// between them are too large to read.
void AddStretches(const TargetPlan& plan, ByteRange range, std::vector<Stretch>& stretches) {
  auto segment = SegmentAt(plan, range.offset);
  for (; segment != plan.segments.end() && TargetRange(*segment).offset < range.end(); ++segment) {
    const auto* const content = std::get_if<Content>(&*segment);
    if (content == nullptr) continue;
    const ByteRange image = content->ImageRange(Overlap(content->target, range));
    for (const BlockCopy& copy : content->copies) {
      const ByteRange span = copy.TargetSpan();
      if (span.offset >= image.end()) break;
      if (span.length == 0 || span.end() <= image.offset) continue;
      if (!copy.dims.empty() && copy.dims.back().source_stride > copy.run_length + kMaxRunGap) {
        continue;
      }
      AddToStretches(copy.source, SourceSpanOf(copy, image), stretches);
    }
  }
}

// Returns `stretches`, which are of `targets`, and the source bytes of up to `reach` further bytes
// of each target that has any.
std::vector<Stretch> WithLaterBytes(std::span<const TargetBytes> targets,
                                    std::vector<Stretch> stretches, uint64_t reach) {
  for (const auto& [plan, range, end] : targets) {
    if (range.end() == end) continue;
    AddStretches(*plan, {range.end(), std::min(end - range.end(), reach)}, stretches);
  }
  if (targets.size() > 1) JoinStretches(stretches);
  return stretches;
}

// Returns for each of `wanted` the end of its last large page if `longer` reaches it, else its own
// end. `longer` has all of `wanted` in the same order.
std::vector<uint64_t> PageEnds(std::span<const Stretch> wanted, std::span<const Stretch> longer) {
  std::vector<uint64_t> ends;
  ends.reserve(wanted.size());
  auto around = longer.begin();
  for (const auto& [file, range, copies] : wanted) {
    while (around->file != file || around->range.end() < range.end() ||
           around->range.offset > range.offset) {
      ++around;
    }
    const uint64_t page_end = ToLargePage(range.end());
    ends.push_back(around->range.end() >= page_end ? page_end : range.end());
  }
  return ends;
}

bool AreWholePages(std::span<const uint64_t> ends) {
  return std::all_of(ends.begin(), ends.end(),
                     [](uint64_t end) { return end % kLargePageBytes == 0; });
}

// Returns the stretches of `range`.
std::vector<Stretch> StretchesOf(const TargetPlan& plan, ByteRange range) {
  std::vector<Stretch> stretches;
  AddStretches(plan, range, stretches);
  return stretches;
}

// Gather, with digests: copy number i adds its bytes to digest_of(i), if that has a value.
template <typename DigestOf>
Status GatherCopies(WindowCopier& copier, std::span<const BlockCopy> copies, uint64_t offset,
                    std::span<std::byte> out, DigestOf digest_of) {
  const ByteRange range{offset, out.size()};
  uint64_t gathered = 0;
  for (size_t i = 0; i < copies.size(); ++i) {
    const BlockCopy& copy = copies[i];
    const ByteRange span = copy.TargetSpan();
    if (span.offset >= range.end()) break;
    if (span.length == 0 || span.end() <= range.offset) continue;
    std::optional<CopyDigest> digest = digest_of(i);
    copier.Begin(copy.source, out, digest ? &*digest : nullptr);
    RESHARD_RETURN_IF_ERROR(AddRuns(copy, range, copier));
    RESHARD_RETURN_IF_ERROR(copier.Flush());
    gathered += copier.copied();
  }
  if (gathered != out.size()) {
    return InternalError(fmt::format("the copies write {} of the {} bytes at target offset {}",
                                     gathered, out.size(), offset));
  }
  return {};
}

// Gathers contents of a plan, and casts them if the plan says so.
class ContentFiller {
 public:
  ContentFiller(WindowCopier& copier, const TargetPlan& plan, ChunkDigest* digest,
                LostInCasts* lost)
      : copier_(copier), plan_(plan), digest_(digest), lost_(lost) {}

  // Fills `out` with the bytes of segment number `segment`, a content, from target offset `offset`
  // on.
  Status Fill(size_t segment, uint64_t offset, std::span<std::byte> out) {
    const auto& content = std::get<Content>(plan_.segments[segment]);
    return content.is_cast() ? FillCast(segment, content, offset, out)
                             : GatherFrom(segment, content, offset, out, digest_);
  }

 private:
  Status GatherFrom(size_t segment, const Content& content, uint64_t offset,
                    std::span<std::byte> out, ChunkDigest* digest) {
    return GatherCopies(copier_, content.copies, offset, out,
                        [digest, segment](size_t copy) -> std::optional<CopyDigest> {
                          if (digest == nullptr) return std::nullopt;
                          return digest->OfCopy(segment, copy);
                        });
  }

  // An element that lies across an edge of `out` is cast for both sides. Only the side of its first
  // byte counts and digests it.
  Status FillCast(size_t segment, const Content& content, uint64_t offset,
                  std::span<std::byte> out) {
    const uint64_t item = ItemBytes(content.target_dtype());
    const uint64_t most = kCacheBytes / std::max(item, ItemBytes(content.dtype));
    while (!out.empty()) {
      const uint64_t before = (offset - content.target.offset + content.box_offset) % item;
      std::array<std::byte, sizeof(uint64_t)> element;
      if (before == 0 && out.size() >= item) {
        const auto whole = out.first(std::min(most, out.size() / item) * item);
        RESHARD_RETURN_IF_ERROR(CastElements(segment, content, offset, whole, true));
        offset += whole.size();
        out = out.subspan(whole.size());
        continue;
      }
      const uint64_t length = std::min(item - before, out.size());
      RESHARD_RETURN_IF_ERROR(
          CastElements(segment, content, offset, std::span(element).first(item), before == 0));
      std::memcpy(out.data(), element.data() + before, length);
      offset += length;
      out = out.subspan(length);
    }
    return {};
  }

  // Casts as many elements as `out` has room for, from the one with a byte at `offset` on.
  Status CastElements(size_t segment, const Content& content, uint64_t offset,
                      std::span<std::byte> out, bool counts) {
    const uint64_t count = out.size() / ItemBytes(content.target_dtype());
    image_.resize(count * ItemBytes(content.dtype));
    const uint64_t place = content.ImageRange({offset, 1}).offset;
    ChunkDigest* const digest = counts ? digest_ : nullptr;
    RESHARD_RETURN_IF_ERROR(GatherFrom(segment, content, place, image_, digest));
    if (digest != nullptr) digest->AddImage(segment, place, image_);
    const CastLoss lost = Cast(content.dtype, content.target_dtype(), image_, out);
    if (lost != CastLoss() && counts && lost_ != nullptr) lost_->Add(content.target_name, lost);
    return {};
  }

  WindowCopier& copier_;
  const TargetPlan& plan_;
  ChunkDigest* const digest_;
  LostInCasts* const lost_;
  std::vector<std::byte> image_;
};

}  // namespace

Status Gather(SourceFiles& files, std::span<const BlockCopy> copies, uint64_t offset,
              std::span<std::byte> out) {
  WindowCopier copier(files);
  return GatherCopies(copier, copies, offset, out,
                      [](size_t) -> std::optional<CopyDigest> { return std::nullopt; });
}

Status PrefetchTargets(SourceFiles& files, std::span<const TargetBytes> targets) {
  std::vector<Stretch> wanted;
  for (const auto& [plan, range, end] : targets) AddStretches(*plan, range, wanted);
  if (targets.size() > 1) JoinStretches(wanted);
  // A large page is best read as a whole. So bytes that are filled later are read along if they
  // complete one: as few as do, and only if there is room for one page of each file. Files that
  // threads read have no large pages.
  const uint64_t room = files.HasReadFiles() ? 0 : files.BytesAhead();
  std::vector<uint64_t> ends =
      PageEnds(wanted, WithLaterBytes(targets, wanted, std::min(room, kLargePageBytes)));
  for (uint64_t reach = 2 * kLargePageBytes; reach <= room && !AreWholePages(ends); reach *= 2) {
    const std::vector<Stretch> whole = WithLaterBytes(targets, wanted, reach);
    if (CountFiles(whole) * kLargePageBytes > room) break;
    ends = PageEnds(wanted, whole);
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const uint64_t begin = wanted[i].range.offset;
    RESHARD_RETURN_IF_ERROR(files.Prefetch(wanted[i].file, begin, ends[i] - begin));
  }
  return {};
}

Status FillTarget(SourceFiles& files, const TargetPlan& plan, uint64_t offset,
                  std::span<std::byte> out, ChunkDigest* digest, LostInCasts* lost) {
  auto segment = SegmentAt(plan, offset);
  WindowCopier copier(files, StretchesOf(plan, {offset, out.size()}));
  ContentFiller filler(copier, plan, digest, lost);
  for (; !out.empty(); ++segment) {
    if (segment == plan.segments.end() || TargetRange(*segment).offset > offset) {
      return InternalError(fmt::format("the plan of {} has no bytes at offset {} of {}",
                                       Escape(plan.path), offset, plan.size));
    }
    const uint64_t length = std::min<uint64_t>(out.size(), TargetRange(*segment).end() - offset);
    if (const auto* literal = std::get_if<Literal>(&*segment)) {
      std::memcpy(out.data(), literal->bytes.data() + (offset - literal->offset), length);
    } else {
      const auto number = static_cast<size_t>(segment - plan.segments.begin());
      RESHARD_RETURN_IF_ERROR(filler.Fill(number, offset, out.first(length)));
    }
    offset += length;
    out = out.subspan(length);
  }
  return {};
}

}  // namespace reshard
