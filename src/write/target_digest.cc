#include "src/write/target_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "src/base/quote.h"
#include "src/record/part_record.h"

namespace reshard {

TargetDigest::TargetDigest(const TargetPlan& plan, ByteRange range)
    : plan_(plan), range_(range), contents_(plan.segments.size()), next_(range.offset) {
  size_t copies = 0;
  first_copy_.reserve(plan.segments.size());
  for (const Segment& segment : plan.segments) {
    first_copy_.push_back(copies);
    if (const auto* content = std::get_if<Content>(&segment)) copies += content->copies.size();
  }
  copies_.resize(copies);
}

void TargetDigest::AddChunk(std::span<const std::byte> chunk, const ChunkDigest& sums) {
  AddSums(sums);
  // Small enough to stay in the cache of a core from one digest to the other.
  constexpr size_t kPieceBytes = size_t{256} << 10;
  for (; !chunk.empty(); chunk = chunk.subspan(std::min(kPieceBytes, chunk.size()))) {
    AddPiece(chunk.first(std::min(kPieceBytes, chunk.size())));
  }
}

void TargetDigest::AddSums(const ChunkDigest& sums) {
  if (sums.contents_.empty()) return;
  const size_t first_copy = first_copy_[sums.first_segment_];
  for (size_t i = 0; i < sums.copies_.size(); ++i) copies_[first_copy + i] ^= sums.copies_[i];
  for (size_t i = 0; i < sums.contents_.size(); ++i) {
    contents_[sums.first_segment_ + i] ^= sums.contents_[i];
  }
  if (sums.changed_literal_) changed_literal_ = sums.changed_literal_;
}

void TargetDigest::AddPiece(std::span<const std::byte> piece) {
  const bool whole = range_.length == plan_.size;
  while (!piece.empty()) {
    const uint64_t length =
        std::min<uint64_t>(piece.size(), kDigestBlockBytes - next_ % kDigestBlockBytes);
    // The first block of a file is what the file's own digest has seen so far.
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
