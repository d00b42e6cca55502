// Outputs of a conversion proved from its sources, and found out when they are not.

#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/convert.h"
#include "reshard/verify.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::verify_against_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class VerifyAgainstTest : public testing::Test {
 protected:
  VerifyAgainstTest() {
    folder_.WriteStage(tensors_, source_, 6);
    const ConvertOptions& convert = folder_.options();
    const auto report = Convert(convert);
    EXPECT_TRUE(report.ok()) << report.status().message();
    options_.target.folder = convert.target.folder;
    options_.source.path = convert.source.path;
    options_.source.strategy = convert.source.strategy;
    options_.target.strategy = convert.target.strategy;
    // As if another program had written them.
    fs::remove(Target("manifest.json"));
    fs::remove(Target("origin.jsonl"));
  }

  fs::path Target(const std::string& path) const { return fs::path(options_.target.folder) / path; }

  // Replaces a target file. Returns its former bytes.
  std::string Replace(int64_t rank, const std::string& bytes) const {
    std::string before = ReadFile(Target(RankPath(rank)));
    fs::permissions(Target(RankPath(rank)), fs::perms::owner_all);
    folder_.folder().Write("target/" + RankPath(rank), bytes);
    return before;
  }

  // Returns the bytes of a target rank with one changed.
  std::string Flipped(int64_t rank, uint64_t offset) const {
    std::string bytes = ReadFile(Target(RankPath(rank)));
    bytes[offset] = static_cast<char>(bytes[offset] ^ 0x40);
    return bytes;
  }

  AgainstReport Verify() const {
    auto report = VerifyAgainst(options_, run_);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? *std::move(report) : AgainstReport();
  }

  const std::vector<TestTensor> tensors_ = {
      MakeTensor("w", DType::kFloat32, {12, 5}), MakeTensor("v", DType::kInt16, {3, 4}),
      MakeTensor("nothing", DType::kInt16, {0, 4}), MakeTensor("step", DType::kInt64, {})};
  const std::vector<NamedLayout> source_ = {{"w", MakeLayout({6}, {{0, -1}})},
                                            {"v", MakeLayout({2, 3}, {{0, -1}})}};
  ConversionFolder folder_{source_,
                           {{"w", MakeLayout({4}, {{0, -1}})}, {"v", MakeLayout({4}, {{-1, 0}})}}};
  ConversionSpec options_;
  RunOptions run_;
};

TEST_F(VerifyAgainstTest, GoodOutputsAreProved) {
  for (const int jobs : {0, 1, 3}) {
    run_.jobs = jobs;
    const AgainstReport report = Verify();
    EXPECT_TRUE(report.equal());
    EXPECT_EQ(report.files, 4U);
    uint64_t bytes = 0;
    for (int64_t rank = 0; rank < 4; ++rank) bytes += fs::file_size(Target(RankPath(rank)));
    EXPECT_EQ(report.bytes, bytes);
    EXPECT_THAT(report.warnings, IsEmpty());
    EXPECT_EQ(report.replicas.compared, 1U);  // "v", which the slower axis does not cut
  }
}

// Each single byte, headers included, is found at its offset.
TEST_F(VerifyAgainstTest, EveryChangedByteIsFound) {
  const auto checkpoint = Checkpoint::Open(Target(RankPath(2)));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const uint64_t size = checkpoint->file_size();
  for (uint64_t offset = 0; offset < size; ++offset) {
    const std::string before = Replace(2, Flipped(2, offset));
    const AgainstReport report = Verify();
    ASSERT_THAT(report.differences, SizeIs(1)) << offset;
    const AgainstReport::FileDifference& difference = report.differences[0];
    EXPECT_EQ(difference.path, RankPath(2));
    EXPECT_EQ(difference.expected_size, size);
    EXPECT_EQ(difference.found_size, size);
    EXPECT_EQ(difference.differing_bytes, 1U);
    ASSERT_TRUE(difference.first.has_value()) << offset;
    const AgainstReport::FileDifference::First& first = *difference.first;
    EXPECT_EQ(first.offset, offset);
    EXPECT_EQ(first.expected, static_cast<uint8_t>(before[offset]));
    EXPECT_EQ(first.found, static_cast<uint8_t>(before[offset] ^ 0x40));

    const StoredArray* owner = nullptr;
    for (const StoredArray& parameter : checkpoint->parameters()) {
      for (const ByteRange& value : parameter.framed) {
        if (offset >= value.offset && offset < value.end()) owner = &parameter;
      }
    }
    ASSERT_NE(owner, nullptr);
    const bool in_header = owner->content.empty() || owner->content[0].offset > offset ||
                           owner->content[0].end() <= offset;
    EXPECT_EQ(first.in_header, in_header);
    EXPECT_EQ(difference.parameter_count, 1U);
    if (owner->name != "nothing") {  // its header is all it has
      EXPECT_EQ(first.parameter, owner->name);
      EXPECT_THAT(difference.parameters, ElementsAre(owner->name));
    }
    if (!in_header) {
      EXPECT_EQ(first.shard_offset, offset - owner->content[0].offset);
      // The source does have the expected byte there.
      EXPECT_EQ(ReadFile(first.source_path)[first.source_offset], before[offset]);
    }
    Replace(2, before);
  }
  EXPECT_TRUE(Verify().equal());
}

// What the run was told is not to be told again; what is given wins.
TEST_F(VerifyAgainstTest, OptionsAreThoseOfTheLastRun) {
  const struct {
    const char* name;
    std::function<void(ConvertOptions&)> set;
    std::vector<std::string> taken;
  } rows[] = {
      {"format",
       [](ConvertOptions& all) { all.target.format = TargetFormat::kSafetensors; },
       {"format"}},
      {"names", [](ConvertOptions& all) { all.target.names = "r{rank}/net.{ext}"; }, {"names"}},
      {"prefix and ranks",
       [](ConvertOptions& all) {
         all.target.prefix = "net_";
         all.selection.ranks = {1, 3};
       },
       {"ranks", "prefix"}},
      {"choice",
       [](ConvertOptions& all) {
         all.selection.exclude = {"step"};
         all.selection.renames.names = {{"w", "x"}};
         all.selection.casts = {{.dtype = DType::kBFloat16}};
       },
       {"exclude", "renames", "casts"}},
  };
  const ConvertOptions usual = folder_.options();
  for (const auto& row : rows) {
    ConvertOptions all = usual;
    row.set(all);
    fs::remove_all(options_.target.folder);
    ASSERT_TRUE(Convert(all).ok()) << row.name;
    const AgainstReport report = Verify();
    EXPECT_TRUE(report.equal()) << row.name;
    EXPECT_EQ(report.files, all.selection.ranks.empty() ? 4U : 2U) << row.name;
    EXPECT_EQ(report.from_origin, row.taken) << row.name;
  }
  options_.selection.exclude = {"nothing"};
  EXPECT_FALSE(Verify().equal());
}

TEST_F(VerifyAgainstTest, StrategiesAreThoseOfTheLastRun) {
  fs::remove_all(options_.target.folder);
  ASSERT_TRUE(Convert(folder_.options()).ok());
  options_.source.strategy = {};
  options_.target.strategy = {};
  const AgainstReport report = Verify();
  EXPECT_TRUE(report.equal());
  EXPECT_EQ(report.files, 4U);
  EXPECT_THAT(report.from_origin, ElementsAre("source.strategy", "target.strategy"));
  // Another one in its place.
  const std::string path = folder_.options().target.strategy.path();
  fs::remove(path);
  fs::copy_file(folder_.options().source.strategy.path(), path);
  EXPECT_EQ(VerifyAgainst(options_, run_).status().code(), StatusCode::kMismatch);
  fs::remove(path);
  EXPECT_NE(VerifyAgainst(options_, run_).status().code(), StatusCode::kOk);
}

TEST_F(VerifyAgainstTest, TheFirstOfManyDifferencesIsNamed) {
  const auto checkpoint = Checkpoint::Open(Target(RankPath(0)));
  ASSERT_TRUE(checkpoint.ok());
  const uint64_t w = checkpoint->Find("w")->content[0].offset;
  const uint64_t v = checkpoint->Find("v")->content[0].offset;
  std::string bytes = ReadFile(Target(RankPath(0)));
  for (const uint64_t offset : {w + 4, w + 9, v + 2}) bytes[offset] ^= 1;
  Replace(0, bytes);
  Replace(3, Flipped(3, 0));
  const AgainstReport report = Verify();
  ASSERT_THAT(report.differences, SizeIs(2));
  EXPECT_EQ(report.differences[0].path, RankPath(0));
  EXPECT_EQ(report.differences[1].path, RankPath(3));
  EXPECT_EQ(report.differences[0].differing_bytes, 3U);
  EXPECT_EQ(report.differences[0].first->offset, std::min(w + 4, v + 2));
  EXPECT_THAT(report.differences[0].parameters, testing::UnorderedElementsAre("w", "v"));
}

TEST_F(VerifyAgainstTest, SizesHaveToBeThePlannedOnes) {
  const std::string whole = ReadFile(Target(RankPath(1)));
  struct {
    std::string bytes;
    bool same_beginning;
  } const rows[] = {{whole.substr(0, whole.size() - 1), true},
                    {whole + '\0', true},
                    {"", true},
                    {'x' + whole, false}};
  for (const auto& [bytes, same_beginning] : rows) {
    Replace(1, bytes);
    const AgainstReport report = Verify();
    EXPECT_FALSE(report.equal());
    ASSERT_THAT(report.differences, SizeIs(1));
    EXPECT_EQ(report.differences[0].expected_size, whole.size());
    EXPECT_EQ(report.differences[0].found_size, bytes.size());
    EXPECT_EQ(report.differences[0].first.has_value(), !same_beginning);
  }
}

TEST_F(VerifyAgainstTest, MissingFilesAreDifferences) {
  fs::remove_all(Target("rank_1"));
  fs::remove(Target(RankPath(3)));
  const AgainstReport report = Verify();
  ASSERT_THAT(report.differences, SizeIs(2));
  EXPECT_EQ(report.differences[0].path, RankPath(1));
  EXPECT_FALSE(report.differences[0].found_size.has_value());
  EXPECT_EQ(report.differences[1].path, RankPath(3));
}

TEST_F(VerifyAgainstTest, NoFileAtAllIsAnError) {
  options_.target.prefix = "other";
  const Status status = VerifyAgainst(options_, run_).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("rank_0/other0.ckpt"));
  options_.target.folder = folder_.folder().path() / "absent";
  EXPECT_EQ(VerifyAgainst(options_, run_).status().code(), StatusCode::kNotFound);
}

TEST_F(VerifyAgainstTest, OnlySomeRanks) {
  Replace(2, Flipped(2, 0));
  options_.selection.ranks = {3, 1, 1};
  const AgainstReport some = Verify();
  EXPECT_TRUE(some.equal());
  EXPECT_EQ(some.files, 2U);
  options_.selection.ranks = {2};
  EXPECT_FALSE(Verify().equal());
  options_.selection.ranks = {4};
  EXPECT_EQ(VerifyAgainst(options_, run_).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(VerifyAgainstTest, ExtraRankFoldersAreWarnedOf) {
  fs::copy(Target("rank_3"), Target("rank_4"), fs::copy_options::recursive);
  const AgainstReport report = Verify();
  EXPECT_TRUE(report.equal());
  EXPECT_THAT(report.warnings,
              ElementsAre(Says(WarningCode::kRanksBeyondStrategy, HasSubstr("rank_4"))));
}

TEST_F(VerifyAgainstTest, ASetOfSeveralRanksIsNotComparedWithFullTensors) {
  options_.target.strategy = "";
  const Status status = VerifyAgainst(options_, run_).status();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), Naming("3 ", "`target.strategy`"));
}

TEST_F(VerifyAgainstTest, AnotherStrategyIsNoProof) {
  options_.target.strategy = folder_.folder().Write(
      "swapped.ckpt",
      ProtobufStrategy(0, {{"w", MakeLayout({4}, {{0, -1}})}, {"v", MakeLayout({4}, {{-1, -1}})}}));
  EXPECT_FALSE(Verify().equal());
}

TEST_F(VerifyAgainstTest, ReplicasThatDifferAreNamed) {
  // "v" is cut in three; ranks 1 and 4 hold the second row.
  std::vector<TestTensor> rank_4 = ReadTensors(fs::path(options_.source.path) / RankPath(4));
  rank_4[1].content[5] ^= 1;
  rank_4[3].content[0] ^= 1;  // "step", which is each rank's own
  folder_.WriteRank(4, rank_4);
  const AgainstReport report = Verify();
  EXPECT_FALSE(report.equal());
  EXPECT_EQ(report.replicas.compared, 1U);
  EXPECT_EQ(report.replicas.differing, 1U);
  ASSERT_THAT(report.replicas.differences, SizeIs(1));
  const ReplicaReport::Difference& difference = report.replicas.differences[0];
  EXPECT_EQ(difference.parameter, "v");
  EXPECT_EQ(difference.stage, 0);
  EXPECT_EQ(difference.pair_count, 1U);
  ASSERT_THAT(difference.pairs, SizeIs(1));
  EXPECT_EQ(difference.pairs[0].rank, 4);
  EXPECT_EQ(difference.pairs[0].reference, 1);
  EXPECT_FALSE(difference.pairs[0].other_type);
  EXPECT_EQ(difference.pairs[0].offset, 5U);
}

TEST_F(VerifyAgainstTest, MalformedInputsAreErrors) {
  const auto code = [&] { return VerifyAgainst(options_, run_).status().code(); };
  run_.jobs = -1;
  EXPECT_EQ(code(), StatusCode::kInvalidArgument);
  run_ = {};
  const ConversionSpec good = options_;
  options_.source.strategy = options_.target.strategy = "";
  EXPECT_EQ(code(), StatusCode::kInvalidArgument);
  options_ = good;
  options_.source.strategy = "/absent";
  EXPECT_EQ(code(), StatusCode::kNotFound);
  options_ = good;
  folder_.WriteRank(5, "no checkpoint");
  EXPECT_EQ(code(), StatusCode::kCorrupt);
  folder_.RemoveRank(5);
  EXPECT_EQ(code(), StatusCode::kMismatch);
  folder_.WriteStage(tensors_, source_, 6);
  EXPECT_TRUE(Verify().equal());
  fs::remove(Target(RankPath(0)));
  fs::create_directory(Target(RankPath(0)));
  EXPECT_EQ(code(), StatusCode::kCorrupt);
}

TEST_F(VerifyAgainstTest, ChangesMeanwhileAreNoticed) {
  const std::string whole = ReadFile(Target(RankPath(1)));
  run_.progress = [&](const Progress&) { Replace(1, whole); };
  EXPECT_EQ(VerifyAgainst(options_, run_).status().code(), StatusCode::kChanged);
  run_.progress = [&](const Progress&) { folder_.WriteStage(tensors_, source_, 6); };
  EXPECT_EQ(VerifyAgainst(options_, run_).status().code(), StatusCode::kChanged);
}

TEST_F(VerifyAgainstTest, AStopEndsIt) {
  std::stop_source stop;
  run_.stop = stop.get_token();
  run_.progress = [&](const Progress&) { stop.request_stop(); };
  EXPECT_EQ(VerifyAgainst(options_, run_).status().code(), StatusCode::kCancelled);
}

TEST_F(VerifyAgainstTest, ProgressEndsWithAllBytes) {
  Progress last;
  run_.progress = [&](const Progress& progress) {
    EXPECT_GE(progress.done_bytes, last.done_bytes);
    last = progress;
  };
  uint64_t bytes = Verify().bytes;
  for (int64_t rank = 0; rank < 6; ++rank) {
    bytes += fs::file_size(fs::path(options_.source.path) / RankPath(rank));
  }
  EXPECT_EQ(last.done_bytes, bytes);
  EXPECT_EQ(last.total_bytes, bytes);
}

}  // namespace
}  // namespace reshard::verify_against_test
