// One conversion in several runs, and in one of several jobs: the same files, the same manifest.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "reshard/strategy.h"
#include "src/record/manifest_codec.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/with_bytes.h"

namespace reshard::convert_ranks_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class ConvertRanksTest : public testing::Test {
 protected:
  ConvertRanksTest() {
    folder_.WriteStage(
        {MakeTensor("w", DType::kFloat32, {12, 5}), MakeTensor("v", DType::kInt16, {3, 4}),
         MakeTensor("step", DType::kInt64, {})},
        source_, 6);
    folder_.options().target.folder = folder_.folder().path() / "whole";
    const auto report = Convert(folder_.options());
    EXPECT_TRUE(report.ok()) << report.status().message();
    whole_ = ReadFolder(folder_.options().target.folder);
    folder_.options().target.folder = folder_.folder().path() / "target";
  }

  FolderContents Target() const { return ReadFolder(folder_.options().target.folder); }

  const std::vector<NamedLayout> source_ = {{"w", MakeLayout({6}, {{0, -1}})},
                                            {"v", MakeLayout({2, 3}, {{0, -1}})}};
  ConversionFolder folder_{source_,
                           {{"w", MakeLayout({4}, {{0, -1}})}, {"v", MakeLayout({4}, {{-1, 0}})}}};
  FolderContents whole_;  // the target of one run for all ranks
};

TEST_F(ConvertRanksTest, AnyNumberOfJobsWritesTheSame) {
  ASSERT_EQ(whole_.size(), 10U);  // files, part records, manifest and checksums
  for (const int jobs : {1, 2, 8}) {
    folder_.options().run.jobs = jobs;
    folder_.options().force = true;
    ASSERT_TRUE(Convert(folder_.options()).ok());
    EXPECT_EQ(Target(), whole_) << jobs;
  }
}

TEST_F(ConvertRanksTest, RunsForSomeRanksJoinOneManifest) {
  for (const std::vector<int64_t>& ranks : {std::vector<int64_t>{2}, {3, 0}, {1}}) {
    folder_.options().selection.ranks = ranks;
    const auto report = Convert(folder_.options());
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->files.size(), ranks.size());
    const FolderContents target = Target();
    for (const int64_t rank : ranks) {
      EXPECT_EQ(target.at(RankPath(rank)), whole_.at(RankPath(rank)));
      EXPECT_THAT(target.at("manifest.json"), HasSubstr(RankPath(rank)));
    }
  }
  EXPECT_EQ(Target(), whole_);
}

// As on hosts that hold the files of their own ranks only.
TEST_F(ConvertRanksTest, RunsThatSeeOtherFilesJoinToo) {
  const fs::path source = folder_.options().source.path;
  for (int64_t rank = 0; rank < 4; ++rank) {
    const auto needed =
        SourceRanks(rank, folder_.options().source.strategy, folder_.options().target.strategy);
    ASSERT_TRUE(needed.ok());
    const TemporaryFolder host(MemoryFolder());
    for (const int64_t needed_rank : *needed) {
      const std::string name = "rank_" + std::to_string(needed_rank);
      fs::create_directory_symlink(source / name, host.path() / name);
    }
    folder_.options().source.path = host.path();
    folder_.options().selection.ranks = {rank};
    const auto report = Convert(folder_.options());
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->source_ranks, *needed);
  }
  EXPECT_EQ(Target(), whole_);
}

TEST_F(ConvertRanksTest, ARankTwiceIsOneFile) {
  folder_.options().selection.ranks = {1, 1};
  const auto report = Convert(folder_.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->files, testing::SizeIs(1));
}

TEST_F(ConvertRanksTest, ARunOfAnotherPlanDoesNotJoin) {
  folder_.options().selection.ranks = {0};
  ASSERT_TRUE(Convert(folder_.options()).ok());
  const FolderContents before = Target();
  folder_.folder().Write("dst.ckpt", ProtobufStrategy(0, {{"w", MakeLayout({4}, {{-1, -1}})}}));
  folder_.options().selection.ranks = {1};
  EXPECT_EQ(ExitCode(Convert(folder_.options()).status().code()), 6);
  EXPECT_EQ(Target(), before);
}

TEST_F(ConvertRanksTest, AStopWhileItWritesLeavesFilesToResumeWith) {
  std::stop_source stop;
  folder_.options().run.stop = stop.get_token();
  folder_.options().run.progress = [&](const Progress& progress) {
    if (progress.done_bytes == 0) return;
    EXPECT_GT(progress.total_bytes, progress.done_bytes);
    stop.request_stop();
  };
  folder_.options().run.jobs = 1;
  const Status stopped = Convert(folder_.options()).status();
  EXPECT_EQ(ExitCode(stopped.code()), 130);
  EXPECT_THAT(stopped.message(), Naming("1 ", "`resume`"));
  for (const auto& [path, bytes] : Target()) EXPECT_TRUE(path.starts_with(".reshard/")) << path;
  folder_.options().run.stop = {};
  folder_.options().run.progress = nullptr;
  folder_.options().resume = OutputChoice::Resume::kTrust;
  const auto report = Convert(folder_.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->files_kept, 1U);
  EXPECT_EQ(Target(), whole_);
}

// A finished file that has changed since is written again, or trusted, as it was asked for.
TEST_F(ConvertRanksTest, ResumesWithWhatIsAsRecorded) {
  for (const OutputChoice::Resume resume :
       {OutputChoice::Resume::kVerify, OutputChoice::Resume::kTrust}) {
    fs::remove_all(folder_.options().target.folder);
    std::stop_source stop;
    ConvertOptions options = folder_.options();
    options.run.jobs = 1;
    options.run.stop = stop.get_token();
    options.run.progress = WithBytes([&] { stop.request_stop(); });
    EXPECT_EQ(Convert(options).status().code(), StatusCode::kCancelled);
    const FolderContents staged = Target();
    const auto first = std::find_if(staged.begin(), staged.end(), [](const auto& file) {
      return file.first.ends_with(RankPath(0));
    });
    ASSERT_NE(first, staged.end());
    std::string changed = first->second;
    changed.back() ^= 1;
    std::ofstream(fs::path(options.target.folder) / first->first) << changed;
    options = folder_.options();
    options.resume = resume;
    const auto report = Convert(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->files_kept, resume == OutputChoice::Resume::kTrust ? 1U : 0U);
    EXPECT_EQ(Target() == whole_, resume == OutputChoice::Resume::kVerify);
  }
}

// Where only publishing was left to do, too.
TEST_F(ConvertRanksTest, PublishesWhatIsAsRecorded) {
  const fs::path target = folder_.options().target.folder;
  for (const OutputChoice::Resume resume :
       {OutputChoice::Resume::kVerify, OutputChoice::Resume::kTrust}) {
    for (const bool moved : {true, false}) {
      fs::remove_all(target);
      ConvertOptions options = folder_.options();
      options.run.progress =
          WithBytes([&] { fs::create_directories(target / RankPath(1) / "in the way"); });
      EXPECT_EQ(Convert(options).status().code(), StatusCode::kIo);
      fs::remove_all(target / RankPath(1));
      const FolderContents left = Target();
      const auto damaged = std::find_if(left.begin(), left.end(), [&](const auto& file) {
        return file.first.ends_with(RankPath(moved ? 0 : 2));
      });
      ASSERT_NE(damaged, left.end());
      EXPECT_EQ(damaged->first == RankPath(0), moved);
      const auto damage = [&] {
        std::fstream file(target / damaged->first, std::ios::in | std::ios::out);
        file.seekp(static_cast<std::streamoff>(damaged->second.size() - 1));
        file.put(static_cast<char>(damaged->second.back() ^ 1));
      };
      damage();
      options = folder_.options();
      options.resume = resume;
      const auto report = Convert(options);
      if (resume == OutputChoice::Resume::kTrust) {
        ASSERT_TRUE(report.ok()) << report.status().message();
        EXPECT_TRUE(report->completed_earlier_run);
        continue;
      }
      EXPECT_EQ(report.status().code(), StatusCode::kCorrupt);
      EXPECT_THAT(report.status().message(), Naming(RankPath(moved ? 0 : 2)));
      EXPECT_FALSE(Target().contains("manifest.json"));
      fs::remove_all(target / ".reshard");
      options.force = true;
      ASSERT_TRUE(Convert(options).ok());
      EXPECT_EQ(Target(), whole_);
    }
  }
}

// And where only clearing up was.
TEST_F(ConvertRanksTest, ASetThatWasPublishedIsAsRecorded) {
  const fs::path target = folder_.options().target.folder;
  std::string journal;
  ConvertOptions options = folder_.options();
  options.run.progress = WithBytes([&] {
    for (const auto& [path, bytes] : Target()) {
      if (path.ends_with("/job")) journal = bytes;
    }
  });
  ASSERT_TRUE(Convert(options).ok());
  const auto manifest = ParseManifest(ReadFile(target / "manifest.json"), "");
  ASSERT_TRUE(manifest.ok());
  const fs::path left = target / ".reshard" / manifest->plan;
  fs::create_directories(left);
  std::ofstream(left / "journal") << journal;
  std::fstream(target / RankPath(3), std::ios::in | std::ios::out) << 'x';
  options = folder_.options();
  options.resume = OutputChoice::Resume::kVerify;
  EXPECT_EQ(Convert(options).status().code(), StatusCode::kCorrupt);
  options.resume = OutputChoice::Resume::kNo;
  options.force = true;
  ASSERT_TRUE(Convert(options).ok());
  EXPECT_EQ(Target(), whole_);
}

TEST_F(ConvertRanksTest, DigestsAreLeftOutOnRequest) {
  folder_.options().checks.checksum = false;
  folder_.options().force = true;
  ASSERT_TRUE(Convert(folder_.options()).ok());
  const FolderContents without = Target();
  EXPECT_EQ(ReadOutputs(folder_.options().target.folder).size(), 4U);
  EXPECT_FALSE(without.contains("checksums.xxh128"));
  EXPECT_THAT(without.at("manifest.json"), HasSubstr("\"digest\": null"));
  folder_.options().resume = OutputChoice::Resume::kVerify;
  EXPECT_EQ(Convert(folder_.options()).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(ConvertRanksTest, ProgressEndsWithAllBytes) {
  Progress last;
  folder_.options().run.progress = [&](const Progress& progress) {
    EXPECT_GE(progress.done_bytes, last.done_bytes);
    last = progress;
  };
  const auto report = Convert(folder_.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(last.done_bytes, report->bytes_written);
  EXPECT_EQ(last.total_bytes, report->bytes_written);
  EXPECT_EQ(last.phase, Progress::Phase::kPublish);
  EXPECT_EQ(last.done_files, 4U);
  EXPECT_EQ(last.total_files, 4U);
}

TEST_F(ConvertRanksTest, TheReportTellsWhatWasDone) {
  folder_.options().selection.ranks = {1};
  const auto report = Convert(folder_.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_THAT(report->files, testing::SizeIs(1));
  EXPECT_EQ(report->files[0].path, RankPath(1));
  EXPECT_EQ(report->files[0].size, whole_.at(RankPath(1)).size());
  EXPECT_EQ(report->bytes_written, report->files[0].size);
  EXPECT_EQ(report->bytes_read, 3U * 5 * 4 + 3 * 1 * 2 + 8);
  EXPECT_EQ(report->parameters, 3U);
  ASSERT_THAT(report->largest, testing::SizeIs(3));
  EXPECT_EQ(report->largest[0].name, "w");
  EXPECT_EQ(report->largest[0].shape, Shape({12, 5}));
  EXPECT_EQ(report->largest[0].bytes, 240U);
  // Rows 3 to 5 of "w" are in ranks 1 and 2; the thirds of "v", a row each, are in all three
  // columns of the matrix, of which rank 1 shares its row with ranks 0 and 2.
  EXPECT_THAT(report->source_ranks, ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace reshard::convert_ranks_test
