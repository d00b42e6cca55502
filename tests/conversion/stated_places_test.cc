// What source files state of their places, by their names or metadata, and who refuses what does
// not fit: convert, plan and merge, but nobody who reads single shards as they are.

#include "src/convert/stated_places.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "format/safetensors/sharding_info.h"
#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/convert.h"
#include "reshard/merge.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::stated_places_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

const ParameterLayout kRowsOf2Ranks = MakeLayout({2}, {{0, -1}});

TEST(RanksStatedTest, ByWordsOfTheirOwn) {
  for (const auto& [name, ranks] : std::vector<std::pair<std::string, std::vector<int64_t>>>{
           {"llama_rank_2-1_100.ckpt", {2}},
           {"llama_rank_2_1-1_100.ckpt", {2}},
           {"rank3.safetensors", {3}},
           {"net-rank_12.ckpt", {12}},
           {"rank_07-1_1.ckpt", {7}},
           {"rank_1_of_rank_2.ckpt", {1, 2}},
           {"llama-1_100.ckpt", {}},
           {"checkpoint_2.ckpt", {}},
           {"crank_2.ckpt", {}},
           {"rank_2b.ckpt", {}},
           {"rank_2.5.ckpt", {}},
           {"ranks_2.ckpt", {}},
           {"rank_-2.ckpt", {}},
           {"rank_.ckpt", {}},
           {"local_rank_2.ckpt", {}},
           {"llama_lora_rank_8-1_100.ckpt", {}},
           {"rank_99999999999999999999.ckpt", {}}}) {
    EXPECT_EQ(RanksStatedBy(name), ranks) << name;
  }
}

// Two ranks, whose files have the names that `name` gives them, with {} for the rank.
class RankNamesTest : public testing::Test {
 protected:
  RankNamesTest() : folder_({{"w", kRowsOf2Ranks}}, {}) {}

  void Write(const std::string& name, int64_t rank, int64_t place) {
    const TestTensor shard = MakeTensor("w", DType::kFloat32, {4, 3}, static_cast<uint64_t>(rank));
    folder_.folder().Write(
        fmt::format("source/rank_{}/{}", place, fmt::format(fmt::runtime(name), rank)),
        EncodeCheckpoint({shard}));
  }

  // Converts and plans, which end alike.
  Status Converted() {
    const Status planned = Plan(folder_.options()).status();
    const Status status = Convert(folder_.options()).status();
    EXPECT_EQ(status.message(), planned.message());
    return status;
  }

  ConversionFolder folder_;
};

TEST_F(RankNamesTest, AnotherRankThanTheFolderIsRefused) {
  Write("llama_rank_{}-1_100.ckpt", 0, 1);
  Write("llama_rank_{}-1_100.ckpt", 1, 0);
  const fs::path root = folder_.folder().path() / "source";
  const Status status = Converted();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), Naming("rank_0/llama_rank_1-1_100.ckpt", "rank 1", "rank 0",
                                       "1 more", "`source.files=RANK=FILE`"));
  // A pattern says where each rank's file lies, too.
  folder_.options().source.path = root / "rank_{rank}";
  EXPECT_EQ(Converted().code(), StatusCode::kMismatch);
  // One by one, they are taken as they are.
  folder_.options().source.path.clear();
  folder_.options().source.files = {{0, root / "rank_0/llama_rank_1-1_100.ckpt"},
                                    {1, root / "rank_1/llama_rank_0-1_100.ckpt"}};
  EXPECT_EQ(Converted().message(), "");
}

TEST_F(RankNamesTest, OneWordThatAgreesIsEnough) {
  Write("rank_9_rank_{}-1_100.ckpt", 0, 0);
  Write("rank_9_rank_{}-1_100.ckpt", 1, 1);
  EXPECT_EQ(Converted().message(), "");
}

TEST_F(RankNamesTest, NumbersThatAreNoRanksSayNothing) {
  Write("lora_rank_8-{}_100.ckpt", 1, 0);
  Write("lora_rank_8-{}_100.ckpt", 1, 1);
  EXPECT_EQ(Converted().message(), "");
}

// A safetensors file of Float32 tensors of one value each; `offsets` are those of its metadata
// DCP_SHARDING_INFO, none where it is empty.
struct Array {
  std::string name;
  Shape shape;
  std::string offsets;
};

std::string SafetensorsOf(const std::vector<Array>& arrays) {
  std::string header;
  std::string info;
  uint64_t end = 0;
  for (const Array& array : arrays) {
    const uint64_t begin = end;
    end += *ElementCount(array.shape) * 4;
    std::string shape = ToString(array.shape);
    header += fmt::format(R"(,"{}":{{"dtype":"F32","shape":{},"data_offsets":[{},{}]}})",
                          array.name, shape, begin, end);
    if (array.offsets.empty()) continue;
    info += fmt::format(R"({}\"{}\":{{\"saved_offsets\":{}}})", info.empty() ? "" : ",", array.name,
                        array.offsets);
  }
  const std::string metadata =
      info.empty() ? R"("format":"pt")"
                   : fmt::format(R"("DCP_VERSION":"1.0","DCP_SHARDING_INFO":"{{{}}}")", info);
  const std::string text = fmt::format(R"({{"__metadata__":{{{}}}{}}})", metadata, header);
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text +
         std::string(end, '\3');
}

// Takes a source of full tensors, or files to merge.
class PartsTest : public testing::Test {
 protected:
  PartsTest() { folder_.options().target.format = TargetFormat::kHuggingFace; }

  std::string Write(const std::string& name, const std::vector<Array>& arrays) {
    return folder_.folder().Write("in/" + name, SafetensorsOf(arrays));
  }

  // Expects that a conversion of `source` is refused and names `words`, and that `partial` allows
  // it.
  template <typename... Words>
  void ExpectPartial(const std::string& source, const Words&... words) {
    ConvertOptions& options = folder_.options();
    options.source.path = source;
    options.target.folder = folder_.folder().path() / fmt::format("out{}", ++outputs_);
    options.checks.partial = false;
    const Status status = Convert(options).status();
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.message();
    EXPECT_THAT(status.message(), Naming("`partial`", words...));
    EXPECT_EQ(Plan(options).status().message(), status.message());
    EXPECT_FALSE(fs::exists(options.target.folder));
    options.checks.partial = true;
    EXPECT_EQ(Convert(options).status().message(), "");
  }
  void ExpectWhole(const std::string& source) {
    ConvertOptions& options = folder_.options();
    options.source.path = source;
    options.target.folder = folder_.folder().path() / fmt::format("out{}", ++outputs_);
    options.checks.partial = false;
    EXPECT_EQ(Convert(options).status().message(), "");
  }

  Status Merged(bool segments, const std::vector<std::string>& files, bool partial = false) {
    MergeOptions options;
    options.segments = segments;
    options.files = files;
    options.output = folder_.folder().path() / fmt::format("merged{}.safetensors", ++outputs_);
    options.checks.partial = partial;
    return Merge(options).status();
  }

  std::string In(const std::string& name = "") const {
    return folder_.folder().path() / "in" / name;
  }

  ConversionFolder folder_;
  int outputs_ = 0;
};

TEST_F(PartsTest, OneOfSeveralFilesByItsName) {
  const std::string path = Write("model-00001-of-00002.safetensors", {{"w", {2, 2}, ""}});
  ExpectPartial(path, "model-00001-of-00002.safetensors", "one of 2");
  ExpectPartial(In(), "model-00001-of-00002.safetensors");  // as the only file of a folder
  Write("sole/model-00001-of-00001.safetensors", {{"w", {2, 2}, ""}});
  ExpectWhole(In("sole"));
  for (const std::string name : {"model-1-of-2", "model-00001-of-00002-b", "00001-of-00002"}) {
    ExpectWhole(Write(fmt::format("{0}/{0}.safetensors", name), {{"w", {2, 2}, ""}}));
  }
}

TEST_F(PartsTest, AnIndexThatNamesSome) {
  Write("model-00001-of-00003.safetensors", {{"a", {2, 2}, ""}});
  Write("model-00002-of-00003.safetensors", {{"b", {2, 2}, ""}});
  const auto write_index = [&](const std::string& words) {
    folder_.folder().Write("in/model.safetensors.index.json",
                           fmt::format(R"({{"weight_map": {{{}}}}})", words));
  };
  const std::string both =
      R"("a": "model-00001-of-00003.safetensors", "b": "model-00002-of-00003.safetensors")";
  write_index(both);
  ExpectPartial(In(), "only 2 are read (1-2)");
  Write("model-00003-of-00003.safetensors", {{"c", {2, 2}, ""}});
  ExpectPartial(In());  // it is not read
  write_index(both + R"(, "c": "model-00003-of-00003.safetensors")");
  ExpectWhole(In());
}

TEST_F(PartsTest, OfRankFolders) {
  const auto write = [&](int64_t rank, const std::string& name) {
    return folder_.folder().Write(
        fmt::format("in/rank_{}/{}", rank, name),
        EncodeCheckpoint({MakeTensor("w", DType::kFloat32, {4, 3}, static_cast<uint64_t>(rank))}));
  };
  folder_.options().source.strategy =
      folder_.folder().Write("s.ckpt", ProtobufStrategy(0, {{"w", kRowsOf2Ranks}}));
  const std::string first = write(0, "a-00001-of-00002.ckpt");
  const std::string second = write(1, "a-00001-of-00002.ckpt");
  ExpectPartial(In(), "a-00001-of-00002.ckpt");
  folder_.options().source.files = {{0, first}, {1, second}};
  ExpectPartial("", "a-00001-of-00002.ckpt");
  folder_.options().source.files.clear();
  fs::remove(second);
  write(1, "a-00002-of-00002.ckpt");
  ExpectWhole(In());
}

TEST_F(PartsTest, OfAMerge) {
  const auto part = [&](int number, const std::string& name) {
    return Write(fmt::format("p/m-0000{}-of-00003.safetensors", number), {{name, {2, 2}, ""}});
  };
  const std::string a = part(1, "a");
  const std::string c = part(3, "c");
  for (const std::vector<std::string>& files :
       std::vector<std::vector<std::string>>{{a, c}, {In("p")}}) {
    const Status status = Merged(true, files);
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_THAT(status.message(), Naming("one of 3", "only 2 are read (1, 3)", "`partial`"));
    EXPECT_EQ(Merged(true, files, true).message(), "");
  }
  part(2, "b");
  EXPECT_EQ(Merged(true, {In("p")}).message(), "");

  const auto slice = [&](int number) {
    return Write(fmt::format("s/m-0000{}-of-00002.safetensors", number), {{"w", {2, 2}, ""}});
  };
  const std::string other = Write("s/other.safetensors", {{"w", {2, 2}, ""}});
  EXPECT_EQ(Merged(false, {slice(1), other}).code(), StatusCode::kMismatch);
  EXPECT_EQ(Merged(false, {slice(1), slice(2)}).message(), "");
}

TEST_F(PartsTest, AShardOfAPyTorchSave) {
  const std::string name = "shard-00002-model-00001-of-00001.safetensors";
  const std::string second = Write("sharded/" + name, {{"w", {2, 2}, "[3, 0]"}});
  ExpectPartial(second, name);
  // Under any name, and the first of them, too, beside which others lie.
  ExpectPartial(Write("renamed.safetensors", {{"v", {2}, "[0]"}, {"w", {2, 2}, "[3, 0]"}}),
                "renamed.safetensors", "\"w\"", "[3, 0]");
  ExpectPartial(Write("empty.safetensors", {{"w", {0, 2}, "[3, 0]"}, {"v", {1}, "[0]"}}));
  const std::string first =
      Write("sharded/shard-00001-model-00001-of-00001.safetensors", {{"w", {3, 2}, "[0, 0]"}});
  ExpectPartial(first, "shard-00001", name);
  // The writer states it of full tensors, too.
  ExpectWhole(Write("whole/model-00001-of-00001.safetensors",
                    {{"w", {3, 2}, "[0, 0]"}, {"scalar", {}, "[]"}}));
  ExpectWhole(Write("alone/shard-00001-model-00001-of-00001.safetensors", {{"w", {3}, "[0]"}}));

  EXPECT_EQ(Merged(false, {first, second}).message(), "");
  EXPECT_EQ(Merged(false, {second, first}).code(), StatusCode::kMismatch);
  const std::string third =
      Write("sharded/shard-00003-model-00001-of-00001.safetensors", {{"w", {1, 2}, "[5, 0]"}});
  EXPECT_THAT(Merged(false, {first, third}).message(), HasSubstr("`partial`"));
  EXPECT_EQ(Merged(false, {first, second, third}).message(), "");
  // Columns, which are not joined along dimension 0.
  EXPECT_EQ(Merged(false, {Write("c/0.safetensors", {{"w", {2, 2}, "[0, 0]"}}),
                           Write("c/1.safetensors", {{"w", {2, 2}, "[0, 2]"}})})
                .code(),
            StatusCode::kMismatch);
  // Whoever reads a shard as it is.
  const auto opened = Checkpoint::Open(second);
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  ContentOptions digest;
  digest.source.path = second;
  EXPECT_TRUE(DigestCheckpoint(digest).ok());
  RecodeOptions recode;
  recode.source.path = second;
  recode.target.folder = folder_.folder().path() / "recoded";
  recode.target.format = TargetFormat::kCkpt;
  EXPECT_TRUE(Recode(recode).ok());
}

TEST_F(PartsTest, ShardsThatAStrategyPlacesHaveToCover) {
  folder_.options().source.strategy =
      folder_.folder().Write("s.ckpt", ProtobufStrategy(0, {{"w", kRowsOf2Ranks}}));
  Write("rank_0/net.safetensors", {{"w", {2, 2}, "[0, 0]"}});
  Write("rank_1/net.safetensors", {{"w", {2, 2}, "[2, 0]"}});
  ExpectWhole(In());
  Write("rank_1/net.safetensors", {{"w", {2, 2}, "[4, 0]"}});
  ExpectPartial(In(), "\"w\"", "[6, 2]");
  // Ends beyond 2^63.
  Write("rank_0/net.safetensors", {{"w", {2, 1}, "[0, 0]"}});
  Write("rank_1/net.safetensors", {{"w", {2, 1}, "[9223372036854775807, 0]"}});
  ExpectPartial(In(), "\"w\"", "[9223372036854775807, 1]");
}

TEST(ShardingInfoTest, IsParsed) {
  const auto parsed =
      ParseShardingInfo(R"({"w": {"saved_offsets": [2, 0]}, "s": {"saved_offsets": []}})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_THAT(*parsed, ElementsAre(Pair("s", IsEmpty()), Pair("w", ElementsAre(2, 0))));
  EXPECT_TRUE(ParseShardingInfo("{}").ok());
  for (const std::string text :
       {"", "x", "[]", "3", "null", R"({"w": 3})", R"({"w": [2]})", R"({"w": {"a": [2]}})",
        R"({"w": {"saved_offsets": [-1]}})", R"({"w": {"saved_offsets": [1.5]}})",
        R"({"w": {"saved_offsets": [[1]]}})", R"({"w": {"saved_offsets": [99999999999999999999]}})",
        R"({"w": {"saved_offsets": [1]}, "w": {"saved_offsets": [1]}})",
        R"({"w": {"saved_offsets": 1}})", R"({"w": {"saved_offsets": {}}})",
        R"({"w": {"saved_offsets": [{}, 1]}})",
        R"({"w": {"saved_offsets": [1], "saved_offsets": [2]}})",
        R"({"w": {"saved_offsets": [1]})"}) {
    EXPECT_EQ(ParseShardingInfo(text).status().code(), StatusCode::kCorrupt) << text;
  }
}

TEST_F(PartsTest, BrokenShardingInfoIsCorrupt) {
  const std::string path = Write("a.safetensors", {{"w", {2, 2}, "[-3, 0]"}});
  folder_.options().source.path = path;
  const Status status = Convert(folder_.options()).status();
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
  EXPECT_THAT(status.message(), Naming("a.safetensors", "DCP_SHARDING_INFO", "`partial`"));
  folder_.options().checks.partial = true;
  EXPECT_EQ(Convert(folder_.options()).status().message(), "");
}

}  // namespace
}  // namespace reshard::stated_places_test
