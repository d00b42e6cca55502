#include "src/write/target_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <variant>

#include "format/container/container.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/record/part_record.h"

namespace reshard {

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
  bool casts = false;
  for (auto segment = first;
       segment != plan.segments.end() && TargetRange(*segment).offset < range.end(); ++segment) {
    first_copy_.push_back(copies);
    if (const auto* content = std::get_if<Content>(&*segment)) {
      copies += content->copies.size();
      casts = casts || content->is_cast();
    }
  }
  copies_.assign(copies, {});
  contents_.assign(first_copy_.size(), {});
  images_.assign(casts ? first_copy_.size() : 0, {});
  changed_literal_.reset();
}

CopyDigest ChunkDigest::OfCopy(size_t segment, size_t copy) {
  const auto& content = std::get<Content>(plan_->segments[segment]);
  return {SourceMapOf(content, copy), hasher_,
          copies_[first_copy_[segment - first_segment_] + copy]};
}

void ChunkDigest::AddImage(size_t segment, uint64_t offset, std::span<const std::byte> bytes) {
  const auto& content = std::get<Content>(plan_->segments[segment]);
  CopyDigest(ImageMapOf(content), hasher_, images_[segment - first_segment_])
      .Add(bytes.data(), bytes.size(), offset);
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
      CopyDigest(TargetMapOf(*content), hasher_, contents_[static_cast<size_t>(segment - begin)])
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

TargetDigest::TargetDigest(const TargetPlan& plan, ByteRange range)
    : plan_(plan), range_(range), contents_(plan.segments.size()), next_(range.offset) {
  size_t copies = 0;
  bool casts = false;
  first_copy_.reserve(plan.segments.size());
  for (const Segment& segment : plan.segments) {
    first_copy_.push_back(copies);
    if (const auto* content = std::get_if<Content>(&segment)) {
      copies += content->copies.size();
      casts = casts || content->is_cast();
    }
  }
  copies_.resize(copies);
  if (casts) images_.resize(plan.segments.size());
}

void TargetDigest::AddChunk(std::span<std::byte> chunk, const ChunkDigest& sums) {
  AddSums(sums);
  // Small enough to stay in the cache of a core from one digest to the other.
  constexpr size_t kPieceBytes = size_t{256} << 10;
  for (; !chunk.empty(); chunk = chunk.subspan(std::min(kPieceBytes, chunk.size()))) {
    const auto piece = chunk.first(std::min(kPieceBytes, chunk.size()));
    if (range_.length == plan_.size && plan_.StatesCrc(CrcPlace::kBehind)) StateCrc(piece);
    AddPiece(piece);
  }
}

void TargetDigest::StateCrc(std::span<std::byte> piece) {
  const auto text_of = [this](uint32_t crc) {
    return plan_.crc->text({}, plan_.size, crc).value();  // the plan has its place
  };
  const uint64_t covered = text_of(0).offset;
  crc_.Update(piece.first(std::min<uint64_t>(piece.size(), covered - std::min(covered, next_))));
  const uint64_t end = next_ + piece.size();
  if (end <= covered) return;
  const std::string text = text_of(crc_.value()).bytes;
  const uint64_t begin = std::max(covered, next_);
  std::memcpy(piece.data() + (begin - next_), text.data() + (begin - covered), end - begin);
}

void TargetDigest::AddSums(const ChunkDigest& sums) {
  if (sums.contents_.empty()) return;
  const size_t first_copy = first_copy_[sums.first_segment_];
  for (size_t i = 0; i < sums.copies_.size(); ++i) copies_[first_copy + i] ^= sums.copies_[i];
  for (size_t i = 0; i < sums.contents_.size(); ++i) {
    contents_[sums.first_segment_ + i] ^= sums.contents_[i];
  }
  for (size_t i = 0; i < sums.images_.size(); ++i) {
    images_[sums.first_segment_ + i] ^= sums.images_[i];
  }
  if (sums.changed_literal_) changed_literal_ = sums.changed_literal_;
}

void TargetDigest::AddPiece(std::span<const std::byte> piece) {
  const bool whole = range_.length == plan_.size;
  while (!piece.empty()) {
    const uint64_t length =
        std::min<uint64_t>(piece.size(), kDigestBlockBytes - next_ % kDigestBlockBytes);
    // The digest of the whole file has so far covered just its first block.
    const bool same = whole && next_ < kDigestBlockBytes;
    if (whole) file_.Update(piece.first(length));
    if (!same) block_.Update(piece.first(length));
    next_ += length;
    piece = piece.subspan(length);
    if (next_ % kDigestBlockBytes == 0 || next_ == plan_.size) {
      blocks_.push_back(same ? file_.HexDigest() : block_.HexDigest());
      block_.Reset();
    }
  }
}

Status TargetDigest::Compare() const {
  constexpr const char* kReport =
      "no file was published; this is a fault of the host's memory or of reshard: convert again, "
      "and report it if it happens again";
  if (changed_literal_) {
    return InternalError(fmt::format("{}: the header at offset {} is not the planned one; {}",
                                     Escape(plan_.path), *changed_literal_, kReport));
  }
  for (size_t i = 0; i < plan_.segments.size(); ++i) {
    const auto* content = std::get_if<Content>(&plan_.segments[i]);
    if (content == nullptr) continue;
    Digest128 taken;
    for (size_t c = 0; c < content->copies.size(); ++c) taken ^= copy(i, c);
    const Digest128& moved = content->is_cast() ? images_[i] : contents_[i];
    if (taken == moved) continue;
    return InternalError(
        fmt::format("{}: parameter {} at offset {}: the bytes taken from the sources have the "
                    "logical digest {}, the bytes to write {}; {}",
                    Escape(plan_.path), Quote(content->target_name), content->target.offset,
                    ToHex(taken), ToHex(moved), kReport));
  }
  return {};
}

Status Prove(const TargetDigest& digest, const SourceFiles& sources) {
  Status proof = digest.Compare();
  if (!proof.ok()) RESHARD_RETURN_IF_ERROR(sources.VerifyUnchanged());
  return proof;
}

}  // namespace reshard
