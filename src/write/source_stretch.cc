#include "src/write/source_stretch.h"

#include <algorithm>
#include <cassert>
#include <set>
#include <utility>
#include <variant>

#include "src/tensor/block_copy.h"

namespace reshard {
namespace {

// If the source bytes of two copies are at most this far apart in a file, they are one stretch.
// Such a gap is a header of an array, or padding.
constexpr uint64_t kMaxCopyGap = 4096;

// Extends the last stretch of `file` if `range` overlaps it or begins close behind it. Otherwise
// begins a new one.
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

// Returns the source range from the first byte of `range` to the last. A position outside of the
// copy counts as its first or last byte. A position in a gap counts as the last byte of the run
// before it.
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

}  // namespace

std::vector<Segment>::const_iterator SegmentAt(const TargetPlan& plan, uint64_t offset) {
  return std::partition_point(
      plan.segments.begin(), plan.segments.end(),
      [offset](const Segment& candidate) { return TargetRange(candidate).end() <= offset; });
}

void AddStretches(const TargetPlan& plan, ByteRange range, std::vector<Stretch>& stretches) {
  if (range.length == 0) return;
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

std::vector<Stretch> StretchesOf(std::span<const TargetBytes> targets) {
  std::vector<Stretch> stretches;
  for (const auto& [plan, range, end] : targets) AddStretches(*plan, range, stretches);
  if (targets.size() > 1) JoinStretches(stretches);
  return stretches;
}

std::vector<Stretch> WithLaterBytes(std::span<const TargetBytes> targets,
                                    std::vector<Stretch> stretches, uint64_t reach) {
  for (const auto& [plan, range, end] : targets) {
    if (range.end() == end) continue;
    AddStretches(*plan, {range.end(), std::min(end - range.end(), reach)}, stretches);
  }
  if (targets.size() > 1) JoinStretches(stretches);
  return stretches;
}

std::vector<uint64_t> PageEnds(std::span<const Stretch> wanted, std::span<const Stretch> longer) {
  std::vector<uint64_t> ends;
  ends.reserve(wanted.size());
  auto around = longer.begin();
  for (const auto& [file, range, copies] : wanted) {
    while (around->file != file || around->range.end() < range.end() ||
           around->range.offset > range.offset) {
      ++around;
      assert(around != longer.end());
    }
    const uint64_t page_end = ToLargePage(range.end());
    ends.push_back(around->range.end() >= page_end ? page_end : range.end());
  }
  return ends;
}

size_t CountFiles(std::span<const Stretch> stretches) {
  std::set<FileId> files;
  for (const Stretch& stretch : stretches) files.insert(stretch.file);
  return files.size();
}

}  // namespace reshard
