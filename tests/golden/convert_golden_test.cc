// Conversions that MindSpore made (README.md here): the same bytes out of Convert.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reshard/convert.h"
#include "reshard/strategy.h"
#include "tests/support/folder_contents.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_tensor.h"
#include "tests/support/view_check.h"

namespace reshard::convert_golden_test {
namespace {

namespace fs = std::filesystem;
using testing::IsSubsetOf;

const fs::path kData = fs::path(RESHARD_TESTS_DIR) / "golden" / "data";

// The differing files only: whole contents would make messages of megabytes.
void ExpectSameFiles(const FolderContents& found, const FolderContents& expected) {
  for (const auto& [path, bytes] : expected) {
    const auto file = found.find(path);
    if (file == found.end()) {
      ADD_FAILURE() << path << " is missing";
    } else if (file->second != bytes) {
      const size_t first = static_cast<size_t>(
          std::mismatch(bytes.begin(), bytes.end(), file->second.begin(), file->second.end())
              .first -
          bytes.begin());
      ADD_FAILURE() << path << ": expected " << bytes.size() << " bytes, found "
                    << file->second.size() << ", the first difference at byte " << first;
    }
  }
  for (const auto& file : found) {
    if (!expected.contains(file.first)) ADD_FAILURE() << file.first << " is not expected";
  }
}

// Converts into a new folder and expects its outputs, and one manifest beside them.
void ExpectConverts(ConvertOptions options, const FolderContents& expected,
                    const std::string& manifest = "manifest.json") {
  const TemporaryFolder folder(MemoryFolder());
  options.target.folder = folder.path() / "target";
  const auto report = Convert(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(fs::exists(fs::path(options.target.folder) / manifest));
  ExpectSameFiles(ReadOutputs(options.target.folder), expected);
  EXPECT_EQ(report->files.size(), expected.size());
  for (const ConvertReport::File& file : report->files) {
    ASSERT_TRUE(expected.contains(file.path)) << file.path;
    EXPECT_EQ(file.size, expected.at(file.path).size());
  }
  ExpectViewHasFiles(options);
}

// A source folder that has links to the files of some ranks only.
void LinkRanks(const fs::path& source, const std::vector<int64_t>& ranks, const fs::path& folder) {
  for (const int64_t rank : ranks) {
    const std::string name = "rank_" + std::to_string(rank);
    fs::create_directories(folder);
    fs::create_directory_symlink(source / name, folder / name);
  }
}

// One of data/convert.
class ConvertGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  ConvertGoldenTest()
      : folder_(kData / "convert" / GetParam()),
        case_(nlohmann::json::parse(ReadFile(folder_ / "case.json"))) {}

  ConvertOptions Options() const {
    ConvertOptions options;
    options.source.path = folder_ / "src";
    options.source.strategy = CheckedStrategy("src_strategy");
    options.target.strategy = CheckedStrategy("dst_strategy");
    options.target.prefix = case_.at("prefix");
    return options;
  }

  FolderContents Expected() const { return ReadFolder(folder_ / "expected"); }

  // MindSpore's list of source ranks for a target rank.
  std::vector<int64_t> MindSporeRanks(size_t rank) const {
    return case_.at("mindspore_rank_lists").at(rank);
  }

  const fs::path folder_;
  const nlohmann::json case_;

 private:
  std::string CheckedStrategy(const char* side) const {
    const nlohmann::json& name = case_.at(side);
    return name.is_null() ? "" : (folder_ / name.get<std::string>()).string();
  }
};

TEST_P(ConvertGoldenTest, OutputsAreMindSporesBytes) {
  const FolderContents expected = Expected();
  ASSERT_EQ(expected.size(), case_.at("dst_ranks").get<size_t>());
  ExpectConverts(Options(), expected);
}

// Every second parameter of MindSpore's outputs, under another name.
TEST_P(ConvertGoldenTest, ChosenAndRenamedParametersAreThoseOfItsOutputs) {
  ConvertOptions options = Options();
  std::set<std::string> names;
  for (const auto& file : Expected()) {
    for (const TestTensor& tensor : ReadTensors(folder_ / "expected" / file.first)) {
      names.insert(tensor.name);
    }
  }
  for (auto name = names.begin(); name != names.end(); ++name) {
    options.selection.renames.names.emplace(*name, "model." + *name);
    if (++name == names.end()) break;
    options.selection.exclude.push_back(*name);
  }
  FolderContents expected;
  for (const auto& file : Expected()) {
    std::vector<TestTensor> tensors;
    for (TestTensor& tensor : ReadTensors(folder_ / "expected" / file.first)) {
      const auto renamed = options.selection.renames.names.find(tensor.name);
      if (renamed == options.selection.renames.names.end()) continue;
      tensor.name = renamed->second;
      tensors.push_back(std::move(tensor));
    }
    expected[file.first] = EncodeCheckpoint(tensors);
  }
  ExpectConverts(options, expected);
}

TEST_P(ConvertGoldenTest, FoldersOfStageFilesGiveTheSame) {
  ConvertOptions options = Options();
  const bool source = fs::exists(folder_ / "src_stages");
  const bool target = fs::exists(folder_ / "dst_stages");
  if (source) options.source.strategy = folder_ / "src_stages";
  if (target) options.target.strategy = folder_ / "dst_stages";
  EXPECT_EQ(source, case_.at("src_stages") > 1);
  EXPECT_EQ(target, case_.at("dst_stages") > 1);
  if (source || target) ExpectConverts(options, Expected());
}

// One rank at a time, from a folder that has only the files of its least list.
TEST_P(ConvertGoldenTest, TheLeastRankListIsEnough) {
  const FolderContents expected = Expected();
  for (int64_t rank = 0; rank < case_.at("dst_ranks"); ++rank) {
    SCOPED_TRACE("target rank " + std::to_string(rank));
    ConvertOptions options = Options();
    const auto ranks = SourceRanks(rank, options.source.strategy, options.target.strategy);
    ASSERT_TRUE(ranks.ok()) << ranks.status().message();
    EXPECT_THAT(*ranks, IsSubsetOf(MindSporeRanks(static_cast<size_t>(rank))));
    EXPECT_TRUE(std::is_sorted(ranks->begin(), ranks->end()));
    const TemporaryFolder folder;
    LinkRanks(options.source.path, *ranks, folder.path() / "source");
    options.source.path = folder.path() / "source";
    options.selection.ranks = {rank};
    const std::string path = fmt::format("rank_{0}/{1}{0}.ckpt", rank, options.target.prefix);
    ExpectConverts(options, {{path, expected.at(path)}});
  }
}

std::vector<std::string> Cases() {
  std::vector<std::string> cases;
  for (const auto& entry : fs::directory_iterator(kData / "convert")) {
    cases.push_back(entry.path().filename());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases, ConvertGoldenTest, testing::ValuesIn(Cases()),
                         [](const auto& row) { return row.param; });

TEST(ConvertGoldenCasesTest, NoneIsMissing) { EXPECT_EQ(Cases().size(), 69U); }

// transform_checkpoint_by_rank, from a map of files.
TEST(ConvertGoldenApisTest, ByRank) {
  const fs::path data = kData / "apis" / "by_rank";
  const TemporaryFolder folder;
  FolderContents expected;
  for (int64_t rank = 0; rank < 4; ++rank) {
    folder.Write(fmt::format("rank_{}/net.ckpt", rank),
                 ReadFile(data / fmt::format("origin_rank{}.ckpt", rank)));
    expected[fmt::format("rank_{0}/net{0}.ckpt", rank)] =
        ReadFile(data / fmt::format("expected_rank{}.ckpt", rank));
  }
  ConvertOptions options;
  options.source.path = folder.path();
  options.source.strategy = data / "src_strategy.ckpt";
  options.target.strategy = data / "dst_strategy.ckpt";
  options.target.prefix = "net";
  ExpectConverts(options, expected);
  const auto lists = nlohmann::json::parse(ReadFile(data / "case.json")).at("mindspore_rank_lists");
  for (int64_t rank = 0; rank < 4; ++rank) {
    SCOPED_TRACE("target rank " + std::to_string(rank));
    const auto ranks = SourceRanks(rank, options.source.strategy, options.target.strategy);
    ASSERT_TRUE(ranks.ok()) << ranks.status().message();
    const std::vector<int64_t> mindspore = lists.at(std::to_string(rank));
    EXPECT_THAT(*ranks, IsSubsetOf(mindspore));
    const TemporaryFolder least;
    LinkRanks(folder.path(), *ranks, least.path() / "source");
    options.source.path = least.path() / "source";
    options.selection.ranks = {rank};
    const std::string path = fmt::format("rank_{0}/net{0}.ckpt", rank);
    ExpectConverts(options, {{path, expected.at(path)}});
    ConvertOptions by_map = options;
    by_map.source.path.clear();
    for (const int64_t needed : *ranks) {
      by_map.source.files[needed] = data / fmt::format("origin_rank{}.ckpt", needed);
    }
    ExpectConverts(by_map, {{path, expected.at(path)}});
  }
  options.source.path = data / "origin_rank{rank}.ckpt";
  options.selection.ranks.clear();
  ExpectConverts(options, expected);
}

// transform_checkpoints with the strategy of stage 1 of two.
TEST(ConvertGoldenApisTest, OneStageAlone) {
  const fs::path data = kData / "apis" / "by_stage";
  ConvertOptions options;
  options.source.path = data / "src";
  options.source.strategy = data / "src_strategy_1.ckpt";
  options.target.strategy = data / "dst_strategy.ckpt";
  options.target.prefix = "out";
  const FolderContents expected = ReadFolder(data / "expected");
  EXPECT_TRUE(expected.contains("rank_3/out3_part1.ckpt"));
  ExpectConverts(options, expected, "manifest_part1.json");
}

}  // namespace
}  // namespace reshard::convert_golden_test
