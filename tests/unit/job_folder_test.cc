// The folder of a job: what of it a later run can take up, step by step.
#include "src/job/job_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/job/worker_states.h"
#include "tests/unit/target_job_fixture.h"

namespace reshard::job_folder_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class JobFolderTest : public TargetJobTest {
 protected:
  JobFolderTest() : target_(MakeTarget()), parent_(*target_.MakeFolder(".reshard")) {}

  OutputDirectory MakeTarget() const {
    std::vector<std::string> made;
    auto folder = OutputDirectory::Create(Target().string(), made);
    EXPECT_TRUE(folder.ok()) << folder.status().message();
    return *std::move(folder);
  }
  JobFolder Make() const {
    auto folder = JobFolder::Make(parent_, kPlan);
    EXPECT_TRUE(folder.ok()) << folder.status().message();
    return *std::move(folder);
  }
  JobText Job() const { return JobTextOf(*CheckedSpec(Spec(both_))); }
  fs::path Path() const { return Target() / ".reshard" / kPlan; }

  void Fill(const JobFolder& folder, const std::string& path, const std::string& bytes) const {
    auto file = folder.Create(path, bytes.size());
    ASSERT_TRUE(file.ok()) << file.status().message();
    ASSERT_TRUE(file->WriteAt(0, std::as_bytes(std::span(bytes))).ok());
    ASSERT_TRUE(file->Finish().ok());
    ASSERT_TRUE(folder.WriteRecord(path, SourceOf(Record(path, bytes))).ok());
  }
  // Stages both files; returns them as the manifest lists them.
  std::vector<ManifestFile> StageBoth(const JobFolder& folder) const {
    std::vector<ManifestFile> files;
    for (const auto& [path, bytes] : both_) {
      Fill(folder, path, bytes);
      files.push_back({path, bytes.size(), {}, Record(path, bytes).size(), kNoDigest});
    }
    return files;
  }
  static Manifest ManifestOf(const std::vector<ManifestFile>& files) {
    return {.tool_version = "1", .plan = kPlan, .files = files};
  }
  Status Commit(JobFolder& folder, const std::vector<ManifestFile>& files) const {
    return folder.Commit({files, ManifestOf(files), "manifest.json"}, parent_, target_);
  }
  static void Append(const fs::path& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary | std::ios::app) << bytes;
  }

  // Nobody compares it here.
  inline static const std::string kNoDigest = std::string(32, '0');

  const OutputDirectory target_;
  const OutputDirectory parent_;
};

TEST_F(JobFolderTest, OpensWhatIsThere) {
  EXPECT_EQ(JobFolder::Open(parent_, kPlan).status().code(), StatusCode::kNotFound);
  Make();
  EXPECT_TRUE(JobFolder::Open(parent_, kPlan).ok());
  Make();  // once more, as a second run
  std::ofstream(Target() / ".reshard" / kOtherPlan) << "a file";
  EXPECT_EQ(JobFolder::Open(parent_, kOtherPlan).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(JobFolder::Make(parent_, kOtherPlan).status().code(), StatusCode::kAlreadyExists);
}

TEST_F(JobFolderTest, TheJobIsReadUntilItBecomesTheJournal) {
  JobFolder folder = Make();
  EXPECT_FALSE(folder.ReadJob()->has_value());
  ASSERT_TRUE(folder.WriteJob(Job()).ok());
  EXPECT_EQ(*folder.ReadJob(), Job());
  EXPECT_FALSE(folder.ReadJournal()->has_value());
  const auto files = StageBoth(folder);
  ASSERT_TRUE(Commit(folder, files).ok());
  EXPECT_FALSE(folder.ReadJob()->has_value());
  EXPECT_EQ(*folder.ReadJournal(), Job());
  EXPECT_EQ((*folder.ReadManifest(Job()))->files.size(), 2U);
}

TEST_F(JobFolderTest, DamagedTextsAreCorrupt) {
  const JobFolder folder = Make();
  for (const char* name : {"job", "journal"}) {
    Append(Path() / name, "not a job\n");
    const auto text = std::string(name) == "job" ? folder.ReadJob() : folder.ReadJournal();
    EXPECT_EQ(text.status().code(), StatusCode::kCorrupt);
  }
  Append(Path() / "manifest.json", "{}");
  EXPECT_EQ(folder.ReadManifest(Job()).status().code(), StatusCode::kCorrupt);
}

TEST_F(JobFolderTest, AFileIsStagedWithItsSizeAndItsRecord) {
  const JobFolder folder = Make();
  const auto files = StageBoth(folder);
  const ManifestFile& first = files[0];
  EXPECT_TRUE(*folder.IsStaged(first));
  EXPECT_EQ((*folder.StagedHead(first))->path, first.path);
  EXPECT_EQ(*folder.ReadRecord(first.path), Record(first.path, both_.at(first.path)));
  EXPECT_TRUE(folder.CheckStaged(files).ok());
  EXPECT_EQ(folder.PathOfStaged(first.path), (Path() / "files" / first.path).string());

  Append(Path() / "files" / first.path, "!");
  EXPECT_FALSE(*folder.IsStaged(first));
  EXPECT_FALSE(folder.StagedHead(first)->has_value());
  EXPECT_EQ(folder.CheckStaged(files).code(), StatusCode::kIo);
}

TEST_F(JobFolderTest, ARecordThatIsNotWholeCountsAsNone) {
  const JobFolder folder = Make();
  const ManifestFile first = StageBoth(folder)[0];
  const fs::path record = Path() / "files" / RecordPath(first.path);
  fs::resize_file(record, fs::file_size(record) - 1);
  EXPECT_FALSE(folder.StagedHead(first)->has_value());
  fs::remove(record);
  EXPECT_FALSE(folder.StagedHead(first)->has_value());
  EXPECT_EQ(folder.CheckStaged({first}).code(), StatusCode::kIo);
}

TEST_F(JobFolderTest, RemoveTakesTheFileAndItsRecord) {
  const JobFolder folder = Make();
  const ManifestFile first = StageBoth(folder)[0];
  ASSERT_TRUE(folder.Remove(first.path).ok());
  EXPECT_FALSE(*folder.IsStaged(first));
  EXPECT_EQ(folder.ReadRecord(first.path).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(folder.Remove(first.path).ok());  // nothing is there
  EXPECT_TRUE(folder.Remove("rank_7/never.ckpt").ok());
}

TEST_F(JobFolderTest, ABlockRecordHasToBeOfThisPartOfThisFile) {
  const JobFolder folder = Make();
  const ManifestFile file = {"rank_0/a.ckpt", 4};
  const ByteRange part = {0, 4};
  Fill(folder, file.path, "zero");
  const auto staged = [&](ByteRange asked, const std::string& plan) {
    const auto record = folder.StagedBlockRecord(file, asked, plan);
    EXPECT_TRUE(record.ok()) << record.status().message();
    return record.ok() && record->has_value();
  };
  EXPECT_FALSE(staged(part, kPlan));
  const auto write = [&](const BlockRecord& record) {
    const auto bytes = EncodeBlockRecord(record);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    ASSERT_TRUE(folder.WriteBlockRecord(file.path, part, SourceOf(*bytes)).ok());
  };
  write({.plan = kPlan, .path = file.path, .size = 4, .part = part});
  EXPECT_TRUE(staged(part, kPlan));
  EXPECT_FALSE(staged(part, kOtherPlan));
  EXPECT_FALSE(staged({0, 3}, kPlan));
  write({.plan = kPlan, .path = "rank_1/a.ckpt", .size = 4, .part = part});
  EXPECT_FALSE(staged(part, kPlan));
  write({.plan = kPlan, .path = file.path, .size = 4, .part = part});  // in place of it
  EXPECT_TRUE(staged(part, kPlan));
  Append(Path() / "block_records" / file.path / "0.jsonl", "x");
  EXPECT_FALSE(staged(part, kPlan));
}

TEST_F(JobFolderTest, WorkersSayWhenTheyHaveFinishedAndThatTheyLive) {
  const JobFolder folder = Make();
  EXPECT_THAT(*folder.Outstanding(3), ElementsAre(0, 1, 2));
  const auto files = StageBoth(folder);
  for (int times = 0; times < 2; ++times) {
    ASSERT_TRUE(folder.WriteFinished({1, 3}, files).ok());
  }
  EXPECT_THAT(*folder.Outstanding(3), ElementsAre(0, 2));
  EXPECT_THAT(*folder.Outstanding(4), ElementsAre(0, 1, 2, 3));  // another division

  EXPECT_FALSE(*folder.HasLiveWorker());
  const auto lock = folder.RunLock(WorkerShare{2, 3});
  ASSERT_TRUE(lock.ok());
  ASSERT_TRUE(*lock->Try(FileLock::Mode::kExclusive));
  lock->Sign();
  const std::vector<WorkerState> workers = *FindWorkers(folder, 3);
  ASSERT_EQ(workers.size(), 3U);
  EXPECT_EQ(workers[0].kind, WorkerState::Kind::kNotStarted);
  EXPECT_EQ(workers[1].kind, WorkerState::Kind::kFinished);
  EXPECT_EQ(workers[2].kind, WorkerState::Kind::kRunning);
  EXPECT_THAT(workers[2].process, testing::HasSubstr("process"));
  EXPECT_TRUE(workers[2].damage.ok());
  std::filesystem::create_directory(Path() / ProgressName(WorkerShare{2, 3}));
  EXPECT_FALSE((*FindWorkers(folder, 3))[2].damage.ok());
  EXPECT_EQ((*FindWorkers(folder, 5))[2].kind, WorkerState::Kind::kNotStarted);
  EXPECT_TRUE(*folder.HasLiveWorker());
  lock->Unlock();
  EXPECT_FALSE(*folder.HasLiveWorker());
}

TEST_F(JobFolderTest, WhoJoinsAFileLocksOutOthers) {
  const JobFolder folder = Make();
  const auto first = folder.JoinLock("rank_0/a.ckpt");
  const auto second = folder.JoinLock("rank_0/a.ckpt");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(*first->Try(FileLock::Mode::kExclusive));
  EXPECT_FALSE(*second->Try(FileLock::Mode::kExclusive));
}

TEST_F(JobFolderTest, PublishesFromAnyPlaceWhereItWasInterrupted) {
  // What a killed run may have moved already, in the order in which it moves.
  for (size_t moved = 0; moved <= 2; ++moved) {
    JobFolder folder = Make();
    ASSERT_TRUE(folder.WriteJob(Job()).ok());
    const auto files = StageBoth(folder);
    ASSERT_TRUE(Commit(folder, files).ok());
    EXPECT_TRUE(*folder.CanPublish(files, target_));
    for (size_t i = 0; i < moved; ++i) {
      for (const std::string& path : {files[i].path, RecordPath(files[i].path)}) {
        fs::create_directories((Target() / path).parent_path());
        fs::rename(Path() / "files" / path, Target() / path);
      }
    }
    EXPECT_TRUE(*folder.CanPublish(files, target_));
    ASSERT_TRUE(folder.Publish(target_).ok());
    EXPECT_EQ(Outputs(Target()).at("rank_1/a.ckpt"), "one!!");
    EXPECT_EQ(Listed().size(), 2U);
    EXPECT_FALSE(folder.ReadManifest(Job())->has_value());
    ASSERT_TRUE(folder.Publish(target_).ok());  // only flushes
    ASSERT_TRUE(JobFolder::CleanUp(parent_, kPlan).ok());
    EXPECT_FALSE(fs::exists(Path()));
    for (const char* name : {"rank_0", "rank_1", "part_records", "manifest.json"}) {
      fs::remove_all(Target() / name);
    }
  }
}

TEST_F(JobFolderTest, WhatIsLostCannotBePublished) {
  JobFolder folder = Make();
  ASSERT_TRUE(folder.WriteJob(Job()).ok());
  const auto files = StageBoth(folder);
  ASSERT_TRUE(Commit(folder, files).ok());
  fs::remove(Path() / "files" / RecordPath(files[1].path));
  EXPECT_FALSE(*folder.CanPublish(files, target_));
}

TEST_F(JobFolderTest, DiscardTakesAnythingUnderTheName) {
  JobFolder folder = Make();
  ASSERT_TRUE(folder.WriteJob(Job()).ok());
  const auto files = StageBoth(folder);
  ASSERT_TRUE(Commit(folder, files).ok());
  ASSERT_TRUE(JobFolder::Discard(parent_, kPlan).ok());
  EXPECT_FALSE(fs::exists(Path()));
  EXPECT_TRUE(JobFolder::Discard(parent_, kPlan).ok());
  std::ofstream(Path()) << "a file";
  EXPECT_TRUE(JobFolder::Discard(parent_, kPlan).ok());
  EXPECT_FALSE(fs::exists(Path()));
}

TEST_F(JobFolderTest, ManifestsThatListAnyOfTheFiles) {
  const auto write = [&](const std::string& name, const std::vector<ManifestFile>& files) {
    const auto bytes = EncodeManifest(ManifestOf(files));
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    ASSERT_TRUE(target_.WriteFile(name, *bytes).ok());
  };
  const ManifestFile one = {"rank_1/a.ckpt", 5, {}, 1, kNoDigest};
  const ManifestFile two = {"rank_2/a.ckpt", 5, {}, 1, kNoDigest};
  write("manifest.json", {one});
  write("manifest_part0.json", {one, two});
  write("manifest_part1.json", {two});
  Append(Target() / "manifest_part2.json", "not a manifest");
  const auto found = ManifestsThatList(target_, {one}, "manifest.json");
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().first, "manifest_part0.json");
  EXPECT_EQ(found->front().second.files.size(), 2U);
}

}  // namespace
}  // namespace reshard::job_folder_test
