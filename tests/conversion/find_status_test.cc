// How far a conversion is, in each of its states, from what its processes leave in the target.
#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "reshard/version.h"
#include "src/job/worker_job.h"
#include "src/os/job_lock.h"
#include "src/os/output_directory.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::find_status_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using State = StatusReport::State;
using WorkerState = StatusReport::Worker::State;

class FindStatusTest : public testing::Test {
 protected:
  FindStatusTest() {
    folder_.WriteRank(0, {MakeTensor("w", DType::kFloat32, {8, 256})});
    options().run.jobs = 1;
  }

  ConvertOptions& options() { return folder_.options(); }
  std::string Target() const { return folder_.options().target.folder; }
  // The only folder of a job.
  fs::path JobFolder() const {
    for (const auto& entry : fs::directory_iterator(fs::path(Target()) / ".reshard")) {
      if (entry.is_directory()) return entry.path();
    }
    ADD_FAILURE() << "no job in " << Target();
    return {};
  }

  StatusReport Find() const {
    const auto report = FindStatus(Target());
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? *report : StatusReport();
  }
  StatusCode CodeOf(const std::string& target) const { return FindStatus(target).status().code(); }

  // Converts a share, or all. `at` sees the first progress of `phase`; the run is stopped then if
  // it returns true.
  Result<ConvertReport> Run(
      std::optional<WorkerShare> shard, std::optional<Progress::Phase> phase = {},
      const std::function<bool()>& at = [] { return true; }) {
    std::stop_source stop;
    bool seen = false;
    ConvertOptions all = options();
    all.shard = shard;
    all.run.stop = stop.get_token();
    all.run.progress = [&](const Progress& progress) {
      if (seen || progress.phase != phase) return;
      seen = true;
      if (at()) stop.request_stop();
    };
    auto report = Convert(all);
    EXPECT_EQ(seen, phase.has_value());
    return report;
  }
  void RunToEnd(std::optional<WorkerShare> shard) {
    const auto report = Run(shard);
    EXPECT_TRUE(report.ok()) << report.status().message();
  }
  // A process that ends while it writes.
  void Kill(std::optional<WorkerShare> shard) {
    EXPECT_EQ(Run(shard, Progress::Phase::kWrite).status().code(), StatusCode::kCancelled);
  }

  static std::vector<WorkerState> StatesOf(const StatusReport& report) {
    std::vector<WorkerState> states;
    for (const StatusReport::Worker& worker : report.workers) states.push_back(worker.state);
    return states;
  }

  ConversionFolder folder_{{}, {{"w", MakeLayout({4}, {{0, -1}})}}};
};

TEST_F(FindStatusTest, OfShardsOneAfterTheOther) {
  RunToEnd(WorkerShare{1, 4});
  StatusReport report = Find();
  EXPECT_EQ(report.state, State::kNeedsAttention);
  EXPECT_THAT(report.attention, Naming("shares 0, 2, 3", "`shard=0/4`"));
  EXPECT_THAT(StatesOf(report), ElementsAre(WorkerState::kNotStarted, WorkerState::kFinished,
                                            WorkerState::kNotStarted, WorkerState::kNotStarted));
  EXPECT_EQ(report.files_done, 1U);
  EXPECT_EQ(report.total_files, 4U);
  EXPECT_EQ(report.bytes_done * 4, report.total_bytes);
  EXPECT_EQ(report.workers[1].bytes_done, report.bytes_done);
  EXPECT_FALSE(report.seconds_left.has_value());

  Kill(WorkerShare{0, 4});
  report = Find();
  EXPECT_EQ(report.state, State::kNeedsAttention);
  EXPECT_THAT(report.attention, Naming("share 0", "`shard=0/4`"));
  EXPECT_EQ(report.workers[0].state, WorkerState::kDead);
  EXPECT_EQ(report.workers[0].bytes_done, 0U);
  EXPECT_THAT(report.workers[0].process, HasSubstr("process "));

  const auto see = [&] {
    report = Find();
    return false;
  };
  ASSERT_TRUE(Run(WorkerShare{0, 4}, Progress::Phase::kWrite, see).ok());
  EXPECT_EQ(report.state, State::kRunning);
  EXPECT_THAT(report.attention, IsEmpty());
  EXPECT_FALSE(report.publishing);
  EXPECT_THAT(StatesOf(report), ElementsAre(WorkerState::kRunning, WorkerState::kFinished,
                                            WorkerState::kNotStarted, WorkerState::kNotStarted));
  EXPECT_EQ(report.workers[0].phase, Progress::Phase::kWrite);
  RunToEnd(WorkerShare{2, 4});
  RunToEnd(WorkerShare{3, 4});
  report = Find();
  EXPECT_EQ(report.state, State::kPublished);
  EXPECT_THAT(report.workers, IsEmpty());
  EXPECT_EQ(report.files_done, 4U);
  EXPECT_EQ(report.bytes_done, report.total_bytes);
}

// A share that runs beside a dead one does not hide it.
TEST_F(FindStatusTest, ADeadShareNeedsAttentionWhileOthersRun) {
  Kill(WorkerShare{2, 4});
  StatusReport report;
  const auto see = [&] {
    report = Find();
    return true;
  };
  EXPECT_FALSE(Run(WorkerShare{0, 4}, Progress::Phase::kWrite, see).ok());
  EXPECT_EQ(report.state, State::kNeedsAttention);
  EXPECT_THAT(report.attention, Naming("share 2"));
  EXPECT_EQ(report.workers[0].state, WorkerState::kRunning);
  EXPECT_FALSE(report.seconds_left.has_value());
}

// Of a dead share the records of its parts count, not what it said itself.
TEST_F(FindStatusTest, ADeadShareKeepsItsFinishedParts) {
  std::stop_source stop;
  ConvertOptions all = options();
  all.shard = WorkerShare{0, 2};
  all.run.stop = stop.get_token();
  all.run.progress = [&](const Progress& progress) {
    if (progress.done_files == 1) stop.request_stop();
  };
  ASSERT_EQ(Convert(all).status().code(), StatusCode::kCancelled);
  StatusReport report = Find();
  ASSERT_THAT(report.workers, SizeIs(2));
  EXPECT_EQ(report.workers[0].state, WorkerState::kDead);
  EXPECT_EQ(report.workers[0].files_done, 1U);
  EXPECT_EQ(report.workers[0].total_files, 2U);
  EXPECT_EQ(report.workers[0].bytes_done * 2, report.workers[0].total_bytes);
  // The same again counts them as done from the start, and not for its rate.
  const auto see = [&] {
    report = Find();
    return true;
  };
  EXPECT_FALSE(Run(WorkerShare{0, 2}, Progress::Phase::kWrite, see).ok());
  EXPECT_EQ(report.workers[0].state, WorkerState::kRunning);
  EXPECT_EQ(report.workers[0].files_done, 1U);
  EXPECT_EQ(report.workers[0].bytes_per_second, 0);
}

TEST_F(FindStatusTest, FinishedSharesThatNobodyPublishes) {
  RunToEnd(WorkerShare{0, 2});
  const auto in_the_way = [&] {
    folder_.folder().Write("target/rank_0/net-1_1.ckpt", "left over");
    return false;
  };
  EXPECT_EQ(Run(WorkerShare{1, 2}, Progress::Phase::kPublish, in_the_way).status().code(),
            StatusCode::kAlreadyExists);
  StatusReport report = Find();
  EXPECT_EQ(report.state, State::kNeedsAttention);
  EXPECT_TRUE(report.publishing);
  EXPECT_THAT(report.attention, Naming("`CommitWorkers`"));
  EXPECT_EQ(report.bytes_done, report.total_bytes);
  // Unless a process is about to: it has the lock for that.
  {
    const auto target = OutputDirectory::Open(Target());
    ASSERT_TRUE(target.ok());
    auto worker = JobLock::AcquireAsWorker(*target, {});
    ASSERT_TRUE(worker.ok()) << worker.status().message();
    ASSERT_TRUE(worker->Admit().ok());
    EXPECT_EQ(Find().state, State::kNeedsAttention);
    ASSERT_TRUE(worker->WaitToCommit({}).ok());
    report = Find();
    EXPECT_EQ(report.state, State::kRunning);
    EXPECT_TRUE(report.publishing);
  }
  fs::remove(fs::path(Target()) / "rank_0/net-1_1.ckpt");
  ASSERT_TRUE(CommitWorkers(Target()).ok());
  EXPECT_EQ(Find().state, State::kPublished);
}

TEST_F(FindStatusTest, OfOneRun) {
  StatusReport report;
  const auto see = [&] {
    report = Find();
    return true;
  };
  EXPECT_FALSE(Run({}, Progress::Phase::kWrite, see).ok());
  EXPECT_EQ(report.state, State::kRunning);
  EXPECT_TRUE(report.alone);
  ASSERT_THAT(report.workers, SizeIs(1));
  EXPECT_THAT(report.workers[0].process, HasSubstr("process "));
  EXPECT_EQ(report.total_files, 4U);
  // No file was finished, so the run leaves nothing.
  EXPECT_EQ(CodeOf(Target()), StatusCode::kNotFound);

  std::stop_source stop;
  ConvertOptions all = options();
  all.run.stop = stop.get_token();
  all.run.progress = [&](const Progress& progress) {
    if (progress.done_files == 2) stop.request_stop();
  };
  ASSERT_EQ(Convert(all).status().code(), StatusCode::kCancelled);
  report = Find();
  EXPECT_EQ(report.state, State::kNeedsAttention);
  EXPECT_THAT(report.attention, Naming("`resume`", "2 finished files"));
  EXPECT_EQ(report.files_done, 2U);
  options().resume = OutputChoice::Resume::kTrust;
  EXPECT_TRUE(Run({}, Progress::Phase::kWrite, [&] {
                report = Find();
                return false;
              }).ok());
  EXPECT_EQ(report.state, State::kRunning);
  EXPECT_GE(report.bytes_done * 2, report.total_bytes);
  EXPECT_EQ(report.bytes_per_second, 0);
  EXPECT_EQ(Find().state, State::kPublished);
}

TEST_F(FindStatusTest, OfAPublicationThatWasInterrupted) {
  for (const bool alone : {true, false}) {
    const auto shard = [&](uint64_t index) {
      return alone ? std::nullopt : std::optional(WorkerShare{index, 2});
    };
    // A folder in the place of a file.
    if (!alone) RunToEnd(shard(0));
    const auto in_the_way = [&] {
      fs::create_directories(fs::path(Target()) / "checksums.xxh128/in the way");
      return false;
    };
    EXPECT_FALSE(Run(shard(1), Progress::Phase::kPublish, in_the_way).ok());
    fs::remove_all(fs::path(Target()) / "checksums.xxh128");
    const StatusReport report = Find();
    EXPECT_EQ(report.state, State::kNeedsAttention);
    EXPECT_TRUE(report.publishing);
    EXPECT_EQ(report.bytes_done, report.total_bytes);
    EXPECT_THAT(report.attention, alone ? HasSubstr("same command") : HasSubstr("`CommitWorkers`"));
    RunToEnd(shard(1));
    EXPECT_EQ(Find().state, State::kPublished);
    fs::remove_all(Target());
  }
}

// The set of before is there until the new one takes its place.
TEST_F(FindStatusTest, AShareThatPlansIsAtWork) {
  const WorkerShare worker{0, 2};
  {
    const auto turn = WorkerTurn::Take(Target(), worker, Patience());
    ASSERT_TRUE(turn.ok()) << turn.status().message();
    EXPECT_EQ(Find().state, State::kRunning);
    EXPECT_THAT(Find().workers, IsEmpty());
  }
  ASSERT_TRUE(Run(std::nullopt).ok());
  EXPECT_EQ(Find().state, State::kPublished);
  const auto turn = WorkerTurn::Take(Target(), worker, Patience());
  ASSERT_TRUE(turn.ok()) << turn.status().message();
  EXPECT_EQ(Find().state, State::kRunning);
}

TEST_F(FindStatusTest, OfASetThatIsReplaced) {
  RunToEnd({});
  options().force = true;
  options().prune = true;
  options().target.prefix = "net_";
  RunToEnd(WorkerShare{0, 2});
  EXPECT_EQ(Find().state, State::kNeedsAttention);
  RunToEnd(WorkerShare{1, 2});
  EXPECT_EQ(Find().state, State::kPublished);
}

TEST_F(FindStatusTest, ChangesNothing) {
  RunToEnd(WorkerShare{0, 4});
  Kill(WorkerShare{1, 4});
  const FolderContents before = ReadFolder(Target());
  Find();
  EXPECT_EQ(ReadFolder(Target()), before);
}

TEST_F(FindStatusTest, DamagedRecordsAreTold) {
  const char* const texts[] = {"x",
                               "progress write 1 0 2 0 1 5",
                               "progress sleep 1 0 2 0 1 5\n",
                               "progress write 3 0 2 0 1 5\n",
                               "progress write 1 2 2 0 1 5\n",
                               "progress write 1 0 2 2 1 5\n",
                               "progress write 1 0 2 0 1 -5\n",
                               "progress write 1 0 2 0 1 5 7\n",
                               "progress write 99999999999999999999999 0 2 0 1 5\n"};
  for (const char* text : texts) {
    StatusReport report;
    const auto see = [&] {
      const fs::path record = JobFolder() / "progress_0_of_2";
      EXPECT_TRUE(fs::exists(record));
      folder_.folder().Write(fs::relative(record, folder_.folder().path()).string(), text);
      report = Find();
      return true;
    };
    EXPECT_FALSE(Run(WorkerShare{0, 2}, Progress::Phase::kWrite, see).ok());
    EXPECT_EQ(report.state, State::kRunning) << text;
    EXPECT_THAT(report.notes, ElementsAre(HasSubstr("progress_0_of_2"))) << text;
    EXPECT_EQ(report.bytes_done, 0U);
    fs::remove_all(Target());
  }
  // More bytes than the share has are not believed.
  StatusReport report;
  const auto see = [&] {
    folder_.folder().Write(
        fs::relative(JobFolder() / "progress_0_of_2", folder_.folder().path()).string(),
        "progress write 18446744073709551615 0 18446744073709551615 9 9 1\n");
    report = Find();
    return true;
  };
  EXPECT_FALSE(Run(WorkerShare{0, 2}, Progress::Phase::kWrite, see).ok());
  EXPECT_EQ(report.workers[0].bytes_done, report.workers[0].total_bytes);
  EXPECT_EQ(report.workers[0].files_done, report.workers[0].total_files);
}

// A folder in the place of a record, which no run can write then, is no reason to fail.
TEST_F(FindStatusTest, ARunNeedsNoRecord) {
  Kill(WorkerShare{0, 2});
  const fs::path record = JobFolder() / "progress_0_of_2";
  fs::remove(record);
  fs::create_directory(record);
  RunToEnd(WorkerShare{0, 2});
  RunToEnd(WorkerShare{1, 2});
  EXPECT_EQ(Find().state, State::kPublished);
}

TEST_F(FindStatusTest, WhatIsNoTarget) {
  EXPECT_EQ(CodeOf(Target()), StatusCode::kNotFound);
  EXPECT_EQ(CodeOf(options().source.path), StatusCode::kNotFound);
  EXPECT_THAT(FindStatus(options().source.path).status().message(), Naming("manifest.json"));
  EXPECT_EQ(CodeOf(folder_.folder().Write("file", "")), StatusCode::kNotFound);
  folder_.folder().Write("staging/.reshard/lock", "");
  EXPECT_EQ(CodeOf((folder_.folder().path() / "staging").string()), StatusCode::kNotFound);
}

TEST_F(FindStatusTest, OfAnotherVersionsJob) {
  RunToEnd(WorkerShare{0, 2});
  const fs::path job = JobFolder() / "job";
  const std::string text = ReadFile(job);
  const std::string name = fs::relative(job, folder_.folder().path()).string();
  const std::string version(kVersion);
  ASSERT_TRUE(text.starts_with("reshard " + version));
  std::string other = text;
  other.replace(8, version.size(), "99.1");
  folder_.folder().Write(name, other);
  EXPECT_EQ(CodeOf(Target()), StatusCode::kMismatch);
  EXPECT_THAT(FindStatus(Target()).status().message(), Naming("99.1", version));
  // One that this version cannot read.
  folder_.folder().Write(name, "reshard 99.1\nanother form\n");
  EXPECT_EQ(CodeOf(Target()), StatusCode::kCorrupt);
  EXPECT_THAT(FindStatus(Target()).status().message(), Naming("99.1", version));
  folder_.folder().Write(name, "damaged");
  EXPECT_EQ(CodeOf(Target()), StatusCode::kCorrupt);
}

TEST_F(FindStatusTest, FilesOfAPublishedSetThatAreGone) {
  RunToEnd({});
  fs::remove(fs::path(Target()) / RankPath(2));
  fs::remove(fs::path(Target()) / "rank_2/checkpoint_2.ckpt");
  EXPECT_EQ(CodeOf(Target()), StatusCode::kNotFound);
}

TEST_F(FindStatusTest, OfTwoConversions) {
  Kill(WorkerShare{0, 2});
  const fs::path job = JobFolder();
  fs::copy(job, job.parent_path() / "0123456789abcdef", fs::copy_options::recursive);
  EXPECT_EQ(CodeOf(Target()), StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace reshard::find_status_test
