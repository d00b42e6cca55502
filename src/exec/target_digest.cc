#include "src/exec/target_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "format/manifest/part_record.h"
#include "src/base/quote.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

LogicalMap MapOf(const Content& content, const PlacedBox& shard) {
  return {shard, ToByteShape(content.full_shape, content.dtype)};
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

TargetDigest::TargetDigest(const TargetPlan& plan) : plan_(plan), contents_(plan.segments.size()) {
  size_t copies = 0;
  first_copy_.reserve(plan.segments.size());
  for (const Segment& segment : plan.segments) {
    first_copy_.push_back(copies);
    if (const auto* content = std::get_if<Content>(&segment)) copies += content->copies.size();
  }
  copies_.resize(copies);
}

CopyDigest TargetDigest::OfCopy(size_t segment, size_t copy) {
  const auto& content = std::get<Content>(plan_.segments[segment]);
  return {MapOf(content, content.shards[copy]), hasher_, copies_[first_copy_[segment] + copy]};
}

void TargetDigest::AddChunk(std::span<const std::byte> chunk) {
  // Small enough to stay in the cache of a core from the first digest to the last.
  constexpr size_t kPieceBytes = size_t{256} << 10;
  for (; !chunk.empty(); chunk = chunk.subspan(std::min(kPieceBytes, chunk.size()))) {
    AddPiece(chunk.first(std::min(kPieceBytes, chunk.size())));
  }
}

void TargetDigest::AddPiece(std::span<const std::byte> chunk) {
  file_.Update(chunk);
  for (std::span<const std::byte> rest = chunk; !rest.empty();) {
    const uint64_t begin = size_ + (chunk.size() - rest.size());
    const uint64_t length =
        std::min<uint64_t>(rest.size(), kDigestBlockBytes - begin % kDigestBlockBytes);
    block_.Update(rest.first(length));
    rest = rest.subspan(length);
    if ((begin + length) % kDigestBlockBytes == 0 || begin + length == plan_.size) {
      blocks_.push_back(block_.HexDigest());
      block_.Reset();
    }
  }
  const uint64_t end = size_ + chunk.size();
  for (; segment_ < plan_.segments.size(); ++segment_) {
    const ByteRange range = TargetRange(plan_.segments[segment_]);
    const uint64_t from = std::max(size_, range.offset);
    const uint64_t to = std::min(end, range.end());
    if (from < to) AddPart(plan_.segments[segment_], from, chunk.subspan(from - size_, to - from));
    if (range.end() > end) break;
  }
  size_ = end;
}

void TargetDigest::AddPart(const Segment& segment, uint64_t offset,
                           std::span<const std::byte> bytes) {
  if (const auto* content = std::get_if<Content>(&segment)) {
    CopyDigest(MapOf(*content, PlacedTarget(*content)), hasher_, contents_[segment_])
        .Add(bytes.data(), bytes.size(), offset);
    return;
  }
  const auto& literal = std::get<Literal>(segment);
  if (std::memcmp(literal.bytes.data() + (offset - literal.offset), bytes.data(), bytes.size()) !=
      0) {
    changed_literal_ = literal.offset;
  }
}

Status TargetDigest::Compare() const {
  constexpr const char* kAdvice =
      "nothing was published; this is a fault of the host's memory or of reshard: convert again, "
      "and report it if it comes back";
  if (changed_literal_) {
    return InternalError(fmt::format("{}: the header at offset {} is not the planned one; {}",
                                     Escape(plan_.path), *changed_literal_, kAdvice));
  }
  for (size_t i = 0; i < plan_.segments.size(); ++i) {
    const auto* content = std::get_if<Content>(&plan_.segments[i]);
    if (content == nullptr) continue;
    Digest128 taken;
    for (size_t c = 0; c < content->copies.size(); ++c) taken ^= copy(i, c);
    if (taken == contents_[i]) continue;
    return InternalError(fmt::format(
        "{}: parameter {} at offset {}: the logical digest of the bytes taken from the sources is "
        "{}, that of the bytes to write {}; {}",
        Escape(plan_.path), Quote(content->target_name), content->target.offset, ToHex(taken),
        ToHex(contents_[i]), kAdvice));
  }
  return {};
}

}  // namespace reshard
