#include "src/plan/make_copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

// A box of a shard that lies in one Value of its file, in bytes.
struct SourcePiece {
  Box box;
  int64_t offset = 0;  // of the whole shard, placed so that the piece's bytes are at their offsets
};

std::vector<SourcePiece> PiecesOf(const PlacedPiece& shard, const Box& whole) {
  std::vector<SourcePiece> pieces;
  uint64_t begin = 0;  // of the Value in the bytes of the shard
  for (const ByteRange& value : shard.content) {
    const int64_t offset = static_cast<int64_t>(value.offset) - static_cast<int64_t>(begin);
    if (value.length == Volume(whole) && !whole.empty()) {  // as most are
      pieces.push_back({whole, offset});
    } else {
      for (Box& box : BoxesOfRange(whole, {begin, value.length})) {
        pieces.push_back({std::move(box), offset});
      }
    }
    begin += value.length;
  }
  return pieces;
}

// Orders the copies by their first target byte, each with its shard.
void SortByTarget(ShardCopies& out) {
  const auto is_before = [&](size_t a, size_t b) {
    return out.copies[a].target_offset < out.copies[b].target_offset;
  };
  std::vector<size_t> order(out.copies.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // The parts of a grid come in row-major order.
  if (std::is_sorted(order.begin(), order.end(), is_before)) return;
  std::sort(order.begin(), order.end(), is_before);
  ShardCopies sorted;
  for (const size_t i : order) {
    sorted.copies.push_back(std::move(out.copies[i]));
    sorted.shards.push_back(std::move(out.shards[i]));
  }
  out = std::move(sorted);
}

}  // namespace

Result<ShardCopies> MakeCopies(const SourceTensor& tensor, const std::vector<PlacedPiece>& shards,
                               const Box& box, ByteRange part, uint64_t target_offset) {
  const Box target = ToByteBox(box, tensor.dtype);
  const PlacedBox placed = {
      target, static_cast<int64_t>(target_offset) - static_cast<int64_t>(part.offset)};
  const std::vector<Box> target_boxes = BoxesOfRange(target, part);

  ShardCopies out;
  out.copies.reserve(shards.size());
  out.shards.reserve(shards.size());
  std::vector<std::vector<Box>> written(target_boxes.size());
  for (const PlacedPiece& shard : shards) {
    const Box whole = ToByteBox(shard.box, tensor.dtype);
    for (const SourcePiece& piece : PiecesOf(shard, whole)) {
      for (size_t i = 0; i < target_boxes.size(); ++i) {
        auto overlap = Intersect(piece.box, target_boxes[i]);
        if (!overlap) continue;
        out.shards.push_back({whole, piece.offset});
        out.copies.push_back(MakeBlockCopy(*overlap, out.shards.back(), placed));
        out.copies.back().source = shard.file;
        written[i].push_back(*std::move(overlap));
      }
    }
  }
  for (size_t i = 0; i < target_boxes.size(); ++i) {
    if (!CoversExactly(target_boxes[i], written[i])) {
      return MismatchError(fmt::format(
          "parameter {}: the shards found do not cover box {} of the full shape {} exactly once",
          Quote(tensor.name), ToString(box), ToString(tensor.full_shape)));
    }
  }
  SortByTarget(out);
  return out;
}

Result<std::vector<BlockCopy>> CopiesOf(const Source& source, const SourceTensor& tensor,
                                        const Box& box) {
  if (tensor.kind != ArrayKind::kTensor) return LayOut(tensor.file, tensor.content);
  RESHARD_ASSIGN_OR_RETURN(const std::vector<PlacedPiece> pieces, source.Cover(tensor, box, 0));
  const uint64_t bytes = Volume(ToByteBox(box, tensor.dtype));
  RESHARD_ASSIGN_OR_RETURN(ShardCopies made, MakeCopies(tensor, pieces, box, {0, bytes}, 0));
  return std::move(made.copies);
}

}  // namespace reshard
