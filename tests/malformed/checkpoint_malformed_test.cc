// Checkpoint files with one thing wrong.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/checkpoint_bytes.h"
#include "tests/support/index_bytes.h"

namespace reshard::checkpoint_malformed_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr auto kCorrupt = StatusCode::kCorrupt;

// A Value with these parts in place of the ones that a valid one has.
struct Parts {
  std::string tag = BlockField(1, "w");
  std::string dims = NumberField(1, 2);
  std::string type = BlockField(2, "Int8");
  std::string content = BlockField(3, "ab");
};

std::string Build(const Parts& parts) {
  return BlockField(1, parts.tag + BlockField(2, parts.dims + parts.type + parts.content));
}

std::string Valid(const std::string& tag) { return TensorValue(tag, "Int8", {2}, "ab"); }

std::string Map(const std::string& tag, const std::string& key_type = "int32", int64_t values = 1) {
  return MapValue(tag,
                  {TensorMessage(key_type, {1}, "kkkk"), TensorMessage("float32", {values}, "vvvv"),
                   TensorMessage("int8", {1}, "s")});
}

struct MalformedCase {
  const char* name;
  std::string bytes;
  StatusCode code;
  std::string message;  // part of it, behind "net.ckpt: "
};

class CheckpointMalformedTest : public testing::TestWithParam<MalformedCase> {};

TEST_P(CheckpointMalformedTest, IsRefusedWithAReason) {
  const MalformedCase& row = GetParam();
  const auto index = IndexBytes(row.bytes);
  ASSERT_FALSE(index.ok());
  const Status status = index.status();
  EXPECT_EQ(status.code(), row.code);
  EXPECT_THAT(status.message(), StartsWith("net.ckpt: "));
  EXPECT_THAT(status.message(), HasSubstr(row.message));
  for (const char c : status.message()) EXPECT_GE(static_cast<unsigned char>(c), ' ');
}

// Each row breaks what these leave whole.
TEST(CheckpointMalformedBaseTest, TheBuildersMakeValidFiles) {
  const std::vector<std::string> files = {Build({}), Valid("w"), Map("m"), Map("m") + Map("m")};
  for (const std::string& bytes : files) {
    EXPECT_TRUE(IndexBytes(bytes).ok()) << IndexBytes(bytes).status().message();
  }
}

std::string CaseName(const testing::TestParamInfo<MalformedCase>& row) { return row.param.name; }

constexpr uint64_t kHuge = uint64_t{1} << 63;

INSTANTIATE_TEST_SUITE_P(
    Lengths, CheckpointMalformedTest,
    testing::Values(
        MalformedCase{"value_of_2_GiB", BlockHeader(1, uint64_t{1} << 31) + "ab", kCorrupt,
                      "the field at offset 0 needs 2147483648 bytes behind offset 6, but the file "
                      "has only 2 left; the file is truncated or damaged"},
        MalformedCase{"value_of_2_to_the_63", BlockHeader(1, kHuge) + "ab", kCorrupt,
                      "needs 9223372036854775808 bytes"},
        MalformedCase{"value_of_2_to_the_64_less_1", BlockHeader(1, UINT64_MAX) + "ab", kCorrupt,
                      "needs 18446744073709551615 bytes"},
        MalformedCase{"second_value_beyond_the_file", Valid("v") + BlockHeader(1, 99) + "ab",
                      kCorrupt, "the field at offset 19 needs 99 bytes behind offset 21"},
        MalformedCase{"tag_beyond_its_value", BlockField(1, BlockHeader(1, 3) + "ab") + Valid("v"),
                      kCorrupt,
                      "Value at offset 0: the field at offset 2 needs 3 bytes behind offset 4, but "
                      "its message has only 2 left"},
        MalformedCase{"tensor_beyond_its_value",
                      BlockField(1, BlockField(1, "w") + BlockHeader(2, 30)) + std::string(30, 'x'),
                      kCorrupt,
                      "parameter \"w\" at offset 0: the field at offset 5 needs 30 bytes"},
        MalformedCase{"content_beyond_its_tensor",
                      Build({.content = BlockHeader(3, 9) + "ab"}) + Valid("v"), kCorrupt,
                      "parameter \"w\" at offset 0: the field at offset 15 needs 9 bytes"},
        MalformedCase{"content_of_2_to_the_64_less_1",
                      Build({.content = BlockHeader(3, UINT64_MAX) + "ab"}), kCorrupt,
                      "needs 18446744073709551615 bytes"},
        MalformedCase{"packed_dims_beyond_their_tensor",
                      Build({.content = BlockHeader(1, 5) + "ab"}), kCorrupt, "needs 5 bytes"},
        MalformedCase{"length_that_is_padded", Varint(10) + Varint(5, 6) + "ab", kCorrupt,
                      "the length at offset 1 takes 6 bytes for the number 5"},
        MalformedCase{"length_that_ends_with_the_file", Valid("v") + "\x0a\x80", kCorrupt,
                      "the number at offset 20 goes on beyond the end of its message, offset 21"},
        MalformedCase{"length_of_11_bytes", "\x0a" + std::string(11, '\x80') + Valid("v"), kCorrupt,
                      "the number at offset 1 has more than 10 bytes"}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    Wire, CheckpointMalformedTest,
    testing::Values(
        MalformedCase{"key_of_6_bytes", Varint(10, 6) + "\x01x", kCorrupt,
                      "the number at offset 0 has more than 5 bytes"},
        MalformedCase{"dim_of_11_bytes",
                      Build({.dims = Key(1, 0) + std::string(10, '\xff') + "\x01"}), kCorrupt,
                      "parameter \"w\" at offset 0: the number at offset 8 has more than 10"},
        MalformedCase{"dim_that_ends_with_its_tensor", Build({.content = Key(1, 0) + "\x80"}),
                      kCorrupt, "goes on beyond the end of its message"},
        MalformedCase{"packed_dim_that_ends_with_its_list", Build({.dims = BlockField(1, "\x80")}),
                      kCorrupt, "goes on beyond the end of its message"},
        MalformedCase{"field_number_0", Valid("v") + "\x02\x01x", kCorrupt,
                      "field number 0 at offset 19"},
        MalformedCase{"zeros", Valid("v") + std::string(100, '\0'), kCorrupt,
                      "field number 0 at offset 19"},
        MalformedCase{"wire_type_6", Valid("v") + Key(9, 6), kCorrupt,
                      "field 9 at offset 19 has wire type 6"},
        MalformedCase{"wire_type_7", Build({.tag = BlockField(1, "w") + Key(1, 7)}), kCorrupt,
                      "parameter \"w\" at offset 0: field 1 at offset 5 has wire type 7"},
        MalformedCase{"fixed_64_cut", Valid("v") + Key(9, 1) + "1234567", kCorrupt,
                      "needs 8 bytes behind offset 20, but the file has only 7 left"},
        MalformedCase{"fixed_32_cut", Valid("v") + Key(9, 5) + "123", kCorrupt, "needs 4 bytes"},
        MalformedCase{"group_that_stays_open", Valid("v") + Key(9, 3) + NumberField(1, 1), kCorrupt,
                      "group 9 is still open at the end of its message, offset 22"},
        MalformedCase{"group_that_leaves_its_message",
                      Build({.content = BlockField(3, "ab") + Key(9, 3)}) + Key(9, 4), kCorrupt,
                      "group 9 is still open"},
        MalformedCase{"group_that_ends_as_another", Key(9, 3) + Key(8, 4), kCorrupt,
                      "end of group 8 at offset 1, but group 9 is open"},
        MalformedCase{"group_that_never_began", Valid("v") + Key(9, 4), kCorrupt,
                      "end of group 9 at offset 19, but no group is open"},
        MalformedCase{"a_MiB_of_groups", std::string(1 << 20, Key(9, 3)[0]), kCorrupt,
                      "groups at offset 100 are nested more than 100 deep"},
        MalformedCase{"text", "A checkpoint this is not, however long one looks at it.", kCorrupt,
                      "not a MindSpore checkpoint"}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    Values, CheckpointMalformedTest,
    testing::Values(
        MalformedCase{"without_tag", Build({.tag = ""}), kCorrupt,
                      "Value at offset 0: it has no tag"},
        MalformedCase{"with_a_number_for_tag", Build({.tag = NumberField(1, 5)}), kCorrupt,
                      "it has no tag"},
        MalformedCase{
            "without_tensor", BlockField(1, BlockField(1, "w")), kCorrupt,
            "parameter \"w\" at offset 0: expected a tensor or a MapTensor, found another value"},
        MalformedCase{"without_type", Build({.type = ""}), kCorrupt,
                      "parameter \"w\" at offset 0: its tensor has no tensor_type"},
        MalformedCase{"without_content", Build({.content = ""}), kCorrupt, "no tensor_content"},
        MalformedCase{"with_a_tag_of_65537_bytes", Valid(std::string(65537, 't')), kCorrupt,
                      "its tag has 65537 bytes, but at most 65536 are accepted"},
        MalformedCase{"with_65_dims", TensorValue("w", "Int8", std::vector<int64_t>(65, 1), "x"),
                      kCorrupt, "its tensor has 65 dims, but at most 64"},
        MalformedCase{"with_a_million_dims",
                      TensorValue("w", "Int8", std::vector<int64_t>(1'000'000, 1), "x"), kCorrupt,
                      "its tensor has 1000000 dims"},
        MalformedCase{"with_a_type_of_100000_bytes",
                      Build({.type = BlockField(2, std::string(100'000, 'I'))}), kCorrupt,
                      "its tensor_type has 100000 bytes"},
        MalformedCase{
            "map_of_two_tensors",
            MapValue("m",
                     {TensorMessage("int32", {1}, "kkkk"), TensorMessage("int32", {1}, "vvvv")}),
            kCorrupt, "parameter \"m\" at offset 0: a MapTensor of 2 tensors; expected 3"},
        MalformedCase{"map_of_a_thousand_tensors",
                      MapValue("m", std::vector<std::string>(1000, TensorMessage("int8", {}, "x"))),
                      kCorrupt, "a MapTensor of 1000 tensors"},
        MalformedCase{"map_without_type",
                      MapValue("m", {TensorMessage("int8", {}, "x"), BlockField(3, "x"),
                                     TensorMessage("int8", {}, "x")}),
                      kCorrupt, "no tensor_type"}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    Tensors, CheckpointMalformedTest,
    testing::Values(
        MalformedCase{
            "dtype_unknown", TensorValue("w", "Float24", {2}, "abcdef"), kCorrupt,
            "parameter \"w\" at offset 0: unknown tensor_type \"Float24\"; expected a name "
            "as MindSpore writes it"},
        MalformedCase{"dtype_in_wrong_case", TensorValue("w", "float32", {1}, "abcd"), kCorrupt,
                      "unknown tensor_type \"float32\""},
        MalformedCase{"dtype_empty", TensorValue("w", "", {1}, "a"), kCorrupt,
                      "unknown tensor_type \"\""},
        MalformedCase{"dtype_of_control_characters", TensorValue("w", "\x1b[31m\n", {1}, "a"),
                      kCorrupt, "unknown tensor_type \"\\x1b[31m\\n\""},
        MalformedCase{"tag_of_control_characters", TensorValue("\x1b[31m\n", "Int8", {1}, "ab"),
                      kCorrupt, "parameter \"\\x1b[31m\\n\" at offset 0"},
        MalformedCase{
            "content_too_short",
            Valid("v") + TensorValue("dense.weight", "Float32", {16, 64}, std::string(2048, 'x')),
            kCorrupt,
            "parameter \"dense.weight\" at offset 19: 2048 content bytes, but dims [16, 64] "
            "of Float32 need 4096"},
        MalformedCase{"content_too_long", TensorValue("w", "Int8", {2}, "abc"), kCorrupt,
                      "3 content bytes, but dims [2] of Int8 need 2"},
        MalformedCase{"content_of_a_scalar_missing", TensorValue("w", "Int64", {}, ""), kCorrupt,
                      "0 content bytes, but dims [] of Int64 need 8"},
        MalformedCase{"content_in_an_empty_tensor", TensorValue("w", "Int8", {3, 0}, "a"), kCorrupt,
                      "1 content bytes, but dims [3, 0] of Int8 need 0"},
        MalformedCase{"dims_0_with_two_elements", TensorValue("w", "Int16", {0}, "abcd"), kCorrupt,
                      "4 content bytes, but dims [0] of Int16 need 0, or 2 for a scalar"},
        MalformedCase{"dims_0_0_with_one_element", TensorValue("w", "Int8", {0, 0}, "a"), kCorrupt,
                      "dims [0, 0] of Int8 need 0"},
        MalformedCase{"dim_negative", TensorValue("w", "Int8", {2, -3}, ""), kCorrupt,
                      "dims [2, -3] of Int8, but no size may be negative"},
        MalformedCase{"dims_negative_twice", TensorValue("w", "Int8", {-1, -2}, "ab"), kCorrupt,
                      "no size may be negative"},
        MalformedCase{
            "dims_beyond_63_bits", TensorValue("w", "Int8", {int64_t{1} << 62, 2}, ""), kCorrupt,
            "dims [4611686018427387904, 2] of Int8 make more bytes than 63 bits can count"},
        MalformedCase{"dims_that_wrap_to_0",
                      TensorValue("w", "Int8", {int64_t{1} << 32, int64_t{1} << 32}, ""), kCorrupt,
                      "63 bits"},
        MalformedCase{"dims_that_wrap_to_the_content",
                      TensorValue("w", "Int8", {int64_t{1} << 32, (int64_t{1} << 32) + 1, 1}, ""),
                      kCorrupt, "63 bits"},
        MalformedCase{"dims_that_overflow_before_a_0",
                      TensorValue("w", "Int8", {int64_t{1} << 62, int64_t{1} << 62, 0}, ""),
                      kCorrupt, "63 bits"},
        MalformedCase{"dims_that_overflow_behind_a_0",
                      TensorValue("w", "Int8", {0, int64_t{1} << 62, int64_t{1} << 62}, ""),
                      kCorrupt, "63 bits"},
        MalformedCase{"dims_whose_bytes_overflow_beside_a_0",
                      TensorValue("w", "Float32", {int64_t{1} << 62, 0}, ""), kCorrupt, "63 bits"},
        MalformedCase{"string_with_dims", TensorValue("note", "str", {2}, "abcdabcd"), kCorrupt,
                      "parameter \"note\" at offset 0: dims [2] of str; expected [0]"},
        MalformedCase{"string_of_half_a_code_point", TensorValue("note", "str", {0}, "abcdef"),
                      kCorrupt, "6 content bytes of str; expected UTF-32 code points of 4 bytes"},
        MalformedCase{"map_of_unknown_type", Map("m", "Int32"), kCorrupt,
                      "unknown tensor_type \"Int32\" in a MapTensor"},
        MalformedCase{"map_whose_content_does_not_fit", Map("m", "int32", 2), kCorrupt,
                      "4 content bytes in a MapTensor, but dims [2] of float32 need 8"},
        MalformedCase{"map_of_negative_dims", Map("m", "int32", -1), kCorrupt,
                      "dims [-1] of float32, but no size may be negative"}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    Parts, CheckpointMalformedTest,
    testing::Values(
        MalformedCase{
            "dims_differ",
            TensorValue("w", "Int8", {2, 3}, "abc") + TensorValue("w", "Int8", {3, 2}, "def"),
            kCorrupt,
            "parameter \"w\" at offset 22: part of the tensor at offset 0, but with dims [3, "
            "2] of Int8; expected [2, 3] of Int8"},
        MalformedCase{"dtypes_differ",
                      TensorValue("w", "Int8", {6}, "abc") + TensorValue("w", "UInt8", {6}, "def"),
                      kCorrupt, "but with dims [6] of UInt8; expected [6] of Int8"},
        MalformedCase{"together_too_short",
                      TensorValue("w", "Int8", {6}, "abc") + TensorValue("w", "Int8", {6}, "de"),
                      kCorrupt,
                      "5 content bytes in 2 adjacent Values, but dims [6] of Int8 need 6"},
        MalformedCase{"a_whole_tensor_twice", Valid("w") + Valid("w"), kCorrupt,
                      "4 content bytes in 2 adjacent Values, but dims [2] of Int8 need 2"},
        MalformedCase{"map_behind_tensor", Valid("w") + Map("w"), kCorrupt,
                      "a MapTensor, but the Value of this tag before it is a tensor"},
        MalformedCase{"tensor_behind_map", Map("w") + Valid("w"), kCorrupt,
                      "a tensor, but the Value of this tag before it is a MapTensor"},
        MalformedCase{"map_types_differ", Map("m", "int32") + Map("m", "uint32"), kCorrupt,
                      "of type \"uint32\" for \"int32\""},
        MalformedCase{"tag_twice_apart", Valid("w") + Valid("v") + Valid("w"), kCorrupt,
                      "parameter \"w\" at offset 38: the same tag occurs at offset 0, with others "
                      "in between"},
        MalformedCase{
            "parts_with_another_in_between",
            TensorValue("w", "Int8", {4}, "ab") + Valid("v") + TensorValue("w", "Int8", {4}, "cd"),
            kCorrupt, "2 content bytes, but dims [4] of Int8 need 4"}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    Files, CheckpointMalformedTest,
    testing::Values(
        MalformedCase{"empty", "", kCorrupt,
                      "expected a .ckpt or safetensors checkpoint, found an empty file (0 bytes)"},
        MalformedCase{"of_unknown_fields_alone", NumberField(2, 1) + BlockField(3, "x"), kCorrupt,
                      "no parameter in its 5 bytes"},
        MalformedCase{"strategy",
                      NumberField(1, 1) + BlockField(3, BlockField(1, "w") + BlockField(2, "")),
                      kCorrupt, "may be a strategy file"},
        MalformedCase{"strategy_in_json", "{\"current_stage\": 0}", kCorrupt,
                      "found JSON, perhaps a strategy file"},
        MalformedCase{"trailer_behind_no_parameter", BlockField(3, "") + CrcTrailer(0), kCorrupt,
                      "no parameter in its "},
        MalformedCase{"trailer_of_more_than_32_bits", Valid("w") + CrcTrailer(uint64_t{1} << 32),
                      kCorrupt, "the number in the CRC trailer exceeds 32 bits"},
        MalformedCase{"trailer_before_the_end", Valid("w") + CrcTrailer(1) + "x", kCorrupt,
                      "at offset"},
        MalformedCase{"trailer_cut", Valid("w") + CrcTrailer(1).substr(0, 16), kCorrupt,
                      "at offset"},
        MalformedCase{"encrypted", "\xd8\x5e\x3a\x7f and so on", StatusCode::kUnsupported,
                      "the checkpoint is encrypted (AES-GCM)"}),
    CaseName);

// What MindSpore writes with a CRC for a rank without parameters.
TEST(CheckpointMalformedBaseTest, ATrailerAloneIsAFileWithoutParameters) {
  const auto index = IndexBytes(CrcTrailer(0));
  ASSERT_TRUE(index.ok()) << index.status().message();
  EXPECT_TRUE(index->arrays().empty());
}

// A file that ends too early is refused, unless it ends between two parameters.
TEST(CheckpointTruncatedTest, EveryLengthOfASmallFile) {
  std::string bytes;
  std::vector<size_t> whole;
  const std::vector<std::string> values = {
      TensorValue("dense.weight", "Float32", {4, 8}, std::string(128, 'w')),
      TensorValue("note", "str", {0}, std::string(16, '\0')),
      Map("map"),
      TensorValue("cut", "Int8", {300}, std::string(150, 'a')) +
          TensorValue("cut", "Int8", {300}, std::string(150, 'b')),
      TensorValue("empty", "Int8", {0, 2}, ""),
      TensorValue("step", "Int64", {}, "12345678")};
  for (const std::string& value : values) {
    bytes += value;
    whole.push_back(bytes.size());
  }
  for (size_t length = 0; length <= bytes.size(); ++length) {
    SCOPED_TRACE(length);
    const auto index = IndexBytes(bytes.substr(0, length));
    const auto end = std::find(whole.begin(), whole.end(), length);
    ASSERT_EQ(index.ok(), end != whole.end());
    if (index.ok()) {
      EXPECT_EQ(index->arrays().size(), static_cast<size_t>(end - whole.begin()) + 1);
    } else {
      EXPECT_EQ(index.status().code(), kCorrupt);
      EXPECT_THAT(index.status().message(), testing::MatchesRegex("net.ckpt: .*(offset|empty).*"));
    }
  }
}

}  // namespace
}  // namespace reshard::checkpoint_malformed_test
