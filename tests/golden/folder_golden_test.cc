// Folders of full tensors (README.md here): unified folders of MindSpore, Hugging Face's, made of
// ranks and made into ranks.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/convert.h"
#include "reshard/verify.h"
#include "tests/support/folder_contents.h"
#include "tests/support/says.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_tensor.h"
#include "tests/support/view_check.h"

namespace reshard::folder_golden_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

const fs::path kFolders = fs::path(RESHARD_TESTS_DIR) / "golden" / "data" / "safetensors";

TargetFormat FormatOf(const std::string& name) {
  if (name == "ckpt") return TargetFormat::kCkpt;
  if (name == "unified") return TargetFormat::kUnified;
  return name == "huggingface" ? TargetFormat::kHuggingFace : TargetFormat::kSafetensors;
}

ConvertOptions OptionsOf(const fs::path& folder) {
  const json made = json::parse(ReadFile(folder / "case.json"));
  ConvertOptions options;
  options.source.path = folder / made.at("src").get<std::string>();
  if (made.contains("src_strategy")) {
    options.source.strategy = folder / made.at("src_strategy").get<std::string>();
  }
  if (made.contains("dst_strategy")) {
    options.target.strategy = folder / made.at("dst_strategy").get<std::string>();
  }
  options.target.format = FormatOf(made.at("format"));
  options.target.names = made.value("names", "");
  options.source.suffix = made.value("suffix", "");
  options.target.part_size = made.value("part_size", options.target.part_size);
  options.target.shard_size = made.value("shard_size", options.target.shard_size);
  options.selection.exclude = made.value("exclude", std::vector<std::string>());
  if (made.contains("name_map")) {
    options.source.name_map.names =
        json::parse(ReadFile(folder / made.at("name_map").get<std::string>()));
  }
  return options;
}

// The differing files only.
void ExpectSame(const FolderContents& found, const FolderContents& expected) {
  for (const auto& [path, bytes] : expected) {
    ASSERT_TRUE(found.contains(path)) << path << " is missing";
    EXPECT_TRUE(found.at(path) == bytes) << path << " differs";
  }
  EXPECT_EQ(found.size(), expected.size());
}

class FolderGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  const fs::path folder_ = kFolders / GetParam();
  const FolderContents expected_ = ReadFolder(folder_ / "expected");
};

TEST_P(FolderGoldenTest, OutputsAreTheOriginalsBytes) {
  const TemporaryFolder work(MemoryFolder());
  ConvertOptions options = OptionsOf(folder_);
  options.target.folder = work.path() / "target";
  const auto report = Convert(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ExpectSame(ReadOutputs(options.target.folder), expected_);
  ExpectViewHasFiles(options);
  const auto damage = Verify(options.target.folder);
  ASSERT_TRUE(damage.ok()) << damage.status().message();
  EXPECT_THAT(damage->damages, IsEmpty());
  ConversionSpec against;
  against.source = options.source;
  against.target = options.target;
  against.selection = options.selection;
  auto proved = VerifyAgainst(against);
  ASSERT_TRUE(proved.ok()) << proved.status().message();
  EXPECT_EQ(proved->files, report->files.size());
  EXPECT_THAT(proved->differences, IsEmpty());
  if (report->files.size() == 1) return;
  fs::remove(options.target.folder + "/" + report->files.back().path);
  proved = VerifyAgainst(against);
  ASSERT_TRUE(proved.ok()) << proved.status().message();
  EXPECT_EQ(proved->differences.size(), 1U);
}

TEST_P(FolderGoldenTest, SharesOfSeveralProcessesAreTheSame) {
  const TemporaryFolder work(MemoryFolder());
  ConvertOptions options = OptionsOf(folder_);
  options.target.folder = work.path() / "target";
  for (uint64_t shard = 0; shard < 3; ++shard) {
    options.shard = {shard, 3};
    const auto report = Convert(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
  }
  ExpectSame(ReadOutputs(options.target.folder), expected_);
}

INSTANTIATE_TEST_SUITE_P(Unified, FolderGoldenTest,
                         testing::Values("unified/case_000", "unified/case_001", "unified/case_002",
                                         "unified/case_003", "unified/case_004"));
INSTANTIATE_TEST_SUITE_P(Distributed, FolderGoldenTest,
                         testing::Values("distributed/case_000", "distributed/case_001",
                                         "distributed/case_002", "distributed/case_003",
                                         "distributed/case_004"));
INSTANTIATE_TEST_SUITE_P(HuggingFace, FolderGoldenTest,
                         testing::Values("hf/case_000", "hf/case_001", "hf/case_002",
                                         "hf/case_003"));

// Metadata of two keys is in no order: the library's differs from call to call.
FolderContents WithMetadataInOrder(FolderContents files) {
  const std::string other = R"({"remove_redundancy":"False","format":"ms"})";
  const std::string own = R"({"format":"ms","remove_redundancy":"False"})";
  for (auto& [path, bytes] : files) {
    const size_t place = bytes.find(other);
    if (place != std::string::npos) bytes.replace(place, other.size(), own);
  }
  return files;
}

TEST(RedundancyTest, PartsOfMarkedSourcesSayThatNoneIsRemoved) {
  const fs::path folder = kFolders / "redundancy" / "case_000";
  const TemporaryFolder work(MemoryFolder());
  ConvertOptions options = OptionsOf(folder);
  options.target.folder = work.path() / "target";
  const auto report = Convert(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ExpectSame(ReadOutputs(options.target.folder),
             WithMetadataInOrder(ReadFolder(folder / "expected")));
}

// A copy of a golden Hugging Face folder, to be damaged.
class HuggingFaceFolderTest : public testing::Test {
 protected:
  HuggingFaceFolderTest() {
    fs::copy(kFolders / "hf" / "case_003" / "hf", source_, fs::copy_options::recursive);
    index_ = json::parse(ReadFile(source_ / kIndex));
    options_.source.path = source_;
    options_.target.folder = work_.path() / "target";
    options_.target.format = TargetFormat::kUnified;
  }

  void WriteIndex() { std::ofstream(source_ / kIndex) << index_.dump(); }

  Status Failure() {
    const auto report = Convert(options_);
    EXPECT_FALSE(report.ok());
    EXPECT_FALSE(fs::exists(options_.target.folder));
    return report.status();
  }

  static constexpr const char* kIndex = "model.safetensors.index.json";
  const TemporaryFolder work_;
  const fs::path source_ = work_.path() / "source";
  json index_;
  ConvertOptions options_;
};

TEST_F(HuggingFaceFolderTest, ToUnifiedAndBackIsTheSameFolder) {
  ASSERT_TRUE(Convert(options_).ok());
  // Of the same order, so that the shards are those of one by order of names.
  ConvertOptions direct = options_;
  direct.target.format = TargetFormat::kHuggingFace;
  direct.target.folder = work_.path() / "direct";
  ASSERT_TRUE(Convert(direct).ok());
  ConvertOptions back = direct;
  back.source.path = options_.target.folder;
  back.target.folder = work_.path() / "back";
  ASSERT_TRUE(Convert(back).ok());
  ExpectSame(ReadOutputs(back.target.folder), ReadOutputs(direct.target.folder));
}

TEST_F(HuggingFaceFolderTest, AMissingFileIsNamed) {
  fs::remove(source_ / "model-00007-of-00010.safetensors");
  const Status status = Failure();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), HasSubstr("index.json: names 10 files, but 1 is missing: "
                                          "model-00007-of-00010.safetensors; complete the folder"));
}

TEST_F(HuggingFaceFolderTest, APathOutsideIsRefused) {
  index_["weight_map"].begin().value() = "../model.safetensors";
  WriteIndex();
  const Status status = Failure();
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("leads out of the folder"));
}

TEST_F(HuggingFaceFolderTest, ATensorThatItsFileLacksIsNamed) {
  index_["weight_map"]["no such tensor"] = "model-00001-of-00010.safetensors";
  WriteIndex();
  const Status status = Failure();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), HasSubstr("model-00001-of-00010.safetensors: lacks 1 of the "));
  EXPECT_THAT(status.message(), HasSubstr("\"no such tensor\""));
}

TEST_F(HuggingFaceFolderTest, ATensorThatTheIndexLacksIsLeftOutWithAWarning) {
  // Several tensors in a file.
  options_.target.format = TargetFormat::kHuggingFace;
  options_.target.shard_size = 5000;
  ASSERT_TRUE(Convert(options_).ok());
  const fs::path shards = options_.target.folder;
  json index = json::parse(ReadFile(shards / kIndex));
  std::map<std::string, std::string> seen;  // a tensor of each file
  std::string name;
  std::string other;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    if (!seen.emplace(file, tensor).second) {
      name = tensor;
      other = seen.at(file);
    }
  }
  ASSERT_FALSE(name.empty());
  index["weight_map"].erase(name);
  std::ofstream(shards / kIndex) << index.dump();
  options_.source.path = shards;
  options_.target.folder = work_.path() / "less";
  options_.target.shard_size = TargetSpec().shard_size;
  const auto report = Convert(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings,
              Contains(Says(WarningCode::kLeftOut, HasSubstr("left out: \"" + name + "\""))));
  EXPECT_THAT(report->warnings,
              Contains(Says(WarningCode::kIndexDisagrees, HasSubstr("\"total_size\" is "))));
  const std::string made = ReadFile(fs::path(options_.target.folder) / "model.safetensors");
  EXPECT_EQ(made.find("\"" + name + "\""), std::string::npos);
  EXPECT_NE(made.find("\"" + other + "\""), std::string::npos);
}

// Listing has parsed all headers, for the check against the index.
TEST_F(HuggingFaceFolderTest, ListedFilesAreIndexedOnce) {
  const auto listed = ListRankFiles({.path = options_.source.path});
  ASSERT_TRUE(listed.ok()) << listed.status().message();
  ASSERT_GT(listed->files.size(), 1U);
  for (size_t place = 0; place < listed->files.size(); ++place) {
    const auto first = Checkpoint::Open(*listed, place);
    const auto again = Checkpoint::Open(*listed, place);
    const auto alone = Checkpoint::Open(listed->files[place].path);
    ASSERT_TRUE(first.ok() && again.ok() && alone.ok());
    EXPECT_EQ(&first->parameters(), &again->parameters());
    EXPECT_NE(&first->parameters(), &alone->parameters());
    ASSERT_EQ(first->parameters().size(), alone->parameters().size());
    const std::string_view name = alone->parameters().front().name;
    EXPECT_EQ(first->path(), alone->path());
    EXPECT_EQ(first->file_size(), alone->file_size());
    const std::span<const std::byte> found = first->View(name)->front();
    const std::span<const std::byte> expected = alone->View(name)->front();
    EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
  }
  const auto beyond = Checkpoint::Open(*listed, listed->files.size());
  EXPECT_EQ(beyond.status().code(), StatusCode::kInvalidArgument);
}

TEST_F(HuggingFaceFolderTest, NeverAnIndexBesideALoneFile) {
  options_.target.format = TargetFormat::kHuggingFace;
  ASSERT_TRUE(Convert(options_).ok());
  ASSERT_TRUE(fs::exists(fs::path(options_.target.folder) / "model.safetensors"));
  options_.target.shard_size = 1000;
  options_.force = true;
  auto report = Convert(options_);
  EXPECT_EQ(report.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(report.status().message(), HasSubstr("model.safetensors"));
  EXPECT_FALSE(fs::exists(fs::path(options_.target.folder) / kIndex));
  fs::remove(fs::path(options_.target.folder) / "model.safetensors");
  ASSERT_TRUE(Convert(options_).ok());
  options_.target.shard_size = TargetSpec().shard_size;
  report = Convert(options_);
  EXPECT_EQ(report.status().code(), StatusCode::kAlreadyExists);
  EXPECT_FALSE(fs::exists(fs::path(options_.target.folder) / "model.safetensors"));
}

TEST_F(HuggingFaceFolderTest, RenamesCountInFilesAndIndex) {
  const std::string name = index_["weight_map"].begin().key();
  options_.selection.renames.names = {{name, "\u00e9"}};
  options_.selection.include = {name};
  const auto report = Convert(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const json map = json::parse(ReadFile(fs::path(options_.target.folder) / "param_name_map.json"));
  EXPECT_EQ(map.at("weight_map"), json({{"\u00e9", "part0.safetensors"}}));
}

TEST_F(HuggingFaceFolderTest, OptionsOfRanksAreRefused) {
  options_.selection.ranks = {0};
  EXPECT_EQ(Failure().code(), StatusCode::kInvalidArgument);
  options_.selection.ranks.clear();
  options_.target.strategy = kFolders / "hf" / "case_003" / "dst_strategy.ckpt";
  EXPECT_EQ(Failure().code(), StatusCode::kInvalidArgument);
  options_.target.format = TargetFormat::kSafetensors;
  for (const char* names :
       {"x", "../{rank}", "/{rank}", "{rank}/../y", "{rank}{no}", "{rank", "a}{rank}"}) {
    options_.target.names = names;
    EXPECT_EQ(Failure().code(), StatusCode::kInvalidArgument) << names;
  }
}

}  // namespace
}  // namespace reshard::folder_golden_test
