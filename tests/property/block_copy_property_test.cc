// Block copies against a naive copy, element by element.
#include "src/tensor/block_copy.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "src/tensor/byte_box.h"
#include "tests/support/pick.h"

namespace reshard::block_copy_property_test {
namespace {

// A box inside `shape`.
Box AnyBox(const Shape& shape) {
  Box box;
  for (const int64_t size : shape) {
    const auto begin = Pick<int64_t>(0, size);
    box.begin.push_back(begin);
    box.extent.push_back(Pick<int64_t>(1, size - begin + 1));
  }
  return box;
}

Shape AnyShape() {
  Shape shape(Pick<size_t>(1, 5));
  for (int64_t& size : shape) size = Pick<int64_t>(1, 7);
  return shape;
}

// Calls visit(index) for each index of `box`, row-major.
template <typename Visit>
void ForEachIndex(const Box& box, Visit visit) {
  std::vector<int64_t> index = box.begin;
  while (true) {
    visit(index);
    size_t d = index.size();
    while (d > 0 && index[d - 1] == box.begin[d - 1] + box.extent[d - 1] - 1) {
      --d;
      index[d] = box.begin[d];
    }
    if (d == 0) return;
    ++index[d - 1];
  }
}

RC_GTEST_PROP(BlockCopyProperty, RunsAreTheNaiveCopy, ()) {
  const Shape shape = AnyShape();
  const Box source = AnyBox(shape);
  const Box target = AnyBox(shape);
  const auto overlap = Intersect(source, target);
  RC_PRE(overlap.has_value());

  // Every byte of the source stands for its place in the file.
  const int64_t source_base = Pick<int64_t>(0, 100);
  const int64_t target_base = Pick<int64_t>(0, 100);
  const auto target_end = static_cast<uint64_t>(target_base) + Volume(target);
  std::vector<int64_t> expected(target_end, -1);
  ForEachIndex(*overlap, [&](const std::vector<int64_t>& index) {
    expected[static_cast<uint64_t>(target_base) + OffsetInBox(target, index)] =
        source_base + static_cast<int64_t>(OffsetInBox(source, index));
  });

  const auto begin = Pick<uint64_t>(0, target_end + 1);
  const auto end = Pick<uint64_t>(begin, target_end + 1);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (i < begin || i >= end) expected[i] = -1;
  }

  const BlockCopy copy = MakeBlockCopy(*overlap, {source, source_base}, {target, target_base});
  RC_ASSERT(copy.bytes() == Volume(*overlap));
  std::vector<int64_t> found(target_end, -1);
  uint64_t last_source = 0;
  for (RunCursor cursor(copy, {begin, end - begin}); !cursor.done(); cursor.Next()) {
    const Run& run = cursor.run();
    RC_ASSERT(run.length > 0u);
    RC_ASSERT(run.source_offset >= last_source);
    last_source = run.source_offset + run.length;
    RC_ASSERT(run.source_offset >= copy.SourceSpan().offset);
    RC_ASSERT(last_source <= copy.SourceSpan().end());
    for (uint64_t i = 0; i < run.length; ++i) {
      RC_ASSERT(run.target_offset + i >= copy.TargetSpan().offset);
      RC_ASSERT(run.target_offset + i < copy.TargetSpan().end());
      int64_t& byte = found[run.target_offset + i];
      RC_ASSERT(byte == -1);
      byte = static_cast<int64_t>(run.source_offset + i);
    }
  }
  RC_ASSERT(found == expected);
}

RC_GTEST_PROP(ByteBoxProperty, BoxesOfARangeHoldItsBytesInOrder, ()) {
  const Shape shape = AnyShape();
  const Box box = AnyBox(shape);
  const auto begin = Pick<uint64_t>(0, Volume(box) + 1);
  const auto length = Pick<uint64_t>(0, Volume(box) - begin + 1);

  std::vector<uint64_t> offsets;
  const std::vector<Box> boxes = BoxesOfRange(box, {begin, length});
  for (const Box& part : boxes) {
    ForEachIndex(part, [&](const std::vector<int64_t>& index) {
      offsets.push_back(OffsetInBox(box, index));
    });
  }
  std::vector<uint64_t> expected(length);
  std::iota(expected.begin(), expected.end(), begin);
  RC_ASSERT(offsets == expected);
  RC_ASSERT(boxes.size() <= 2 * box.dims() - 1);
}

RC_GTEST_PROP(CoverageProperty, TellsWhetherEachElementIsCoveredOnce, ()) {
  const Shape shape = AnyShape();
  const Box whole = Box::Whole(shape);
  std::vector<Box> parts;
  if (PickBool()) {  // mostly no cover
    const auto count = Pick(0, 6);
    for (int i = 0; i < count; ++i) parts.push_back(AnyBox(shape));
  } else {  // a cover, cut at random
    parts.push_back(whole);
    const auto cuts = Pick(0, 6);
    for (int i = 0; i < cuts; ++i) {
      Box& part = parts[Pick<size_t>(0, parts.size())];
      const auto d = Pick<size_t>(0, part.dims());
      const auto at = Pick<int64_t>(0, part.extent[d]);
      if (at == 0) continue;
      Box rest = part;
      rest.begin[d] += at;
      rest.extent[d] -= at;
      part.extent[d] = at;
      parts.push_back(rest);
    }
    if (PickBool()) {  // and one box moved
      Box& part = parts[Pick<size_t>(0, parts.size())];
      part.begin = AnyBox(shape).begin;
    }
  }
  std::vector<int> covered(Volume(whole), 0);
  bool inside = true;
  for (const Box& part : parts) {
    const auto overlap = Intersect(whole, part);
    inside = inside && overlap == part;
    if (!overlap) continue;
    ForEachIndex(*overlap,
                 [&](const std::vector<int64_t>& index) { ++covered[OffsetInBox(whole, index)]; });
  }
  const bool expected =
      inside && std::all_of(covered.begin(), covered.end(), [](int n) { return n == 1; });
  RC_ASSERT(CoversExactly(whole, parts) == expected);
}

// The position of each byte of a shard, and no more contiguous bytes than there are.
RC_GTEST_PROP(BlockCopyProperty, LogicalMapIsTheNaiveOffset, ()) {
  const Shape shape = AnyShape();
  const Box full = Box::Whole(shape);
  const Box box = AnyBox(shape);
  const int64_t base = Pick<int64_t>(-100, 100);  // below zero when a Value begins inside the shard
  const LogicalMap map({box.begin, box.extent, base}, shape);
  std::vector<uint64_t> positions;
  ForEachIndex(box, [&](const auto& index) { positions.push_back(OffsetInBox(full, index)); });
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto place = map.At(static_cast<uint64_t>(base) + i);
    RC_ASSERT(place.position == positions[i]);
    RC_ASSERT(place.contiguous > 0);
    RC_ASSERT(i + place.contiguous <= positions.size());
    RC_ASSERT(positions[i + place.contiguous - 1] == positions[i] + place.contiguous - 1);
  }
  const auto first = Pick<size_t>(0, positions.size());
  const auto stride = Pick<size_t>(1, positions.size() + 1);
  const size_t count = (positions.size() - 1 - first) / stride + 1;
  const auto row = map.RowAt(static_cast<uint64_t>(base) + first, stride, count);
  RC_ASSERT(row.count >= 1U);
  RC_ASSERT(row.count <= count);
  for (size_t i = 0; i < row.count; ++i) {
    RC_ASSERT(positions[first + i * stride] == positions[first] + i * row.position_stride);
  }
  if (stride % map.run_length() == 0) RC_CLASSIFY(row.count > 1, "rows");
}

}  // namespace
}  // namespace reshard::block_copy_property_test
