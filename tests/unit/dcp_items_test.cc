#include "format/dcp/dcp_items.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "tests/support/dcp_bytes.h"

namespace reshard::dcp_items_test {
namespace {

TEST(DcpItemsTest, ItemsAreAskedForBeforeTheyAreRead) {
  // A large item has bytes between its ends that are not read.
  const std::vector<int64_t> extents = {1, 1, 2, 1, 1, 9000, 9000, 1, 1, 1, 1, 1, 9000, 1};
  DcpMetadata metadata;
  DcpTensor& tensor = metadata.tensors.emplace_back();
  tensor.name = "w";
  tensor.dtype = DType::kFloat32;
  tensor.full = {0};
  std::string bytes;
  for (const int64_t extent : extents) {
    const std::string item = DcpItemOf({extent}, std::string(static_cast<size_t>(4 * extent), 'x'));
    const size_t place = metadata.numbers.size();
    metadata.chunks.push_back({place, place + 1, DcpItem{0, {bytes.size(), item.size()}}});
    metadata.numbers.insert(metadata.numbers.end(), {tensor.full[0], extent});
    tensor.full[0] += extent;
    bytes += item;
  }
  std::vector<DcpArray> arrays;
  for (const DcpChunk& chunk : metadata.chunks) {
    arrays.push_back({&metadata, &tensor, &chunk, false});
  }

  for (const uint64_t items_ahead : {1U, 2U, 3U, 100U}) {
    std::vector<bool> asked(bytes.size());
    uint64_t read_to = 0;
    const FileBytes file = {
        "__0_0.distcp", bytes.size(),
        [&](uint64_t offset, std::span<std::byte> out) -> Status {
          const auto begin = asked.begin() + static_cast<ptrdiff_t>(offset);
          EXPECT_EQ(std::count(begin, begin + static_cast<ptrdiff_t>(out.size()), false), 0)
              << items_ahead << " ahead, at " << offset;
          read_to = std::max(read_to, offset + out.size());
          std::memcpy(out.data(), bytes.data() + offset, out.size());
          return {};
        },
        [&](ByteRange range) -> Status {
          EXPECT_GE(range.offset, read_to) << items_ahead << " ahead";
          const auto begin = asked.begin() + static_cast<ptrdiff_t>(range.offset);
          std::fill_n(begin, range.length, true);
          return {};
        },
        items_ahead * 2 * kHeaderPage};
    const auto read = ReadDcpItems(file, arrays, ".metadata", {});
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->table->arrays().size(), extents.size());
  }
}

}  // namespace
}  // namespace reshard::dcp_items_test
