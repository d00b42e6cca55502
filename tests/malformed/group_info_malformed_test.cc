// group_info files: a good one in each form it may have, and one thing wrong in each row.

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "src/mindspore/group_info.h"
#include "src/mindspore/strategy_codec.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::group_info_malformed_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// A list of ranks as MindSpore writes it.
std::string Ranks(const std::vector<uint64_t>& ranks) {
  std::string bytes;
  for (const uint64_t rank : ranks) bytes += NumberField(1, rank);
  return bytes;
}

std::string Group(std::string_view name, const std::vector<uint64_t>& ranks) {
  return BlockField(1, BlockField(1, name) + BlockField(2, Ranks(ranks)));
}

const std::string kGroups = Group("dp", {0, 4}) + Group("mp", {0, 1, 2, 3});
const std::string kGood = kGroups + BlockField(2, Ranks({4, 0}));

TEST(GroupInfoMalformedTest, GoodOnes) {
  const std::string rows[] = {
      kGood,
      BlockField(2, Ranks({0, 4})),
      kGroups + BlockField(2, BlockField(1, Varint(0) + Varint(4))),    // packed
      BlockField(2, Ranks({0})) + kGroups + BlockField(2, Ranks({4})),  // in pieces
      kGood + NumberField(7, 1) + BlockField(8, "of a later version"),  // unknown fields
  };
  for (const std::string& bytes : rows) {
    const auto ranks = ParseGroupInfo("group_info.pb", bytes);
    ASSERT_TRUE(ranks.ok()) << ranks.status().message();
    EXPECT_THAT(*ranks, ElementsAre(0, 4));
  }
}

TEST(GroupInfoMalformedTest, Rejects) {
  struct Row {
    const char* name;
    std::string bytes;
    std::string message;
  };
  const std::string at_end = std::to_string(kGood.size());
  const std::string at_list = std::to_string(kGroups.size());
  const std::string strategy = ProtobufStrategy(0, {{"w", MakeLayout({2}, {{0}})}});
  const Row rows[] = {
      {"empty", "", "expected a group_info file, found an empty file"},
      {"weights", TensorValue("w", "Float32", {1}, "abcd"),
       "expected a group_info file, found a MindSpore checkpoint (weights)"},
      {"a strategy", strategy, "found a field 1 that it does not have at offset 0"},
      {"a strategy that begins with an item", strategy.substr(2),
       "found a field 2 that is no list of ranks at offset 0"},
      {"JSON", "{\"parallel_layout_item\": {}}", "found a field 15 that it does not have"},
      {"no list", kGroups, "(ckpt_restore_rank_list), found none; is it a group_info file?"},
      {"an empty list", kGroups + BlockField(2, ""), "(ckpt_restore_rank_list), found none"},
      {"cut off", kGood.substr(0, kGood.size() - 1),
       "found a field of 4 bytes where 3 are left; is the file cut off? at offset " + at_list},
      {"cut in a length", kGood + "\x12", "found a malformed length at offset " + at_end},
      {"a zero byte", kGood + std::string(1, '\0'),
       "bytes that begin no field at offset " + at_end},
      {"a length of 2^64 - 1", kGood + Key(2, 2) + Varint(~uint64_t{0}),
       "found a field of 18446744073709551615 bytes where 0 are left"},
      {"a layout item", kGood + BlockField(3, "x"),
       "found a field 3 that it does not have at offset " + at_end},
      {"a list of another type", kGroups + NumberField(2, 1),
       "found a field 2 that it does not have at offset " + at_list},
      {"groups in groups", kGood + std::string(100'000, '\x4b'),
       "found a field 9 that it does not have at offset " + at_end},
      {"a list that is no message", kGroups + BlockField(2, "\x08"),
       "found a field 2 that is no list of ranks at offset " + at_list},
      {"a list with a name", kGroups + BlockField(2, Ranks({0, 4}) + BlockField(3, "x")),
       "found a field 2 that is no list of ranks"},
      {"a rank twice", kGroups + BlockField(2, Ranks({4, 0, 4})),
       "expected each rank once in ckpt_restore_rank_list, found rank 4 twice"},
      {"a rank beyond all", kGroups + BlockField(2, Ranks({0, 1 << 20})),
       "expected ranks below 1048576 in ckpt_restore_rank_list, found 1048576"},
      {"a rank of 2^32 - 1", kGroups + BlockField(2, Ranks({0xffffffff})),
       "expected ranks below 1048576 in ckpt_restore_rank_list, found 4294967295"},
      {"more ranks than there can be",
       BlockField(2, BlockField(1, std::string((1 << 20) + 1, '\0'))),
       "found a list of more than 1048576 ranks at offset 0"},
      {"a list too large", BlockField(2, std::string((8 << 20) + 1, '\0')),
       "found a list of 8388609 bytes (more than 8388608) at offset 0"},
  };
  for (const Row& row : rows) {
    const auto ranks = ParseGroupInfo("group_info.pb", row.bytes);
    ASSERT_FALSE(ranks.ok()) << row.name;
    EXPECT_EQ(ranks.status().code(), StatusCode::kCorrupt) << row.name;
    EXPECT_THAT(ranks.status().message(), StartsWith("group_info.pb: ")) << row.name;
    EXPECT_THAT(ranks.status().message(), HasSubstr(row.message)) << row.name;
  }
}

TEST(GroupInfoMalformedTest, EveryCutIsRejectedOrNoList) {
  for (size_t size = 0; size < kGood.size(); ++size) {
    EXPECT_FALSE(ParseGroupInfo("group_info.pb", kGood.substr(0, size)).ok()) << size;
  }
}

TEST(GroupInfoMalformedTest, IsNoStrategy) {
  const auto strategy = ParseStrategy("s.ckpt", kGood);
  EXPECT_THAT(strategy.status().message(), HasSubstr("found a group_info file"));
}

}  // namespace
}  // namespace reshard::group_info_malformed_test
