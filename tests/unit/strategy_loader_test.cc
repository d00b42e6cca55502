// Strategy files joined and loaded from folders.
#include "src/mindspore/strategy_loader.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/checkpoint_bytes.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"

namespace reshard::strategy_loader_test {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

const ParameterLayout kLayout = MakeLayout({2}, {{0}});

std::string Merged(const std::vector<StageFile>& files) {
  auto merged = MergeStageFiles("folder", files);
  EXPECT_TRUE(merged.ok()) << merged.status().message();
  return merged.ok() ? std::move(merged).value().bytes : "";
}

TEST(StrategyMergeTest, ProtobufIsAllStrategyItemsThenAllLayoutItems) {
  const std::vector<StageFile> files = {
      {"b", ProtobufStrategy(1, {{"y", kLayout}}), {}},
      {"a", ProtobufStrategy(0, {{"x", kLayout}, {"layer-norm", kLayout}}), {}}};
  EXPECT_EQ(Merged(files),
            NumberField(1, 1) + StrategyItemField("MatMul-op0", 0) +
                StrategyItemField("MatMul-op1", 1) + LayoutItemField("0-x", kLayout) +
                LayoutItemField("0-layer-norm", kLayout) + LayoutItemField("1-y", kLayout));
}

TEST(StrategyMergeTest, AParameterThatAFileListsTwiceStaysTwiceInProtobuf) {
  EXPECT_EQ(Merged({{"a", ProtobufStrategy(0, {{"x", kLayout}, {"x", kLayout}}), {}}}),
            NumberField(1, 1) + StrategyItemField("MatMul-op0", 0) +
                LayoutItemField("0-x", kLayout) + LayoutItemField("0-x", kLayout));
}

TEST(StrategyMergeTest, JsonIsWhatJsonDumpsWrites) {
  const std::string a =
      R"({"parallel_layout_item":{"x":{"dev_matrix":[2],"tensor_map":[0],"e":[ ]},"y":)"
      R"({"tensor_map":[0],"dev_matrix":[ 2 ]},"x":{"dev_matrix":[2],"tensor_map":[-1]}},)"
      R"("parallel_strategy_item":{"n":{"stage":0},"m":{"stage":0}},"other":{"z":[1]}})";
  const std::string b =
      R"({"parallel_strategy_item":{"o":{"stage":1},"n":{"stage":1,"é":"\/"}},)"
      R"("parallel_layout_item":{"x":{"dev_matrix":[2],"tensor_map":[0],"f":1.0}}})";
  EXPECT_EQ(Merged({{"b", b, {}}, {"a", a, {}}}),
            R"({"current_stage": 1, "parallel_strategy_item": {"n": {"stage": 1, "\u00e9": "/"}, )"
            R"("m": {"stage": 0}, "o": {"stage": 1}}, "parallel_layout_item": )"
            R"({"0-x": {"dev_matrix": [2], "tensor_map": [-1]}, )"
            R"("0-y": {"tensor_map": [0], "dev_matrix": [2]}, )"
            R"("1-x": {"dev_matrix": [2], "tensor_map": [0], "f": 1.0}}})");
}

TEST(StrategyMergeTest, JsonNumbersAreThoseOfPython) {
  struct Row {
    const char* in;
    const char* out;
  };
  const Row rows[] = {
      {"0", "0"},
      {"-0", "0"},
      {"-17", "-17"},
      {"18446744073709551615", "18446744073709551615"},
      {"-9223372036854775809", "-9223372036854775809"},
      {"123456789012345678901234567890", "123456789012345678901234567890"},
      {"1.50", "1.5"},
      {"-0.0", "-0.0"},
      {"2e0", "2.0"},
      {"0.1", "0.1"},
      {"1E15", "1000000000000000.0"},
      {"1e16", "1e+16"},
      {"0.0001", "0.0001"},
      {"0.00001", "1e-05"},
      {"1.7976931348623157e308", "1.7976931348623157e+308"},
      {"5e-324", "5e-324"},
  };
  for (const Row& row : rows) {
    const std::string merged =
        Merged({{"a",
                 std::string(R"({"parallel_strategy_item": {"n": {"a": )") + row.in +
                     R"(}}, "parallel_layout_item": {"x": {"dev_matrix": [], "tensor_map": []}}})",
                 {}}});
    EXPECT_THAT(merged, HasSubstr(std::string(R"({"n": {"a": )") + row.out + "}}")) << row.in;
  }
}

TEST(StrategyMergeTest, JsonKeepsValuesOfAnyKindAndDepth) {
  constexpr size_t kDepth = 1'000'000;
  const std::string value = R"([{"a": [], "b": {}, "c": [1, null, [true, false]], "d": ""}, )" +
                            std::string(kDepth, '[') + std::string(kDepth, ']') + "]";
  const std::string merged =
      Merged({{"a",
               R"({"parallel_strategy_item": {"n": {"v": )" + value +
                   R"(}}, "parallel_layout_item": {"x": {"dev_matrix": [], "tensor_map": []}}})",
               {}}});
  EXPECT_EQ(merged, R"({"current_stage": 1, "parallel_strategy_item": {"n": {"v": )" + value +
                        R"(}}, "parallel_layout_item": {"0-x": {"dev_matrix": [], )"
                        R"("tensor_map": []}}})");
}

TEST(StrategyMergeTest, SkipsAMergedFileAndARepeatedStage) {
  const std::string stage = ProtobufStrategy(0, {{"x", kLayout}});
  const std::string merged = Merged({{"a", stage, {}}});
  const std::string other_node = StrategyItemField("other", 0) + LayoutItemField("x", kLayout);
  const auto again =
      MergeStageFiles("folder", {{"a", stage, {"copy"}}, {"m", merged, {}}, {"z", other_node, {}}});
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->bytes, merged);
  EXPECT_EQ(again->strategy.stages().size(), 1U);
  EXPECT_THAT(again->strategy.notes(),
              ElementsAre("folder: skipped 1 merged strategy file: m",
                          "folder: skipped 2 strategy files, the same as another of "
                          "their stage"));
}

TEST(StrategyMergeTest, RefusesWhatIsNoSetOfStages) {
  struct Row {
    const char* name;
    std::vector<StageFile> files;
    StatusCode code;
    std::string message;
  };
  const std::string x = ProtobufStrategy(0, {{"x", kLayout}});
  const Row rows[] = {
      {"a stage missing",
       {{"a", x, {}}, {"c", ProtobufStrategy(2, {{"y", kLayout}}), {}}},
       StatusCode::kMismatch,
       "folder: missing stage 1; found 0, 2"},
      {"two files of one stage",
       {{"a", x, {}}, {"b", ProtobufStrategy(0, {{"y", kLayout}}), {}}},
       StatusCode::kMismatch,
       "a and b are both of stage 0 but differ: only the first has \"x\""},
      {"merged already",
       {{"m", Merged({{"a", x, {}}}), {}}},
       StatusCode::kMismatch,
       "folder: expected the strategy files of the stages, found only merged ones"},
      {"no strategy item",
       {{"a", LayoutItemField("x", kLayout), {}}},
       StatusCode::kMismatch,
       "a: found no strategy item"},
      {"weights among them",
       {{"a", x, {}}, {"w", TensorValue("w", "Int8", {1}, "x"), {}}},
       StatusCode::kCorrupt,
       "w: expected a strategy file, found a MindSpore checkpoint (weights)"},
  };
  for (const Row& row : rows) {
    const auto merged = MergeStageFiles("folder", row.files);
    ASSERT_FALSE(merged.ok()) << row.name;
    EXPECT_EQ(merged.status().code(), row.code) << row.name;
    EXPECT_THAT(merged.status().message(), HasSubstr(row.message)) << row.name;
  }
}

const std::vector<NamedLayout> kFirst = {{"x", MakeLayout({2, 2}, {{1, -1}})}};
const std::vector<NamedLayout> kSecond = {{"y", MakeLayout({4}, {{0}})}};

void ExpectError(const Status& status, StatusCode code, const std::string& message) {
  EXPECT_EQ(status.code(), code) << message;
  EXPECT_THAT(status.message(), HasSubstr(message));
}

TEST(StrategyLoaderTest, LoadsAFileOfAnyNameAndEncoding) {
  const TemporaryFolder folder;
  for (const std::string& path : {folder.Write("a.json", ProtobufStrategy(3, kFirst)),
                                  folder.Write("b.ckpt", JsonStrategy(3, kFirst)),
                                  folder.Write("c", JsonStrategy(3, kFirst))}) {
    const auto strategy = LoadStrategy(path);
    ASSERT_TRUE(strategy.ok()) << strategy.status().message();
    EXPECT_EQ(strategy->path(), path);
    EXPECT_FALSE(strategy->is_pipeline());
    EXPECT_EQ(strategy->own_stage(), 3);
    EXPECT_THAT(strategy->stages()[0], ElementsAreArray(kFirst));
  }
}

TEST(StrategyLoaderTest, JoinsTheStageFilesOfAFolder) {
  const TemporaryFolder folder;
  folder.Write("ckpt_strategy_rank_0.ckpt", ProtobufStrategy(1, kSecond));
  folder.Write("ckpt_strategy_rank_1.ckpt", ProtobufStrategy(1, kSecond));
  folder.Write("z.json", ProtobufStrategy(0, kFirst));
  folder.Write(".hidden.ckpt", "garbage");
  folder.Write("group_info.pb", "garbage");
  folder.Write("readme", "garbage");
  folder.Write("below.ckpt/more.ckpt", "garbage");
  std::filesystem::create_symlink("nowhere", folder.path() / "link.ckpt");
  const auto strategy = LoadStrategy(folder.path().string());
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_TRUE(strategy->is_pipeline());
  EXPECT_EQ(strategy->path(), folder.path().string());
  ASSERT_EQ(strategy->stages().size(), 2U);
  EXPECT_THAT(strategy->stages()[0], ElementsAreArray(kFirst));
  EXPECT_EQ(strategy->stages()[0].path(), (folder.path() / "z.json").string());
  EXPECT_THAT(strategy->stages()[1], ElementsAreArray(kSecond));
  EXPECT_THAT(strategy->notes(),
              ElementsAre(folder.path().string() +
                          ": skipped 1 strategy file, the same as another of its stage"));
}

TEST(StrategyLoaderTest, JoinsJsonStagesToo) {
  const TemporaryFolder folder;
  folder.Write("0.json", JsonStrategy(0, kFirst));
  folder.Write("1.json", JsonStrategy(1, kSecond));
  const auto strategy = LoadStrategy(folder.path().string());
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_EQ(strategy->ranks(), 8);
}

TEST(StrategyLoaderTest, AMergedFileBesideItsStagesIsSkippedAndAloneIsTaken) {
  const TemporaryFolder folder;
  folder.Write("0.ckpt", ProtobufStrategy(0, kFirst));
  folder.Write("1.ckpt", ProtobufStrategy(1, kSecond));
  const auto merged = MergeStrategyFolder(folder.path().string());
  ASSERT_TRUE(merged.ok()) << merged.status().message();
  EXPECT_THAT(merged->strategy.notes(), IsEmpty());
  folder.Write("merged_ckpt_strategy.ckpt", merged->bytes);
  const auto again = MergeStrategyFolder(folder.path().string());
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->bytes, merged->bytes);
  EXPECT_THAT(again->strategy.notes(),
              ElementsAre(folder.path().string() + ": skipped 1 merged strategy file: "
                                                   "merged_ckpt_strategy.ckpt"));

  const TemporaryFolder alone;
  const std::string path = alone.Write("merged.ckpt", merged->bytes);
  const auto strategy = LoadStrategy(alone.path().string());
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_EQ(strategy->path(), path);
  EXPECT_EQ(strategy->stages().size(), 2U);
  std::vector<std::string> notes;
  const auto bytes = ReadStrategyBytes(alone.path().string(), notes);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(*bytes, merged->bytes);
  EXPECT_THAT(notes, IsEmpty());
}

TEST(StrategyLoaderTest, OneStageFileIsAPipelineOfOneStage) {
  const TemporaryFolder folder;
  folder.Write("0.ckpt", ProtobufStrategy(0, kFirst));
  const auto strategy = LoadStrategy(folder.path().string());
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_TRUE(strategy->is_pipeline());
  EXPECT_EQ(strategy->ranks(), 4);
}

TEST(StrategyLoaderTest, RejectsWhatIsNoStrategy) {
  const TemporaryFolder folder;
  const std::string base = folder.path().string();
  const std::string weights = folder.Write("w/w.ckpt", TensorValue("w", "Int8", {1}, "x"));
  std::filesystem::create_directory(folder.path() / "empty");
  folder.Write("mixed/a.ckpt", ProtobufStrategy(0, kFirst));
  folder.Write("mixed/b.json", JsonStrategy(1, kSecond));
  folder.Write("ranks/rank_0/net.ckpt", TensorValue("w", "Int8", {1}, "x"));
  folder.Write("later/1.ckpt", ProtobufStrategy(1, kFirst));
  struct Row {
    std::string path;
    StatusCode code;
    std::string message;
  };
  const Row rows[] = {
      {base + "/none", StatusCode::kNotFound,
       base + "/none: expected a strategy file or a folder with the strategy files of all stages, "
              "found nothing"},
      {base + "/empty", StatusCode::kNotFound,
       base + "/empty: expected a folder with the strategy files of all stages (*.ckpt or *.json), "
              "found none in it"},
      {base + "/ranks", StatusCode::kNotFound, "found none in it"},
      {base + "/mixed", StatusCode::kMismatch, "b.json is JSON and "},
      {base + "/later", StatusCode::kMismatch, base + "/later: missing stage 0"},
      {weights, StatusCode::kCorrupt, weights + ": expected a strategy file, found a MindSpore"},
      {base + "/w", StatusCode::kCorrupt,
       weights + ": expected a strategy file, found a MindSpore"},
      {"/dev/null", StatusCode::kCorrupt, "/dev/null: expected a regular file, found a device"},
  };
  for (const Row& row : rows) {
    ExpectError(LoadStrategy(row.path).status(), row.code, row.message);
  }
  ExpectError(MergeStrategyFolder(base + "/none").status(), StatusCode::kNotFound, "found nothing");
  ExpectError(MergeStrategyFolder(weights).status(), StatusCode::kNotFound,
              "expected a folder with the strategy files of all stages, found a file");
  ExpectError(MergeStrategyFolder(base + "/empty").status(), StatusCode::kNotFound,
              "found none in it");
  ExpectError(MergeStrategyFolder(base + "/mixed").status(), StatusCode::kMismatch,
              "b.json is JSON and ");
}

TEST(StrategyLoaderTest, HugeFilesAreToldByTheirHead) {
  const TemporaryFolder folder;
  constexpr uint64_t kSize = uint64_t{3} << 30;
  const std::string weights = folder.WriteSparse(
      "w.ckpt", kSize, 0, TensorValueHeader("w", "Int8", {1 << 30}, uint64_t{1} << 30));
  ExpectError(LoadStrategy(weights).status(), StatusCode::kCorrupt,
              "found a MindSpore checkpoint (weights)");
  const std::string zeros = folder.WriteSparse("zeros", kSize, 0, "");
  ExpectError(LoadStrategy(zeros).status(), StatusCode::kCorrupt,
              "expected a strategy file of at most 128.0 MiB, found one of 3.0 GiB");
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 1 << 20) << "KiB: the files were read";
}

}  // namespace
}  // namespace reshard::strategy_loader_test
