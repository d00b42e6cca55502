#include "src/write/chunk_digest.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <variant>

#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

LogicalMap MapOf(const Content& content, const PlacedBox& shard) {
  return {shard, ToByteShape(content.geometry.full_shape(), content.dtype)};
}

}  // namespace

void CopyDigest::Add(const std::byte* bytes, uint64_t size, uint64_t offset) {
  while (size > 0) {
    const LogicalMap::Place place = map_.At(offset);
    uint64_t length = std::min(size, place.contiguous);
    if (length == map_.run_length() && size >= 2 * length) {
      const uint64_t runs = size / length;
      AddRow(bytes, length, runs, length, offset);
      length *= runs;
    } else {
      hasher_.Add(sum_, bytes, length, place.position);
    }
    bytes += length;
    offset += length;
    size -= length;
  }
}

void CopyDigest::AddRow(const std::byte* bytes, uint64_t length, uint64_t count, uint64_t stride,
                        uint64_t offset) {
  while (count > 0) {
    const LogicalMap::Place place = map_.At(offset);
    LogicalMap::Row row;
    if (place.contiguous >= length) {
      row = map_.RowAt(offset, stride, count);
      hasher_.AddRuns(sum_, {.bytes = bytes,
                             .size = length,
                             .position = place.position,
                             .count = row.count,
                             .bytes_stride = stride,
                             .position_stride = row.position_stride});
    } else {
      Add(bytes, length, offset);
    }
    bytes += row.count * stride;
    offset += row.count * stride;
    count -= row.count;
  }
}

void ChunkDigest::Begin(const TargetPlan& plan, ByteRange range) {
  plan_ = &plan;
  const auto first = std::partition_point(
      plan.segments.begin(), plan.segments.end(),
      [&](const Segment& segment) { return TargetRange(segment).end() <= range.offset; });
  first_segment_ = static_cast<size_t>(first - plan.segments.begin());
  first_copy_.clear();
  size_t copies = 0;
  for (auto segment = first;
       segment != plan.segments.end() && TargetRange(*segment).offset < range.end(); ++segment) {
    first_copy_.push_back(copies);
    if (const auto* content = std::get_if<Content>(&*segment)) copies += content->copies.size();
  }
  copies_.assign(copies, {});
  contents_.assign(first_copy_.size(), {});
  changed_literal_.reset();
}

CopyDigest ChunkDigest::OfCopy(size_t segment, size_t copy) {
  const auto& content = std::get<Content>(plan_->segments[segment]);
  return {MapOf(content, content.geometry.shard(copy)), hasher_,
          copies_[first_copy_[segment - first_segment_] + copy]};
}

void ChunkDigest::AddTarget(uint64_t offset, std::span<const std::byte> bytes) {
  const auto begin = plan_->segments.begin() + static_cast<std::ptrdiff_t>(first_segment_);
  auto segment = std::partition_point(
      begin, begin + static_cast<std::ptrdiff_t>(contents_.size()),
      [&](const Segment& candidate) { return TargetRange(candidate).end() <= offset; });
  for (; !bytes.empty(); ++segment) {
    const ByteRange range = TargetRange(*segment);
    const auto part = bytes.first(std::min<uint64_t>(bytes.size(), range.end() - offset));
    if (const auto* content = std::get_if<Content>(&*segment)) {
      CopyDigest(MapOf(*content, PlacedTarget(*content)), hasher_,
                 contents_[static_cast<size_t>(segment - begin)])
          .Add(part.data(), part.size(), offset);
    } else {
      const auto& literal = std::get<Literal>(*segment);
      if (std::memcmp(literal.bytes.data() + (offset - literal.offset), part.data(), part.size()) !=
          0) {
        changed_literal_ = literal.offset;
      }
    }
    offset += part.size();
    bytes = bytes.subspan(part.size());
  }
}

}  // namespace reshard
