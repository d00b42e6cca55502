// Shards of one job: who may begin, what is gone on with, and when the set is published.
#include "src/job/worker_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/record/block_record.h"
#include "tests/support/says.h"
#include "tests/unit/target_job_fixture.h"

namespace reshard::worker_job_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class WorkerJobTest : public TargetJobTest {
 protected:
  static Result<WorkerJob> Begin(const JobSpec& spec, uint64_t index, uint64_t count = 2) {
    return WorkerJob::Begin(spec, {index, count}, {});
  }

  // Writes what is left of the share of whole files, with `bytes` of each.
  static void Write(const WorkerJob& job, const Contents& contents) {
    for (const FilePart& part : job.unfinished()) {
      const std::string& path = job.spec().files[part.file].path;
      const std::string& bytes = contents.at(path);
      auto file = job.Create(part, {});
      ASSERT_TRUE(file.ok()) << file.status().message();
      ASSERT_TRUE(file->WriteAt(0, std::as_bytes(std::span(bytes))).ok());
      ASSERT_TRUE(job.Finish(part, std::move(*file), WithRecord(Record(path, bytes)), {}).ok());
    }
    ASSERT_TRUE(job.FinishShare().ok());
  }
};

// It has waited in a folder that the other one made, and removed as it failed.
TEST_F(WorkerJobTest, WhoWaitsForOneThatFailsGetsItsTurn) {
  const std::string target = Spec(both_).target.folder + "/new";
  auto first = WorkerTurn::Take(target, {0, 2}, {});
  ASSERT_TRUE(first.ok()) << first.status().message();
  std::promise<void> waits;
  std::once_flag told;
  Patience patience;
  patience.first_report = std::chrono::milliseconds(1);
  patience.held = [&](const RunOptions::LockHolder&) {
    std::call_once(told, [&] { waits.set_value(); });
  };
  std::thread waiter([&] {
    const auto turn = WorkerTurn::Take(target, {1, 2}, patience);
    ASSERT_TRUE(turn.ok()) << turn.status().message();
    EXPECT_TRUE(turn->lock().alone());
    EXPECT_TRUE(turn->lock().waited());
  });
  EXPECT_EQ(waits.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
  { const WorkerTurn fails = std::move(*first); }
  waiter.join();
  EXPECT_FALSE(std::filesystem::exists(target));
}

TEST_F(WorkerJobTest, TheLastOnePublishes) {
  auto first = Begin(Spec(both_), 0);
  ASSERT_TRUE(first.ok()) << first.status().message();
  auto second = Begin(Spec(both_), 1);
  ASSERT_TRUE(second.ok()) << second.status().message();
  Write(*second, both_);
  const auto waiting = second->Commit({});
  ASSERT_TRUE(waiting.ok()) << waiting.status().message();
  EXPECT_FALSE(waiting->published);
  EXPECT_THAT(waiting->outstanding, ElementsAre(0U));
  EXPECT_FALSE(HasManifest());
  {
    const WorkerJob gone = std::move(*second);  // its process ends
  }
  Write(*first, both_);
  const auto published = first->Commit({});
  ASSERT_TRUE(published.ok()) << published.status().message();
  EXPECT_TRUE(published->published);
  EXPECT_THAT(published->warnings, IsEmpty());
  EXPECT_EQ(Outputs(Target()), both_);
  EXPECT_FALSE(HasStaging());
  const Contents together = Everything(Target());
  std::filesystem::remove_all(Target());
  ASSERT_TRUE(Run(both_).ok());
  EXPECT_EQ(Everything(Target()), together);
}

TEST_F(WorkerJobTest, OneOfThoseThatFinishTogetherPublishes) {
  std::vector<std::optional<WorkerJob>> jobs(2);
  for (uint64_t i = 0; i < 2; ++i) {
    auto job = Begin(Spec(both_), i);
    ASSERT_TRUE(job.ok()) << job.status().message();
    Write(*job, both_);
    jobs[i].emplace(std::move(*job));
  }
  std::vector<PublishReport> reports(2);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
        const auto report = jobs[i]->Commit({});
        EXPECT_TRUE(report.ok()) << report.status().message();
        if (report.ok()) reports[i] = *report;
        jobs[i].reset();  // its process ends
      });
    }
  }
  for (const PublishReport& report : reports) {
    EXPECT_TRUE(report.published);
    EXPECT_THAT(report.outstanding, IsEmpty());
  }
  EXPECT_NE(reports[0].by_other, reports[1].by_other);
  EXPECT_EQ(Outputs(Target()), both_);
}

TEST_F(WorkerJobTest, RefusesWhatDoesNotBelongToThem) {
  const auto first = Begin(Spec(both_), 0);
  ASSERT_TRUE(first.ok());
  const auto again = Begin(Spec(both_), 0);
  EXPECT_EQ(again.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(again.status().message(), HasSubstr("share 0/2 of "));
  const auto other = Begin(Spec(both_, true, kOtherPlan), 1);
  EXPECT_EQ(other.status().code(), StatusCode::kAlreadyExists);
  const auto more = Begin(Spec(both_), 1, 3);
  EXPECT_EQ(more.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(more.status().message(), Naming("2 shares", "3 shares"));
  JobSpec changed = Spec(both_);
  changed.source_identities[1] = "source two, rewritten";
  EXPECT_EQ(Begin(changed, 1).status().code(), StatusCode::kChanged);
  EXPECT_EQ(TargetJob::Begin(Spec(both_, true)).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(TargetJob::Check(Spec(both_, true)).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(Begin(Spec(both_), 2).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(WorkerJobTest, GoesOnWithWhatItFinished) {
  {
    const auto job = Begin(Spec(both_), 0);
    ASSERT_TRUE(job.ok());
    Write(*job, both_);
  }
  EXPECT_EQ(TargetJob::Check(Spec(both_)).status().code(), StatusCode::kOk);
  const auto job = Begin(Spec(both_), 0);
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_THAT(job->unfinished(), IsEmpty());
  EXPECT_EQ(job->finished().size(), 1U);
}

TEST_F(WorkerJobTest, ARefusedShardLeavesNothing) {
  ASSERT_TRUE(Run(both_).ok());
  const Contents before = Everything(Target());
  EXPECT_EQ(Begin(Spec(both_), 0).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(Everything(Target()), before);
  EXPECT_FALSE(HasStaging());
}

TEST_F(WorkerJobTest, FindsTheSetPublished) {
  for (const bool force : {false, true}) {
    std::filesystem::remove_all(Target());
    JobSpec spec = Spec(both_, force);
    spec.stamps = {{"rank_0/s.ckpt", 1, 2, 3}};
    spec.checks.checksum = false;
    ASSERT_TRUE(Run(spec, both_).ok());
    const Contents before = Everything(Target());
    const auto job = Begin(spec, 0);
    ASSERT_TRUE(job.ok()) << job.status().message();
    EXPECT_TRUE(job->earlier().found);
    EXPECT_EQ(Everything(Target()), before);
    EXPECT_FALSE(HasStaging());
    // Files may be missing beside the manifest.
    std::filesystem::remove(Target() / "rank_1/a.ckpt");
    EXPECT_EQ(Begin(spec, 0).ok(), force);
    std::filesystem::remove_all(Target());
    const auto anew = Begin(spec, 0);
    ASSERT_TRUE(anew.ok());
    EXPECT_FALSE(anew->earlier().found);
  }
}

TEST_F(WorkerJobTest, ALateShardIsNotAdvisedToForce) {
  ASSERT_TRUE(Run(both_).ok());
  const auto late = Begin(Spec(both_), 0);
  EXPECT_EQ(late.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(late.status().message(), Naming("manifest.json"));
  EXPECT_THAT(late.status().message(), testing::Not(HasSubstr("`force`")));
  const auto other = Begin(Spec(both_, false, kOtherPlan), 0);
  EXPECT_THAT(other.status().message(), HasSubstr("`force`"));
}

TEST_F(WorkerJobTest, CommitNeedsNoSpec) {
  EXPECT_EQ(WorkerJob::Open(Target().string(), {}).status().code(), StatusCode::kNotFound);
  for (uint64_t i = 0; i < 2; ++i) {
    const auto job = Begin(Spec(both_), i);
    ASSERT_TRUE(job.ok());
    Write(*job, both_);
  }
  auto job = WorkerJob::Open(Target().string(), {});
  ASSERT_TRUE(job.ok()) << job.status().message();
  ASSERT_TRUE(job->has_value());
  EXPECT_TRUE((*job)->Commit({})->published);
  EXPECT_EQ(Outputs(Target()), both_);
  const auto nothing = WorkerJob::Open(Target().string(), {});
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing->has_value());
}

TEST_F(WorkerJobTest, PublishedIsOnlyWhatIsThere) {
  namespace fs = std::filesystem;
  const fs::path aside = folder_.path() / "aside";
  const fs::path journal = Target() / ".reshard/aaaa/journal";
  // Killed after some of its steps, and then a file is gone that had been moved.
  Interrupt(Spec(both_), both_, "rank_1/a.ckpt");
  std::string text = ReadFile(journal);
  text.replace(text.find("shards 0"), 8, "shards 2");
  folder_.Write("above/target/.reshard/aaaa/journal", text);
  fs::copy(Target() / ".reshard", aside, fs::copy_options::recursive);
  fs::remove_all(Target() / "rank_0");
  const auto commit = [&]() -> Status {
    auto job = WorkerJob::Open(Target().string(), {});
    if (!job.ok() || !*job) return job.status();
    const auto outcome = (*job)->Commit({});
    EXPECT_FALSE(outcome.ok() && outcome->published);
    return outcome.status();
  };
  EXPECT_EQ(commit().code(), StatusCode::kIo);
  EXPECT_FALSE(HasManifest());

  // Killed behind its last step, and then the set is gone.
  folder_.Write("above/target/rank_0/a.ckpt", both_.at("rank_0/a.ckpt"));
  fs::remove_all(aside / "aaaa" / "files");
  ASSERT_TRUE((*WorkerJob::Open(Target().string(), {}))->Commit({})->published);
  fs::rename(aside, Target() / ".reshard");
  fs::remove(Target() / ".reshard/aaaa/manifest.json");
  const Contents whole = Everything(Target());
  fs::remove_all(Target() / "rank_1");
  EXPECT_EQ(commit().code(), StatusCode::kIo);
  fs::remove(Target() / "manifest.json");
  EXPECT_EQ(commit().code(), StatusCode::kIo);

  // Nothing staged any more, and a manifest without its files.
  for (const auto& [path, bytes] : whole) folder_.Write("above/target/" + path, bytes);
  fs::remove_all(Target() / ".reshard");
  EXPECT_TRUE(commit().ok());
  fs::remove(Target() / "rank_0/a.ckpt");
  EXPECT_EQ(commit().code(), StatusCode::kNotFound);
}

TEST_F(WorkerJobTest, DoesNotPublishABlockThatWasDamaged) {
  const std::string bytes(kDigestBlockBytes + 5, 'x');
  const Contents contents = {{"rank_0/a.ckpt", bytes}};
  for (uint64_t i = 0; i < 2; ++i) {
    auto job = Begin(Spec(contents), i);
    ASSERT_TRUE(job.ok()) << job.status().message();
    for (const FilePart& part : job->unfinished()) {
      const auto piece = std::string_view(bytes).substr(part.range.offset, part.range.length);
      auto file = job->Create(part, {});
      ASSERT_TRUE(file.ok()) << file.status().message();
      ASSERT_TRUE(file->WriteAt(part.range.offset, std::as_bytes(std::span(piece))).ok());
      Xxh3 digest;
      digest.Update(piece);
      const auto record = EncodeBlockRecord({.plan = kPlan,
                                             .path = "rank_0/a.ckpt",
                                             .size = bytes.size(),
                                             .part = part.range,
                                             .blocks = {digest.HexDigest()}});
      ASSERT_TRUE(record.ok()) << record.status().message();
      ASSERT_TRUE(job->Finish(part, std::move(*file), WithRecord(*record), {}).ok());
    }
    ASSERT_TRUE(job->FinishShare().ok());
  }
  const std::string staged = "above/target/.reshard/aaaa/files/rank_0/a.ckpt";
  std::string damaged = bytes;
  damaged.back() = 'y';
  folder_.Write(staged, damaged);
  auto job = WorkerJob::Open(Target().string(), {});
  ASSERT_TRUE(job.ok() && *job);
  const auto refused = (*job)->Commit({});
  EXPECT_EQ(refused.status().code(), StatusCode::kCorrupt);
  EXPECT_THAT(refused.status().message(), Naming("block 1,", "byte 67108864 "));
  EXPECT_FALSE(HasManifest());
  folder_.Write(staged, bytes);
  EXPECT_TRUE((*job)->Commit({})->published);
}

}  // namespace
}  // namespace reshard::worker_job_test
