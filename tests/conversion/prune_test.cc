// Conversions into a folder that holds an earlier set: what `prune` removes and what it leaves, and
// what origin.jsonl tells of all runs.

#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "reshard/convert.h"
#include "reshard/verify.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"

namespace reshard::prune_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::UnorderedElementsAre;

const std::vector<NamedLayout> kRowsOf4 = {{"w", MakeLayout({4}, {{0, -1}})}};
const std::vector<NamedLayout> kRowsOf2 = {{"w", MakeLayout({2}, {{0, -1}})}};

// A full tensor that four ranks got, to be given to two instead.
class EarlierSet : public ConversionFolder {
 public:
  EarlierSet() : ConversionFolder({}, kRowsOf4) {
    WriteRank(0, {MakeTensor("w", DType::kFloat32, {8, 2})});
    const auto report = Convert(options());
    EXPECT_TRUE(report.ok()) << report.status().message();
    options().target.strategy = folder().Write("two.ckpt", ProtobufStrategy(0, kRowsOf2));
    options().force = true;
    options().prune = true;
  }

  fs::path Target(const std::string& path) const {
    return fs::path(options().target.folder) / path;
  }
};

ConvertReport RunConvert(const ConvertOptions& options) {
  auto report = Convert(options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? std::move(*report) : ConvertReport();
}

std::vector<nlohmann::json> OriginOf(const EarlierSet& set) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(ReadFile(set.Target("origin.jsonl")));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(PruneTest, RemovesWhatTheNewManifestDoesNotList) {
  EarlierSet set;
  const ConvertReport report = RunConvert(set.options());
  EXPECT_EQ(report.pruned, 2U);
  EXPECT_THAT(report.warnings, IsEmpty());
  FolderContents found = ReadFolder(set.options().target.folder);
  EXPECT_THAT(found,
              UnorderedElementsAre(Key("rank_0/checkpoint_0.ckpt"), Key("rank_1/checkpoint_1.ckpt"),
                                   Key("manifest.json"), Key("checksums.xxh128"),
                                   Key("part_records/rank_0/checkpoint_0.ckpt.jsonl"),
                                   Key("part_records/rank_1/checkpoint_1.ckpt.jsonl")));
  EXPECT_FALSE(fs::exists(set.Target("rank_3")));
  EXPECT_FALSE(fs::exists(set.Target("part_records/rank_3")));
  const auto damage = Verify(set.options().target.folder);
  ASSERT_TRUE(damage.ok()) << damage.status().message();
  EXPECT_THAT(damage->damages, IsEmpty());
}

TEST(PruneTest, WithoutItFilesStayAndAreNamed) {
  EarlierSet set;
  set.options().prune = false;
  const ConvertReport report = RunConvert(set.options());
  EXPECT_EQ(report.pruned, 0U);
  EXPECT_THAT(report.warnings, ElementsAre(Says(WarningCode::kFilesAbandoned)));
  EXPECT_TRUE(fs::exists(set.Target("rank_3/checkpoint_3.ckpt")));
}

// What is not as the manifest says may be somebody's work; so is what it does not list.
TEST(PruneTest, LeavesWhatIsNotTheSets) {
  EarlierSet set;
  fs::remove(set.Target("rank_2/checkpoint_2.ckpt"));
  set.folder().Write("target/rank_2/checkpoint_2.ckpt", "another");
  set.folder().Write("target/rank_3/notes.txt", "mine");
  const ConvertReport report = RunConvert(set.options());
  EXPECT_EQ(report.pruned, 1U);
  EXPECT_EQ(ReadFile(set.Target("rank_2/checkpoint_2.ckpt")), "another");
  EXPECT_EQ(ReadFile(set.Target("rank_3/notes.txt")), "mine");
  EXPECT_FALSE(fs::exists(set.Target("rank_3/checkpoint_3.ckpt")));
}

// As that of another stage, which the new set does not replace.
TEST(PruneTest, LeavesWhatAManifestListsThatStays) {
  EarlierSet set;
  // A manifest of the ranks 2 and 3 alone.
  ConvertOptions part = set.options();
  part.prune = false;
  part.target.folder = set.folder().path() / "part";
  part.target.strategy = set.folder().Write("four.ckpt", ProtobufStrategy(0, kRowsOf4));
  part.selection.ranks = {2, 3};
  RunConvert(part);
  fs::copy_file(fs::path(part.target.folder) / "manifest.json", set.Target("manifest_part1.json"));
  const ConvertReport report = RunConvert(set.options());
  EXPECT_EQ(report.pruned, 0U);
  EXPECT_TRUE(fs::exists(set.Target("rank_2/checkpoint_2.ckpt")));
  EXPECT_TRUE(fs::exists(set.Target("rank_3/checkpoint_3.ckpt")));
}

TEST(PruneTest, NothingIsLeftToPruneTheSecondTime) {
  EarlierSet set;
  RunConvert(set.options());
  EXPECT_EQ(RunConvert(set.options()).pruned, 0U);
}

TEST(PruneTest, WorkersPruneWhenTheLastOnePublishes) {
  EarlierSet set;
  for (uint64_t worker = 0; worker < 2; ++worker) {
    set.options().shard = WorkerShare{worker, 2};
    const ConvertReport report = RunConvert(set.options());
    EXPECT_EQ(report.pruned, worker == 0 ? 0U : 2U);
  }
  EXPECT_FALSE(fs::exists(set.Target("rank_3")));
}

// The manifest has digests: what is of the same size need not be what was written.
TEST(PruneTest, LeavesAFileOfTheSameSizeThatIsAnother) {
  EarlierSet set;
  const fs::path path = set.Target("rank_3/checkpoint_3.ckpt");
  const std::string mine(fs::file_size(path), 'm');
  fs::remove(path);
  set.folder().Write("target/rank_3/checkpoint_3.ckpt", mine);
  for (const uint64_t pruned : {1U, 0U}) {  // what stays is told again
    const ConvertReport report = RunConvert(set.options());
    EXPECT_EQ(report.pruned, pruned);
    EXPECT_THAT(report.warnings, ElementsAre(Says(WarningCode::kFilesAbandoned)));
    EXPECT_THAT(report.warnings.front().message, Naming("rank_3/checkpoint_3.ckpt", "`prune`"));
    EXPECT_EQ(ReadFile(path), mine);
    EXPECT_FALSE(fs::exists(set.Target("rank_2/checkpoint_2.ckpt")));
  }
}

TEST(PruneTest, WithoutDigestsSizesHaveToDo) {
  EarlierSet set;
  set.options().checks.checksum = false;
  set.options().prune = false;
  set.options().target.strategy = set.folder().Write("four.ckpt", ProtobufStrategy(0, kRowsOf4));
  RunConvert(set.options());
  set.options().target.strategy = set.folder().Write("two.ckpt", ProtobufStrategy(0, kRowsOf2));
  set.options().prune = true;
  EXPECT_EQ(RunConvert(set.options()).pruned, 2U);
}

// No manifest lists them any more; origin.jsonl does until they are gone.
TEST(PruneTest, WhatStaysIsRemembered) {
  EarlierSet set;
  set.options().prune = false;
  for (int i = 0; i < 3; ++i) {
    const ConvertReport report = RunConvert(set.options());
    EXPECT_THAT(report.warnings, ElementsAre(Says(WarningCode::kFilesAbandoned)));
    EXPECT_THAT(report.warnings.front().message,
                Naming("rank_2/checkpoint_2.ckpt", "rank_3/checkpoint_3.ckpt", "`prune`"));
  }
  EXPECT_EQ(OriginOf(set).back().at("left").size(), 2U);
  fs::remove(set.Target("rank_2/checkpoint_2.ckpt"));
  EXPECT_THAT(RunConvert(set.options()).warnings.front().message,
              Not(HasSubstr("checkpoint_2.ckpt")));
  set.options().prune = true;
  const ConvertReport report = RunConvert(set.options());
  EXPECT_EQ(report.pruned, 1U);
  EXPECT_THAT(report.warnings, IsEmpty());
  EXPECT_FALSE(fs::exists(set.Target("rank_3")));
  EXPECT_FALSE(OriginOf(set).back().contains("left"));
}

TEST(PruneTest, WhatASetTakesOverIsLeftNoMore) {
  EarlierSet set;
  set.options().prune = false;
  RunConvert(set.options());
  set.options().target.strategy = set.folder().Write("four.ckpt", ProtobufStrategy(0, kRowsOf4));
  EXPECT_THAT(RunConvert(set.options()).warnings, IsEmpty());
  EXPECT_FALSE(OriginOf(set).back().contains("left"));
}

TEST(PruneTest, IsRefusedWithoutAManifest) {
  EarlierSet set;
  fs::remove(set.Target("manifest.json"));
  const auto report = Convert(set.options());
  EXPECT_EQ(report.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(report.status().message(), Naming("`prune`"));
  EXPECT_TRUE(fs::exists(set.Target("rank_3/checkpoint_3.ckpt")));
}

TEST(PruneTest, IsRefusedForADamagedManifest) {
  EarlierSet set;
  std::string bytes = ReadFile(set.Target("manifest.json"));
  bytes[bytes.find("rank_3")] = 'R';
  fs::remove(set.Target("manifest.json"));
  set.folder().Write("target/manifest.json", bytes);
  EXPECT_EQ(Convert(set.options()).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(fs::exists(set.Target("rank_3/checkpoint_3.ckpt")));
}

TEST(PruneTest, IsRefusedForSomeRanks) {
  EarlierSet set;
  set.options().selection.ranks = {0};
  const auto report = Convert(set.options());
  EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(report.status().message(), HasSubstr("`prune`"));
}

TEST(PruneTest, IsRefusedWhereTheTargetHoldsASource) {
  EarlierSet set;
  const std::string source = set.Target("rank_3/full.ckpt");
  fs::copy_file(set.folder().path() / "source" / RankPath(0), source);
  set.options().source.path = source;
  set.options().target.names = "{rank}.ckpt";
  const auto report = Convert(set.options());
  EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(report.status().message(), Naming("`prune`", "rank_3/full.ckpt"));
  EXPECT_TRUE(fs::exists(set.Target("rank_3/checkpoint_3.ckpt")));
}

TEST(OriginTest, HasALineForEachRun) {
  EarlierSet set;
  RunConvert(set.options());
  const std::vector<nlohmann::json> lines = OriginOf(set);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].at("source"), set.options().source.path);
  EXPECT_NE(lines[0].at("plan"), lines[1].at("plan"));
  EXPECT_EQ(lines[1].at("target_strategy").at("path"), set.options().target.strategy);
  RunConvert(set.options());  // the same once more tells nothing new
  EXPECT_EQ(OriginOf(set).size(), 2U);
}

TEST(OriginTest, ProofTakesTheCastsFromIt) {
  EarlierSet set;
  set.options().selection.casts = {{"*", DType::kBFloat16}};
  RunConvert(set.options());
  ConversionSpec against;
  against.source = set.options().source;
  against.target = set.options().target;
  auto proof = VerifyAgainst(against);
  ASSERT_TRUE(proof.ok()) << proof.status().message();
  EXPECT_TRUE(proof->equal());
  EXPECT_THAT(proof->from_origin, testing::ElementsAre("casts"));
  against.selection.casts = {{"*", {}}};  // none
  proof = VerifyAgainst(against);
  ASSERT_TRUE(proof.ok()) << proof.status().message();
  EXPECT_FALSE(proof->equal());
  EXPECT_THAT(proof->from_origin, testing::IsEmpty());
}

TEST(OriginTest, AFolderInItsPlaceIsRefusedBeforeAnythingIsWritten) {
  EarlierSet set;
  fs::remove(set.Target("origin.jsonl"));
  fs::create_directory(set.Target("origin.jsonl"));
  const FolderContents before = ReadFolder(set.options().target.folder);
  const auto report = Convert(set.options());
  EXPECT_EQ(report.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(report.status().message(), Naming("origin.jsonl: "));
  EXPECT_EQ(ReadFolder(set.options().target.folder), before);
}

}  // namespace
}  // namespace reshard::prune_test
