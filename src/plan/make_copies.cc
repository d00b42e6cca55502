#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/base/quote.h"
#include "src/plan/planner.h"
#include "src/tensor/byte_box.h"
#include "src/tensor/coverage.h"

namespace reshard {
namespace {

// A box of a shard that lies in one Value of its file, in bytes.
struct SourcePiece {
  Box box;
  PlacedBox
      shard;  // the whole shard, placed so that the piece's bytes are where they are in the file
  FileId file = 0;
};

std::vector<SourcePiece> PiecesOf(const SourceShard& shard, DType dtype) {
  const Box whole = ToByteBox(shard.box, dtype);
  std::vector<SourcePiece> pieces;
  uint64_t begin = 0;  // of the Value in the bytes of the shard
  for (const ByteRange& value : shard.content) {
    const int64_t offset = static_cast<int64_t>(value.offset) - static_cast<int64_t>(begin);
    for (Box& box : BoxesOfRange(whole, {begin, value.length})) {
      pieces.push_back({std::move(box), {whole, offset}, shard.file});
    }
    begin += value.length;
  }
  return pieces;
}

}  // namespace

Result<ShardCopies> MakeCopies(const SourceTensor& tensor, const std::vector<SourceShard>& shards,
                               const Box& box, ByteRange part, uint64_t target_offset) {
  const Box target = ToByteBox(box, tensor.dtype);
  const PlacedBox placed = {
      target, static_cast<int64_t>(target_offset) - static_cast<int64_t>(part.offset)};
  const std::vector<Box> target_boxes = BoxesOfRange(target, part);

  std::vector<std::pair<BlockCopy, PlacedBox>> found;
  std::vector<std::vector<Box>> written(target_boxes.size());
  for (const SourceShard& shard : shards) {
    for (const SourcePiece& piece : PiecesOf(shard, tensor.dtype)) {
      for (size_t i = 0; i < target_boxes.size(); ++i) {
        auto overlap = Intersect(piece.box, target_boxes[i]);
        if (!overlap) continue;
        found.emplace_back(MakeBlockCopy(*overlap, piece.shard, placed), piece.shard);
        found.back().first.source = piece.file;
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
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.first.target_offset < b.first.target_offset;
  });
  ShardCopies out;
  for (auto& [copy, shard] : found) {
    out.copies.push_back(std::move(copy));
    out.shards.push_back(std::move(shard));
  }
  return out;
}

}  // namespace reshard
