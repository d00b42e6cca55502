// Shards of PyTorch's HuggingFaceStorageWriter with one thing wrong: a row for each rule of
// src/sharded. Whatever is wrong is found before a byte is written, and by inspection, too.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/convert.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/says.h"
#include "tests/support/temporary_folder.h"

namespace reshard::shards_malformed_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

// A safetensors file with such a header, and zeros behind it.
std::string FileOf(const std::string& info, const std::string& entries, size_t content,
                   const std::string& set = "") {
  std::string metadata = R"("format":"pt","DCP_VERSION":"1.0")";
  const auto add = [&](const std::string& key, const std::string& text) {
    if (text.empty()) return;
    metadata += fmt::format(",\"{}\":\"", key);
    for (const char c : text) {
      if (c == '"' || c == '\\') metadata += '\\';
      metadata += c;
    }
    metadata += '"';
  };
  add("DCP_SHARDING_INFO", info);
  add("reshard", set);
  const std::string header = fmt::format(R"({{"__metadata__":{{{}}},{}}})", metadata, entries);
  std::string bytes;
  for (size_t i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return bytes + header + std::string(content, '\0');
}

// "w" of [4, 3] in two shards of two rows.
struct Shards {
  std::string first_info = R"({"w": {"saved_offsets": [0, 0]}})";
  std::string first = R"("w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})";
  std::string first_set = "";
  std::string second_info = R"({"w": {"saved_offsets": [2, 0]}})";
  std::string second = R"("w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})";
  std::string second_set = "";
  std::map<std::string, std::string> others = {};  // further files
};

constexpr char kFirst[] = "shard-00001-model-00001-of-00001.safetensors";
constexpr char kSecond[] = "shard-00002-model-00001-of-00001.safetensors";

struct Row {
  std::string name;
  std::function<void(Shards&)> change;
  StatusCode code;
  std::vector<std::string> words;
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class ShardsMalformedTest : public testing::TestWithParam<Row> {
 protected:
  void Write(const Shards& shards) {
    work_.Write(std::string("in/") + kFirst,
                FileOf(shards.first_info, shards.first, 24, shards.first_set));
    work_.Write(std::string("in/") + kSecond,
                FileOf(shards.second_info, shards.second, 24, shards.second_set));
    for (const auto& [name, bytes] : shards.others) work_.Write("in/" + name, bytes);
  }

  Status Converted() {
    ConvertOptions options;
    options.source.path = work_.path() / "in";
    options.target.folder = work_.path() / "out";
    options.target.format = TargetFormat::kHuggingFace;
    return Convert(options).status();
  }

  const TemporaryFolder work_{MemoryFolder()};
};

using ShardsTest = ShardsMalformedTest;

TEST_F(ShardsTest, AreReadIfNothingIsWrong) {
  Write({});
  const Status status = Converted();
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_P(ShardsMalformedTest, IsRefused) {
  Shards shards;
  GetParam().change(shards);
  Write(shards);
  const Status status = Converted();
  EXPECT_EQ(status.code(), GetParam().code) << status.message();
  for (const std::string& word : GetParam().words) {
    EXPECT_THAT(status.message(), HasSubstr(word));
  }
  EXPECT_FALSE(fs::exists(work_.path() / "out"));
  EXPECT_EQ(ListRankFiles({.path = work_.path() / "in"}).status().message(), status.message());
}

const std::vector<Row> kRows = {
    {"NoInfo",
     [](Shards& s) { s.second_info = ""; },
     StatusCode::kCorrupt,
     {kSecond, "lacks the metadata DCP_SHARDING_INFO"}},
    {"InfoIsNotJson",
     [](Shards& s) { s.second_info = "{"; },
     StatusCode::kCorrupt,
     {kSecond, "DCP_SHARDING_INFO"}},
    {"KeyTwice",
     [](Shards& s) {
       s.second_info = R"({"w": {"saved_offsets": [2, 0]}, "w": {"saved_offsets": [2, 0]}})";
     },
     StatusCode::kCorrupt,
     {kSecond, "DCP_SHARDING_INFO"}},
    {"Negative",
     [](Shards& s) { s.second_info = R"({"w": {"saved_offsets": [-2, 0]}})"; },
     StatusCode::kCorrupt,
     {kSecond, "\"w\""}},
    {"Fraction",
     [](Shards& s) { s.second_info = R"({"w": {"saved_offsets": [2.0, 0]}})"; },
     StatusCode::kCorrupt,
     {kSecond, "\"w\""}},
    {"NotANumber",
     [](Shards& s) { s.second_info = R"({"w": {"saved_offsets": [NaN, 0]}})"; },
     StatusCode::kCorrupt,
     {kSecond}},
    {"LoneSurrogate",
     [](Shards& s) { s.second_info = R"({"\ud800": {"saved_offsets": [2, 0]}})"; },
     StatusCode::kCorrupt,
     {kSecond}},
    {"Deep",
     [](Shards& s) { s.second_info = std::string(100000, '[') + std::string(100000, ']'); },
     StatusCode::kCorrupt,
     {kSecond, "DCP_SHARDING_INFO"}},
    {"OtherDimensions",
     [](Shards& s) { s.second_info = R"({"w": {"saved_offsets": [2]}})"; },
     StatusCode::kCorrupt,
     {kSecond, "\"w\"", "[2, 3]", "[2]"}},
    {"Beyond63Bits",
     [](Shards& s) { s.second_info = R"({"w": {"saved_offsets": [9223372036854775807, 0]}})"; },
     StatusCode::kCorrupt,
     {kSecond, "\"w\"", "2^63"}},
    {"TooManyBytes",
     [](Shards& s) {
       s.second_info = R"({"w": {"saved_offsets": [4611686018427387904, 4611686018427387904]}})";
     },
     StatusCode::kCorrupt,
     {"\"w\"", "too many bytes"}},
    {"InfoLacksATensor",
     [](Shards& s) { s.second_info = R"({"v": {"saved_offsets": [2, 0]}})"; },
     StatusCode::kCorrupt,
     {kSecond, "\"w\""}},
    {"FileLacksATensor",
     [](Shards& s) {
       s.second_info = R"({"v": {"saved_offsets": [0]}, "w": {"saved_offsets": [2, 0]}})";
     },
     StatusCode::kCorrupt,
     {kSecond, "\"v\"", "not in the file"}},
    {"OtherDType",
     [](Shards& s) { s.second = R"("w":{"dtype":"I32","shape":[2,3],"data_offsets":[0,24]})"; },
     StatusCode::kMismatch,
     {kSecond, kFirst, "\"w\"", "Int32", "Float32"}},
    {"OtherNumberOfDimensions",
     [](Shards& s) {
       s.second = R"("w":{"dtype":"F32","shape":[6],"data_offsets":[0,24]})";
       s.second_info = R"({"w": {"saved_offsets": [2]}})";
     },
     StatusCode::kMismatch,
     {kSecond, kFirst, "\"w\""}},
    {"Hole",
     [](Shards& s) { s.second_info = R"({"w": {"saved_offsets": [3, 0]}})"; },
     StatusCode::kMismatch,
     {"\"w\": 3 of 15 elements", "box [2:3, 0:3]"}},
    {"Overlap",
     [](Shards& s) { s.second_info = R"({"w": {"saved_offsets": [1, 0]}})"; },
     StatusCode::kMismatch,
     {kFirst, kSecond, "\"w\"", "box [0:2, 0:3] overlaps box [1:3, 0:3]"}},
    {"OneBoxTwice",
     [](Shards& s) {
       s.others["shard-00003-model-00001-of-00001.safetensors"] =
           FileOf(s.second_info, s.second, 24);
     },
     StatusCode::kMismatch,
     {kSecond, "shard-00003-model-00001-of-00001", "\"w\"", "box [2:4, 0:3]", "an older save"}},
    {"OfMindSpore",
     [](Shards& s) {
       s.others[kSecond] = TensorValue("w", "Float32", {2, 3}, std::string(24, '\0'));
     },
     StatusCode::kCorrupt,
     {kSecond, "expected a safetensors file", "found a MindSpore checkpoint"}},
    {"NumberBeyond63Bits",
     [](Shards& s) {
       s.others["shard-9223372036854775808-model-00001-of-00001.safetensors"] =
           FileOf("", R"("a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})", 0);
     },
     StatusCode::kMismatch,
     {kFirst, "shard-9223372036854775808-model-00001-of-00001.safetensors"}},
    {"Packed",
     [](Shards& s) {
       s.second = R"("v":{"dtype":"F4","shape":[6,8],"data_offsets":[0,24]})";
       s.second_info = R"({"v": {"saved_offsets": [0, 0]}})";
     },
     StatusCode::kUnsupported,
     {kSecond, "\"v\""}},
    {"SetIsNotJson",
     [](Shards& s) { s.second_set = "x"; },
     StatusCode::kCorrupt,
     {kSecond, "metadata reshard"}},
    {"SetHasOtherMembers",
     [](Shards& s) { s.second_set = R"({"global_shapes": [3]})"; },
     StatusCode::kCorrupt,
     {kSecond, "metadata reshard"}},
    {"SetOfMoreFiles",
     [](Shards& s) { s.second_set = R"({"files": 3})"; },
     StatusCode::kMismatch,
     {kSecond, "one of 3 files", "2 are there"}},
    {"SetOfALargerTensor",
     [](Shards& s) { s.second_set = R"({"global_shapes": {"w": [6, 3]}, "files": 2})"; },
     StatusCode::kMismatch,
     {"\"w\": 6 of 18 elements", "box [4:6, 0:3]"}},
    {"SetOfASmallerTensor",
     [](Shards& s) { s.second_set = R"({"global_shapes": {"w": [3, 3]}, "files": 2})"; },
     StatusCode::kMismatch,
     {kSecond, "\"w\"", "box [2:4, 0:3]", "[3, 3]"}},
    {"SetOfOtherDimensions",
     [](Shards& s) { s.second_set = R"({"global_shapes": {"w": [12]}})"; },
     StatusCode::kMismatch,
     {"\"w\"", "[12]"}},
    {"SetOfAnotherTensor",
     [](Shards& s) { s.second_set = R"({"global_shapes": {"v": [2]}})"; },
     StatusCode::kMismatch,
     {"\"v\"", "in no shard"}},
    {"SetsThatDisagree",
     [](Shards& s) {
       s.first_set = R"({"global_shapes": {"w": [4, 3]}})";
       s.second_set = R"({"global_shapes": {"w": [5, 3]}})";
     },
     StatusCode::kMismatch,
     {kSecond, "\"w\"", "[4, 3]", "[5, 3]"}},
    {"HeaderLength",
     [](Shards& s) {
       s.others["shard-00003-model-00001-of-00001.safetensors"] = std::string(7, '\xff') + "\x7f{";
     },
     StatusCode::kCorrupt,
     {"shard-00003-model-00001-of-00001.safetensors"}},
    {"Zip",
     [](Shards& s) {
       s.others["shard-00003-model-00001-of-00001.safetensors"] = "PK\3\4" + std::string(60, '\0');
     },
     StatusCode::kCorrupt,
     {"shard-00003-model-00001-of-00001.safetensors", "zip archive", "object"}},
    {"Empty",
     [](Shards& s) { s.others["shard-00003-model-00001-of-00001.safetensors"] = ""; },
     StatusCode::kCorrupt,
     {"shard-00003-model-00001-of-00001.safetensors"}},
    {"OtherCountInNames",
     [](Shards& s) {
       s.others["shard-00001-model-00001-of-00002.safetensors"] =
           FileOf("", R"("a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})", 0);
     },
     StatusCode::kMismatch,
     {"shard-00001-model-00001-of-00001.safetensors",
      "shard-00001-model-00001-of-00002.safetensors", "not of one save"}},
    {"WholeFileBeside",
     [](Shards& s) {
       s.others["model-00001-of-00001.safetensors"] =
           FileOf("", R"("a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})", 0);
     },
     StatusCode::kMismatch,
     {kFirst, "model-00001-of-00001.safetensors"}},
    {"IndexBeside",
     [](Shards& s) { s.others["model.safetensors.index.json"] = "{}"; },
     StatusCode::kMismatch,
     {kFirst, "model.safetensors.index.json"}},
    {"RanksBeside",
     [](Shards& s) { s.others["rank_0/net.ckpt"] = ""; },
     StatusCode::kMismatch,
     {kFirst, "rank_0"}},
};

INSTANTIATE_TEST_SUITE_P(Rows, ShardsMalformedTest, testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

TEST_F(ShardsTest, APipeIsRefusedAndNotWaitedFor) {
  Write({});
  const fs::path path = work_.path() / "in" / "shard-00003-model-00001-of-00001.safetensors";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const Status status = Converted();
  EXPECT_EQ(status.code(), StatusCode::kCorrupt) << status.message();
  EXPECT_THAT(status.message(), HasSubstr("shard-00003"));
}

TEST_F(ShardsTest, WhatIsLeftOutNeedNotBeWhole) {
  Shards shards;
  shards.second = R"("v":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})";
  shards.second_info = R"({"v": {"saved_offsets": [1, 0]}})";
  Write(shards);
  EXPECT_THAT(Converted().message(), HasSubstr("\"v\": 3 of 9 elements"));
  ConvertOptions options;
  options.source.path = work_.path() / "in";
  options.target.folder = work_.path() / "out";
  options.target.format = TargetFormat::kHuggingFace;
  options.selection.exclude = {"v"};
  const auto report = Convert(options);
  EXPECT_TRUE(report.ok()) << report.status().message();
}

TEST_F(ShardsTest, ShardsMayLieInAFolderBelow) {
  Write({});
  fs::create_directory(work_.path() / "out of torch");
  fs::rename(work_.path() / "in", work_.path() / "out of torch" / "sharded");
  ConvertOptions options;
  options.source.path = work_.path() / "out of torch";
  options.target.folder = work_.path() / "out";
  options.target.format = TargetFormat::kCkpt;
  const auto report = Convert(options);
  EXPECT_TRUE(report.ok()) << report.status().message();
}

TEST_F(ShardsTest, NumbersMayHaveGapsWithAWarning) {
  Write({});
  fs::rename(work_.path() / "in" / kSecond,
             work_.path() / "in" / "shard-00005-model-00001-of-00001.safetensors");
  ConvertOptions options;
  options.source.path = work_.path() / "in";
  options.target.folder = work_.path() / "out";
  options.target.format = TargetFormat::kHuggingFace;
  const auto report = Convert(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings, testing::Contains(Says(WarningCode::kMissingRanks,
                                                       HasSubstr("no file of shards 2-4"))));
}

TEST_F(ShardsTest, TheLargestNumberIsOneOfAGap) {
  Write({});
  fs::rename(work_.path() / "in" / kSecond,
             work_.path() / "in" / "shard-9223372036854775807-model-00001-of-00001.safetensors");
  const Status status = Converted();
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(ShardsTest, AFileNumberThatIsLostIsNamed) {
  Write({});
  for (const std::string shard : {"1", "2"}) {
    fs::rename(work_.path() / "in" / (shard == "1" ? kFirst : kSecond),
               work_.path() / "in" /
                   fmt::format("shard-0000{0}-model-0000{0}-of-00003.safetensors", shard));
  }
  ConvertOptions options;
  options.source.path = work_.path() / "in";
  options.target.folder = work_.path() / "out";
  options.target.format = TargetFormat::kHuggingFace;
  const Status status = Convert(options).status();
  EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.message();
  EXPECT_THAT(status.message(), Naming("no file of number 00003 of 3", "`partial`"));
  EXPECT_FALSE(fs::exists(work_.path() / "out"));
  options.checks.partial = true;
  const auto report = Convert(options);
  EXPECT_TRUE(report.ok()) << report.status().message();
}

TEST_F(ShardsTest, NamesInTheFilesGetThoseOfTheMap) {
  Write({});
  ConvertOptions options;
  options.source.path = work_.path() / "in";
  options.source.name_map.names = {{"model.w", "w"}};
  options.target.folder = work_.path() / "out";
  options.target.format = TargetFormat::kCkpt;
  options.selection.include = {"model.*"};
  const auto report = Convert(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const auto made = Checkpoint::Open(work_.path() / "out" / report->files.front().path);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_NE(made->Find("model.w"), nullptr);
}

TEST_F(ShardsTest, AStrategyIsNotTaken) {
  Write({});
  ConvertOptions options;
  options.source.path = work_.path() / "in";
  options.source.strategy = work_.Write("s.json", R"({"current_stage": 0,
      "parallel_strategy_item": {}, "parallel_layout_item": {"w": {"dev_matrix": [2],
      "tensor_map": [0, -1], "opt_weight_shard_step": 0, "opt_weight_shard_size": 0}}})");
  options.target.folder = work_.path() / "out";
  options.target.format = TargetFormat::kCkpt;
  const Status status = Convert(options).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr(kFirst), HasSubstr("leave out the source strategy")));
}

}  // namespace
}  // namespace reshard::shards_malformed_test
