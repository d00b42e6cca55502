#include "src/tensor/block_copy.h"

#include <algorithm>
#include <cassert>

#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

// Adds the run and the loops of a box of the extent `extent` in boxes with these extents.
void AddLoops(std::span<const int64_t> extent, std::span<const int64_t> source,
              std::span<const int64_t> target, BlockCopy& copy) {
  copy.run_length = 1;
  uint64_t source_stride = 1;
  uint64_t target_stride = 1;
  for (size_t d = extent.size(); d-- > 0;) {
    const auto count = static_cast<uint64_t>(extent[d]);
    if (count != 1) {
      if (copy.dims.empty() && source_stride == copy.run_length &&
          target_stride == copy.run_length) {
        copy.run_length *= count;
      } else if (!copy.dims.empty() &&
                 copy.dims.back().count * copy.dims.back().source_stride == source_stride &&
                 copy.dims.back().count * copy.dims.back().target_stride == target_stride) {
        copy.dims.back().count *= count;
      } else {
        copy.dims.push_back({count, source_stride, target_stride});
      }
    }
    source_stride *= static_cast<uint64_t>(source[d]);
    target_stride *= static_cast<uint64_t>(target[d]);
  }
  std::reverse(copy.dims.begin(), copy.dims.end());
}

}  // namespace

uint64_t BlockCopy::runs() const {
  uint64_t runs = 1;
  for (const CopyDim& dim : dims) runs *= dim.count;
  return runs;
}

ByteRange BlockCopy::SourceSpan() const {
  uint64_t length = run_length;
  for (const CopyDim& dim : dims) length += (dim.count - 1) * dim.source_stride;
  return {source_offset, length};
}

ByteRange BlockCopy::TargetSpan() const {
  uint64_t length = run_length;
  for (const CopyDim& dim : dims) length += (dim.count - 1) * dim.target_stride;
  return {target_offset, length};
}

BlockCopy MakeBlockCopy(const Box& overlap, const PlacedBox& source, const PlacedBox& target) {
  assert(!overlap.empty());
  BlockCopy copy;
  copy.source_offset = static_cast<uint64_t>(
      source.offset + static_cast<int64_t>(OffsetInBox(source.box, overlap.begin)));
  copy.target_offset = static_cast<uint64_t>(
      target.offset + static_cast<int64_t>(OffsetInBox(target.box, overlap.begin)));
  AddLoops(overlap.extent, source.box.extent, target.box.extent, copy);
  return copy;
}

BlockCopy MakeBlockCopy(const PlacedBoxView& shard, std::span<const int64_t> full_bytes) {
  BlockCopy copy;
  copy.source_offset = static_cast<uint64_t>(shard.offset);
  for (size_t d = 0; d < full_bytes.size(); ++d) {
    copy.target_offset = copy.target_offset * static_cast<uint64_t>(full_bytes[d]) +
                         static_cast<uint64_t>(shard.begin[d]);
  }
  AddLoops(shard.extent, shard.extent, full_bytes, copy);
  return copy;
}

RunCursor::RunCursor(const BlockCopy& copy, ByteRange target)
    : dims_(copy.dims.data()),
      dim_count_(copy.dims.size()),
      run_length_(copy.run_length),
      source_(copy.source_offset),
      target_(copy.target_offset),
      begin_(target.offset),
      end_(target.end()) {
  assert(dim_count_ <= kMaxDims);
  // Finds the first run that does not end before the range. In each loop, outermost first, it skips
  // the repetitions that end before the range. The bytes after a repetition begin behind it, so the
  // choice is final. It may fall into the gap behind the last run of a repetition; then Next() goes
  // on to the next one.
  for (size_t d = 0; d < dim_count_; ++d) {
    index_[d] = 0;
    if (begin_ > target_) {
      index_[d] = std::min((begin_ - target_) / dims_[d].target_stride, dims_[d].count - 1);
      source_ += index_[d] * dims_[d].source_stride;
      target_ += index_[d] * dims_[d].target_stride;
    }
  }
  if (target_ + run_length_ <= begin_) {
    Next();
  } else {
    Settle();
  }
}

void RunCursor::Next() {
  for (size_t d = dim_count_; d-- > 0;) {
    if (++index_[d] < dims_[d].count) {
      source_ += dims_[d].source_stride;
      target_ += dims_[d].target_stride;
      Settle();
      return;
    }
    index_[d] = 0;
    source_ -= (dims_[d].count - 1) * dims_[d].source_stride;
    target_ -= (dims_[d].count - 1) * dims_[d].target_stride;
  }
  done_ = true;
}

void RunCursor::Settle() {
  if (target_ >= end_ || begin_ >= end_ || run_length_ == 0) {
    done_ = true;
    return;
  }
  const uint64_t skip = begin_ > target_ ? begin_ - target_ : 0;
  run_ = {source_ + skip, target_ + skip, std::min(end_, target_ + run_length_) - (target_ + skip)};
}

LogicalMap::Place LogicalMap::At(uint64_t offset) const {
  uint64_t rest = offset - to_logical_.source_offset;
  uint64_t position = to_logical_.target_offset;
  for (const CopyDim& dim : to_logical_.dims) {
    position += rest / dim.source_stride * dim.target_stride;
    rest %= dim.source_stride;
  }
  return {position + rest, to_logical_.run_length - rest};
}

LogicalMap::Row LogicalMap::RowAt(uint64_t offset, uint64_t stride, uint64_t count) const {
  if (to_logical_.dims.empty()) return {count, stride};
  const CopyDim& inner = to_logical_.dims.back();
  if (stride == 0 || stride % inner.source_stride != 0) return {};
  const uint64_t steps = stride / inner.source_stride;
  const uint64_t index = (offset - to_logical_.source_offset) / inner.source_stride % inner.count;
  return {std::min(count, (inner.count - 1 - index) / steps + 1), steps * inner.target_stride};
}

}  // namespace reshard
