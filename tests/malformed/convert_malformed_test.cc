// Conversions with one thing wrong: the code, what the message says, and a target that stays as it
// was.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "tests/malformed/good_folder.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/folder_contents.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::convert_malformed_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr auto kInvalidArgument = StatusCode::kInvalidArgument;
constexpr auto kNotFound = StatusCode::kNotFound;
constexpr auto kCorrupt = StatusCode::kCorrupt;
constexpr auto kUnsupported = StatusCode::kUnsupported;
constexpr auto kMismatch = StatusCode::kMismatch;

struct MalformedCase {
  const char* name;
  std::function<void(GoodFolder&)> spoil;
  StatusCode code;
  std::vector<std::string> message;  // parts of it

  friend std::ostream& operator<<(std::ostream& out, const MalformedCase& row) {
    return out << row.name;
  }
};

void ExpectRefused(const ConvertOptions& options, const MalformedCase& row) {
  const auto converted = Convert(options);
  ASSERT_FALSE(converted.ok());
  const Status status = converted.status();
  EXPECT_EQ(StatusCodeName(status.code()), StatusCodeName(row.code));
  EXPECT_EQ(ExitCode(status.code()), row.code == kInvalidArgument ? 2 : 3);
  for (const std::string& part : row.message) EXPECT_THAT(status.message(), HasSubstr(part));
  for (const char c : status.message()) EXPECT_GE(static_cast<unsigned char>(c), ' ');
  const auto planned = Plan(options);
  EXPECT_EQ(planned.status().code(), status.code());
  EXPECT_EQ(planned.status().message(), status.message());
}

class ConvertMalformedTest : public testing::TestWithParam<MalformedCase> {};

TEST_P(ConvertMalformedTest, NothingIsMadeAtTheTarget) {
  GoodFolder folder;
  GetParam().spoil(folder);
  const FolderContents before = ReadFolder(folder.path());
  ExpectRefused(folder.options(), GetParam());
  EXPECT_EQ(ReadFolder(folder.path()), before);
  EXPECT_FALSE(fs::exists(folder.path() / "target"));
}

TEST_P(ConvertMalformedTest, WhatIsAtTheTargetStays) {
  GoodFolder folder;
  const auto good = Convert(folder.options());
  ASSERT_TRUE(good.ok()) << good.status().message();
  const FolderContents finished = ReadFolder(folder.path() / "target");
  ASSERT_EQ(finished.size(), 10U);  // files, part records, manifest and checksums
  GetParam().spoil(folder);
  folder.options().force = true;
  ExpectRefused(folder.options(), GetParam());
  EXPECT_EQ(ReadFolder(folder.path() / "target"), finished);
}

std::string CaseName(const testing::TestParamInfo<MalformedCase>& row) { return row.param.name; }

// Replaces the file of rank 1.
std::function<void(GoodFolder&)> Rank1(const std::string& bytes) {
  return [bytes](GoodFolder& folder) { folder.WriteRank(1, bytes); };
}

std::string GoodShard() { return EncodeCheckpoint({NaiveShard(kWeight, kRowsOf2, 1)}); }

INSTANTIATE_TEST_SUITE_P(
    Sources, ConvertMalformedTest,
    testing::Values(
        MalformedCase{
            "zero_bytes",  // a rank without parameters, whose layouts say otherwise
            Rank1(""),
            kMismatch,
            {"rows 4 to 7 of w: ", "into rank 1, but the file does not have the parameter"}},
        MalformedCase{"truncated_in_its_content",
                      Rank1(GoodShard().substr(0, GoodShard().size() - 1)),
                      kCorrupt,
                      {"rank_1/checkpoint_1.ckpt: ", "truncated or damaged"}},
        MalformedCase{"truncated_in_its_header",
                      Rank1(GoodShard().substr(0, 9)),
                      kCorrupt,
                      {"rank_1/checkpoint_1.ckpt: ", "truncated or damaged"}},
        MalformedCase{
            "content_that_does_not_match_dims",
            Rank1(TensorValue("w", "Float32", {4, 3}, std::string(44, 'x'))),
            kCorrupt,
            {"rank_1/checkpoint_1.ckpt: parameter \"w\" at offset 0: ", "44", "48", "[4, 3]"}},
        MalformedCase{"dims_that_overflow",
                      Rank1(TensorValue("w", "Float32", {int64_t{1} << 62, 3}, "x")),
                      kCorrupt,
                      {"rank_1/checkpoint_1.ckpt: parameter \"w\" at offset 0: ",
                       "[4611686018427387904, 3]"}},
        MalformedCase{"an_unknown_dtype",
                      Rank1(TensorValue("w", "Float5", {4, 3}, "x")),
                      kCorrupt,
                      {"rank_1/checkpoint_1.ckpt: parameter \"w\" at offset 0: ", "Float5"}},
        MalformedCase{"a_tag_twice_apart",
                      Rank1(GoodShard() + EncodeCheckpoint({MakeTensor("v", DType::kInt8, {})}) +
                            GoodShard()),
                      kCorrupt,
                      {"rank_1/checkpoint_1.ckpt: parameter \"w\" at offset "}},
        MalformedCase{"an_encrypted_file",
                      [](GoodFolder& folder) {
                        folder.WriteRank(1,
                                         ReadFile(fs::path(RESHARD_TESTS_DIR) /
                                                  "golden/data/apis/files/encrypted_AES-GCM.ckpt"));
                      },
                      kUnsupported,
                      {"rank_1/checkpoint_1.ckpt: the checkpoint is encrypted (AES-GCM)"}},
        MalformedCase{"no_folder",
                      [](GoodFolder& folder) { folder.options().source.path += "_gone"; },
                      kNotFound,
                      {"/source_gone"}},
        MalformedCase{"an_empty_folder",
                      [](GoodFolder& folder) { folder.RemoveRank(0), folder.RemoveRank(1); },
                      kNotFound,
                      {"/source: ", "rank_N"}},
        MalformedCase{"a_folder_without_checkpoints",
                      [](GoodFolder& folder) {
                        for (const int64_t rank : {0, 1}) {
                          fs::remove(folder.path() / "source" / RankPath(rank));
                        }
                      },
                      kNotFound,
                      {"/source: ", "in 2 rank folders: ranks 0-1"}},
        MalformedCase{"mixed_steps",
                      [](GoodFolder& folder) {
                        folder.RemoveRank(0);
                        folder.RemoveRank(1);
                        folder.folder().Write("source/rank_0/net-1_200.ckpt", GoodShard());
                        folder.folder().Write("source/rank_0/net-1_100.ckpt", GoodShard());
                        folder.folder().Write("source/rank_1/net-1_100.ckpt", GoodShard());
                      },
                      kMismatch,
                      {"/source: ", "-1_200 in rank 0", "-1_100 in rank 1", "-1_100"}},
        MalformedCase{
            "shards_of_unequal_shapes",
            Rank1(EncodeCheckpoint({MakeTensor("w", DType::kFloat32, {5, 3})})),
            kMismatch,
            {"rank_1/checkpoint_1.ckpt: parameter \"w\": ", "Float32 [10, 3]", "Float32 [8, 3]",
             "rank_0/checkpoint_0.ckpt: parameter \"w\"", "one checkpoint?"}},
        MalformedCase{"shards_of_unequal_shapes_that_go_as_they_are",
                      [](GoodFolder& folder) {
                        folder.TargetLayout(kRowsOf2);
                        folder.WriteRank(1, {MakeTensor("w", DType::kFloat32, {5, 3})});
                      },
                      kMismatch,
                      {"rank_1/checkpoint_1.ckpt: parameter \"w\": ", "[10, 3]", "[8, 3]"}},
        MalformedCase{"shards_of_unequal_dtypes",
                      [](GoodFolder& folder) {
                        folder.TargetLayout(kRowsOf2);
                        folder.WriteRank(1, {MakeTensor("w", DType::kInt32, {4, 3})});
                      },
                      kMismatch,
                      {"rank_1/checkpoint_1.ckpt: parameter \"w\": ", "Int32", "Float32"}},
        MalformedCase{
            "a_stage_without_a_file",
            [](GoodFolder& folder) {
              folder.SourceStrategy(ProtobufStrategy(1, {{"0-w", kRowsOf2}, {"1-v", kRowsOf2}}));
              folder.TargetStrategy(ProtobufStrategy(0, {{"w", kRowsOf4}, {"v", kRowsOf4}}));
            },
            kMismatch,
            {"no checkpoint for ranks 2-3, which ", "src.ckpt needs (stage 1, ", "\"v\""}},
        MalformedCase{"a_shard_that_is_a_string",
                      Rank1(TensorValue("w", "str", {0}, std::string("x\0\0\0", 4))),
                      kMismatch,
                      {"rank_1/checkpoint_1.ckpt: parameter \"w\": ", "Float32 [8, 3]", "str"}},
        MalformedCase{"one_file_with_a_source_strategy",
                      [](GoodFolder& folder) { folder.options().source.path += "/" + RankPath(0); },
                      kMismatch,
                      {"rank_0/checkpoint_0.ckpt", "src.ckpt", "rank_N"}}),
    CaseName);

// Both strategies are read in the same way: whatever is wrong is wrong on either side.
MalformedCase Both(const char* name, const std::string& bytes, StatusCode code,
                   std::vector<std::string> message) {
  return {name,
          [bytes](GoodFolder& folder) {
            folder.SourceStrategy(bytes);
            folder.TargetStrategy(bytes);
          },
          code, std::move(message)};
}

MalformedCase Target(const char* name, const std::string& bytes, StatusCode code,
                     std::vector<std::string> message) {
  return {name, [bytes](GoodFolder& folder) { folder.TargetStrategy(bytes); }, code,
          std::move(message)};
}

ParameterLayout Sharded(ParameterLayout layout, int64_t step, int64_t size) {
  layout.opt_weight_shard_step = step;
  layout.opt_weight_shard_size = size;
  return layout;
}

INSTANTIATE_TEST_SUITE_P(
    StrategyFiles, ConvertMalformedTest,
    testing::Values(
        Both("a_weight_file", GoodShard(), kCorrupt, {"src.ckpt: ", "checkpoint"}),
        Target("a_weight_file_as_target", GoodShard(), kCorrupt, {"dst.ckpt: ", "checkpoint"}),
        Both("an_empty_file", "", kCorrupt, {"src.ckpt: ", "empty"}),
        Target("an_empty_file_as_target", "", kCorrupt, {"dst.ckpt: ", "empty"}),
        Both("garbage", "This is no strategy.", kCorrupt, {"src.ckpt: "}),
        Target("truncated", ProtobufStrategy(0, {{"w", kRowsOf4}}).substr(0, 40), kCorrupt,
               {"dst.ckpt: "}),
        Target("json_that_ends_early", R"({"current_stage": 0, "parallel_layout_item": {"w":)",
               kCorrupt, {"dst.ckpt: "}),
        MalformedCase{"no_file",
                      [](GoodFolder& folder) {
                        folder.options().source.strategy =
                            folder.options().source.strategy.path() + "x";
                      },
                      kNotFound,
                      {"src.ckptx: "}},
        MalformedCase{"an_empty_strategy_folder",
                      [](GoodFolder& folder) {
                        folder.options().source.strategy = folder.path() / "strategies";
                        fs::create_directory(folder.options().source.strategy.path());
                      },
                      kNotFound,
                      {"/strategies: ", "*.ckpt or *.json"}},
        MalformedCase{"missing_stages",
                      [](GoodFolder& folder) {
                        folder.SourceStrategy(ProtobufStrategy(
                            1, {{"0-w", kRowsOf2}, {"2-v", kRowsOf2}, {"4-u", kRowsOf2}}));
                      },
                      kMismatch,
                      {"src.ckpt: missing stages 1, 3", "found 0, 2, 4"}},
        MalformedCase{"stages_that_disagree",
                      [](GoodFolder& folder) {
                        const std::string path = folder.folder().Write(
                            "strategies/a.ckpt", ProtobufStrategy(0, {{"w", kRowsOf2}}));
                        folder.folder().Write(
                            "strategies/b.ckpt",
                            ProtobufStrategy(0, {{"w", MakeLayout({2}, {{-1, 0}})}}));
                        folder.options().source.strategy = fs::path(path).parent_path();
                      },
                      kMismatch,
                      {"strategies/a.ckpt and ", "strategies/b.ckpt are both of stage 0 but differ",
                       "\"w\""}},
        MalformedCase{
            "stages_of_other_device_counts",
            [](GoodFolder& folder) {
              folder.SourceStrategy(ProtobufStrategy(1, {{"0-w", kRowsOf2}, {"1-v", kRowsOf4}}));
            },
            kMismatch,
            {"src.ckpt: ", "\"w\" has 2", "\"v\" has 4"}},
        MalformedCase{
            "a_stage_of_two_device_counts",
            [](GoodFolder& folder) {
              folder.SourceStrategy(ProtobufStrategy(0, {{"w", kRowsOf2}, {"v", kRowsOf4}}));
            },
            kMismatch,
            {"src.ckpt: ", "\"w\" has 2", "\"v\" has 4"}}),
    CaseName);

// Changes a layout of the side.
MalformedCase SourceLayout(const char* name, const ParameterLayout& layout, StatusCode code,
                           std::vector<std::string> message) {
  message.emplace_back("src.ckpt");
  return {name, [layout](GoodFolder& folder) { folder.SourceLayout(layout); }, code,
          std::move(message)};
}

MalformedCase TargetLayout(const char* name, const ParameterLayout& layout, StatusCode code,
                           std::vector<std::string> message) {
  message.emplace_back("dst.ckpt");
  return {name, [layout](GoodFolder& folder) { folder.TargetLayout(layout); }, code,
          std::move(message)};
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, ConvertMalformedTest,
    testing::Values(
        SourceLayout("a_tensor_map_of_other_dims", MakeLayout({2}, {{0, -1, -1}}), kMismatch,
                     {"parameter \"w\"", "[0, -1, -1] does not fit a tensor of 2 dimensions"}),
        TargetLayout("a_tensor_map_of_other_dims_as_target", MakeLayout({4}, {{0}, {-1}, {-1}}),
                     kMismatch,
                     {"parameter \"w\"", "[[0], [-1], [-1]] does not fit a tensor of 2"}),
        TargetLayout("an_axis_that_there_is_not", MakeLayout({4}, {{1, -1}}), kMismatch,
                     {"parameter \"w\"", "device axis 1", "[4] has 1 axes"}),
        SourceLayout("optimizer_shards_without_replicas", Sharded(kRowsOf2, 1, 2), kMismatch,
                     {"parameter \"w\"", "optimizer sharding", "no device axis free"}),
        TargetLayout("more_optimizer_shards_than_replicas",
                     Sharded(MakeLayout({2, 2}, {{0, -1}}), 2, 4), kMismatch,
                     {"parameter \"w\"", "optimizer sharding", "only 2 replicas"}),
        TargetLayout("rows_that_optimizer_shards_do_not_divide",
                     Sharded(MakeLayout({5}, {{-1, -1}}), 1, 5), kMismatch,
                     {"parameter \"w\"", "dimension 0 of the full shape [8, 3] has 8 elements",
                      "5 equal parts"}),
        TargetLayout("a_dimension_that_does_not_divide", MakeLayout({2}, {{-1, 0}}), kMismatch,
                     {"parameter \"w\"", "dimension 1 of the full shape [8, 3] has 3 elements",
                      "2 equal parts", "are the two strategies swapped?"}),
        SourceLayout("2_to_the_60_devices",
                     MakeLayout({int64_t{1} << 30, int64_t{1} << 30}, {{0, 1}}), kCorrupt,
                     {"parameter \"w\"", "1073741824"}),
        TargetLayout("2_to_the_60_devices_as_target",
                     MakeLayout(std::vector<int64_t>(60, 2), {{0, 1}}), kCorrupt,
                     {"parameter \"w\"", "devices"}),
        MalformedCase{"more_source_ranks_than_files",
                      [](GoodFolder& folder) {
                        folder.SourceLayout(MakeLayout({1 << 6, 1 << 6}, {{0, 1}}));
                        folder.TargetLayout(MakeLayout({1}, {{-1, -1}}));
                      },
                      kMismatch,
                      {"no checkpoint for ranks 2-4095, which ", "[256, 192] of w)"}},
        MalformedCase{"a_full_shape_beyond_63_bits",
                      [](GoodFolder& folder) {
                        folder.WriteRank(
                            0, EncodeCheckpoint({{"w", DType::kInt8, {int64_t{1} << 60, 0}, ""}}));
                        folder.SourceLayout(MakeLayout({16}, {{0, -1}}));
                      },
                      kMismatch,
                      {"parameter \"w\"",
                       "dimension 0 of 1152921504606846976 elements a shard "
                       "times 16 parts is too large"}}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    Options, ConvertMalformedTest,
    testing::Values(
        MalformedCase{"no_strategy",
                      [](GoodFolder& folder) {
                        folder.options().source.strategy = {};
                        folder.options().target.strategy = {};
                      },
                      kInvalidArgument,
                      {"`source.strategy`", "`target.strategy`"}},
        MalformedCase{"no_source",
                      [](GoodFolder& folder) { folder.options().source.path.clear(); },
                      kInvalidArgument,
                      {"source"}},
        MalformedCase{"a_prefix_with_a_slash",
                      [](GoodFolder& folder) { folder.options().target.prefix = "a/b"; },
                      kInvalidArgument,
                      {"the prefix \"a/b\""}},
        MalformedCase{"a_prefix_that_leaves",
                      [](GoodFolder& folder) { folder.options().target.prefix = ".."; },
                      kInvalidArgument,
                      {"the prefix \"..\""}},
        MalformedCase{
            "a_prefix_longer_than_a_file_name",
            [](GoodFolder& folder) { folder.options().target.prefix = std::string(201, 'p'); },
            kInvalidArgument,
            {"at most 200 bytes"}},
        MalformedCase{"a_prefix_with_control_characters",
                      [](GoodFolder& folder) { folder.options().target.prefix = "a\nb"; },
                      kInvalidArgument,
                      {"the prefix \"a\\nb\""}},
        MalformedCase{"a_rank_beyond_the_target",
                      [](GoodFolder& folder) {
                        folder.options().selection.ranks = {0, 4};
                      },
                      kInvalidArgument,
                      {"rank 4 ", "0 to 3"}},
        MalformedCase{"a_rank_below_0",
                      [](GoodFolder& folder) { folder.options().selection.ranks = {-1}; },
                      kInvalidArgument,
                      {"rank -1 ", "0 to 3"}},
        MalformedCase{"jobs_below_0",
                      [](GoodFolder& folder) { folder.options().run.jobs = -1; },
                      kInvalidArgument,
                      {"-1 jobs"}}),
    CaseName);

}  // namespace
}  // namespace reshard::convert_malformed_test
