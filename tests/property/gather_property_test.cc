// Gathering a box out of shards, in chunks, against a naive copy element by element.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "src/write/gather.h"
#include "tests/support/pick.h"
#include "tests/support/temporary_folder.h"

namespace reshard::gather_property_test {
namespace {

// Calls visit(index) for each index of `box`, row-major.
template <typename Visit>
void ForEachIndex(const Box& box, Visit visit) {
  if (box.empty()) return;
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

// Cuts [0, size) into parts that are not empty.
std::vector<std::pair<int64_t, int64_t>> AnyCuts(int64_t size) {
  std::vector<std::pair<int64_t, int64_t>> parts;
  for (int64_t begin = 0; begin < size;) {
    const auto length = Pick<int64_t>(1, size - begin + 1);
    parts.emplace_back(begin, length);
    begin += length;
  }
  return parts;
}

// All boxes of a grid of cuts.
std::vector<Box> AnyShards(const Shape& shape) {
  std::vector<Box> shards = {Box{}};
  for (const int64_t size : shape) {
    const auto parts = AnyCuts(size);
    std::vector<Box> finer;
    for (const Box& shard : shards) {
      for (const auto& [begin, length] : parts) {
        finer.push_back(shard);
        finer.back().begin.push_back(begin);
        finer.back().extent.push_back(length);
      }
    }
    shards = finer;
  }
  return shards;
}

Box AnyBox(const Shape& shape) {
  Box box;
  for (const int64_t size : shape) {
    const auto begin = Pick<int64_t>(0, size);
    box.begin.push_back(begin);
    box.extent.push_back(Pick<int64_t>(1, size - begin + 1));
  }
  return box;
}

// The value at an index of a tensor, one byte.
char ValueAt(const std::vector<int64_t>& index) {
  uint64_t hash = 0;
  for (const int64_t i : index) hash = hash * 1000003 + static_cast<uint64_t>(i) + 1;
  return static_cast<char>(hash ^ (hash >> 8));
}

std::string NaiveBytes(const Box& box) {
  std::string bytes;
  ForEachIndex(box, [&](const std::vector<int64_t>& index) { bytes += ValueAt(index); });
  return bytes;
}

RC_GTEST_PROP(GatherProperty, IsTheNaiveCopy, ()) {
  Shape shape(Pick<size_t>(1, 5));
  for (int64_t& size : shape) size = Pick<int64_t>(1, 9);
  const std::vector<Box> shards = AnyShards(shape);
  RC_PRE(shards.size() <= 64);
  const Box target = AnyBox(shape);
  const auto target_offset = Pick<int64_t>(0, 50);

  const TemporaryFolder folder;
  SourceFiles files(Pick<size_t>(1, 8));
  std::vector<BlockCopy> copies;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string before(Pick<size_t>(0, 9), 'x');
    const FileId file = files.Add(folder.Write(std::to_string(i), before + NaiveBytes(shards[i])));
    const auto overlap = Intersect(shards[i], target);
    if (!overlap) continue;
    copies.push_back(MakeBlockCopy(*overlap, {shards[i], static_cast<int64_t>(before.size())},
                                   {target, target_offset}));
    copies.back().source = file;
  }
  std::sort(copies.begin(), copies.end(), [](const BlockCopy& a, const BlockCopy& b) {
    return a.target_offset < b.target_offset;
  });

  const std::string expected = NaiveBytes(target);
  const auto chunk = Pick<size_t>(1, expected.size() + 1);
  std::string joined;
  while (joined.size() < expected.size()) {
    std::string out(std::min(chunk, expected.size() - joined.size()), '#');
    const Status status =
        Gather(files, copies, static_cast<uint64_t>(target_offset) + joined.size(),
               std::as_writable_bytes(std::span(out)));
    RC_ASSERT(status.ok());
    joined += out;
  }
  RC_ASSERT(joined == expected);
}

}  // namespace
}  // namespace reshard::gather_property_test
