#include "src/write/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <variant>
#include <vector>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/cast/cast.h"
#include "src/write/source_stretch.h"
#include "src/write/window_copier.h"

namespace reshard {
namespace {

// Adds the runs of an innermost loop, as far as they lie in the target bytes `range`. The loop's
// first run goes from `source` to `target`.
//
// There are at most three rows: a run cut at its front, the whole runs, and a run cut at its end.
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
  // Returns the number of runs that begin before target offset `offset`.
  const auto runs_before = [&](uint64_t offset) -> uint64_t {
    if (offset <= target) return 0;
    return std::min(inner.count, (offset - target - 1) / inner.target_stride + 1);
  };
  // Of the runs that begin before the range, only the last may reach into it. Of the others, only
  // the last may end behind it.
  uint64_t next = runs_before(range.offset);
  const uint64_t stop = runs_before(range.end());
  if (next > 0) {
    const RunRow run = run_at(next - 1);
    if (run.length > 0) RESHARD_RETURN_IF_ERROR(copier.Add(run));
  }
  if (stop <= next) return {};
  const uint64_t whole = run_at(stop - 1).length == run_length ? stop : stop - 1;
  if (next < whole) {
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
  // The outer loops are walked as a copy of their own. Each of its runs is one innermost loop, gaps
  // included.
  BlockCopy outer = copy;
  const CopyDim inner = outer.dims.back();
  outer.dims.pop_back();
  outer.run_length = (inner.count - 1) * inner.target_stride + copy.run_length;
  // A run is cut where the walked range begins. So the walk begins early: every loop with bytes in
  // `range` keeps its front, and its offsets are those of its first run.
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

bool AreWholePages(std::span<const uint64_t> ends) {
  return std::all_of(ends.begin(), ends.end(),
                     [](uint64_t end) { return end % kLargePageBytes == 0; });
}

// As Gather, and adds the bytes of copy number i to the digest that digest_of(i) returns, if it
// returns one.
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
    gathered += copier.added_bytes();
  }
  if (gathered != out.size()) {
    return InternalError(fmt::format("the copies write {} of the {} bytes at offset {}", gathered,
                                     out.size(), offset));
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

  // If an edge of `out` cuts an element, the calls for both buffers cast it. Only the call with its
  // first byte digests and counts it.
  Status FillCast(size_t segment, const Content& content, uint64_t offset,
                  std::span<std::byte> out) {
    const uint64_t item = ItemBytes(content.target_dtype());
    const uint64_t most = kCacheBytes / std::max(item, ItemBytes(content.dtype));
    while (!out.empty()) {
      const uint64_t before = (offset - content.target.offset + content.box_offset) % item;
      std::array<std::byte, sizeof(uint64_t)> element;
      if (before == 0 && out.size() >= item) {
        const auto whole = out.first(std::min(most, out.size() / item) * item);
        RESHARD_RETURN_IF_ERROR(GatherAndCast(segment, content, offset, whole, true));
        offset += whole.size();
        out = out.subspan(whole.size());
        continue;
      }
      const uint64_t length = std::min(item - before, out.size());
      RESHARD_RETURN_IF_ERROR(
          GatherAndCast(segment, content, offset, std::span(element).first(item), before == 0));
      std::memcpy(out.data(), element.data() + before, length);
      offset += length;
      out = out.subspan(length);
    }
    return {};
  }

  // Gathers and casts as many elements as `out` has room for, from the one with a byte at `offset`
  // on. Digests and counts them if `counts`; else another call does.
  Status GatherAndCast(size_t segment, const Content& content, uint64_t offset,
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
  const std::vector<Stretch> wanted = StretchesOf(targets);
  // The system reads a large page fastest as a whole. So the last page of each stretch is read to
  // its end, if bytes that are filled later need the rest of it. To find out, the loop looks
  // further and further ahead. It stops when one page of each file would be more than there is room
  // for. Files without a map have no large pages.
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
  const TargetBytes bytes{.plan = &plan, .range = {offset, out.size()}};
  WindowCopier copier(files, StretchesOf({&bytes, 1}));
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
