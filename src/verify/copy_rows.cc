#include "src/verify/copy_rows.h"

#include <utility>

namespace reshard {
namespace {

// Bytes between two runs that are made present for nothing rather than opening another window.
constexpr uint64_t kMaxGap = uint64_t{64} << 10;

}  // namespace

CopyRows::CopyRows(const BlockCopy& copy)
    : copy_(copy), inner_{1, copy.run_length, copy.run_length}, loops_(copy) {
  if (!loops_.dims.empty()) {
    inner_ = loops_.dims.back();
    loops_.dims.pop_back();
  }
  std::swap(loops_.source_offset, loops_.target_offset);
  for (CopyDim& dim : loops_.dims) std::swap(dim.source_stride, dim.target_stride);
  loops_.run_length = (inner_.count - 1) * inner_.source_stride + copy.run_length;

  blocks_ = loops_;
  if (inner_.count > 1 && inner_.source_stride - copy.run_length > kMaxGap) {
    blocks_.dims.push_back({inner_.count, inner_.target_stride, inner_.source_stride});
    blocks_.run_length = copy.run_length;
    return;
  }
  while (!blocks_.dims.empty() &&
         blocks_.dims.back().target_stride - blocks_.run_length <= kMaxGap) {
    blocks_.run_length += (blocks_.dims.back().count - 1) * blocks_.dims.back().target_stride;
    blocks_.dims.pop_back();
  }
}

ByteRange CopyRows::SourceOf(ByteRange target) const {
  const uint64_t begin = SourceFrom(target.offset);
  return {begin, SourceFrom(target.end()) - begin};
}

uint64_t CopyRows::SourceFrom(uint64_t target) const {
  const uint64_t end = copy_.TargetSpan().end();
  const RunCursor next(copy_, {target, end > target ? end - target : 0});
  return next.done() ? copy_.SourceSpan().end() : next.run().source_offset;
}

}  // namespace reshard
