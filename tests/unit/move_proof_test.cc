// The file that proves moves: it leaves no trace, and what a killed run left of it goes.
#include "src/job/target_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/says.h"
#include "tests/unit/target_job_fixture.h"

namespace reshard::move_proof_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlaces[] = {
    "", "rank_0/", "rank_1/", "part_records/", "part_records/rank_0/", "part_records/rank_1/"};

class MoveProofTest : public TargetJobTest {
 protected:
  void Plant(const std::string& place) const {
    folder_.Write("above/target/" + place + ".reshard_probe", "");
  }
};

TEST_F(MoveProofTest, LeavesNothing) {
  ASSERT_TRUE(Run(both_).ok());
  const Contents before = Everything(Target());
  fs::create_directory(folder_.path() / "staging");
  const auto staging = OutputDirectory::Open((folder_.path() / "staging").string());
  const auto target = OutputDirectory::Open(Target().string());
  ASSERT_TRUE(staging.ok() && target.ok());
  const std::vector<ManifestFile> files = {{"rank_0/a.ckpt", 1}, {"rank_7/a.ckpt", 1}};
  const Status proved = ProveMoves(*staging, *target, files);
  EXPECT_TRUE(proved.ok()) << proved.message();
  EXPECT_EQ(Everything(Target()), before);
  EXPECT_TRUE(fs::is_empty(folder_.path() / "staging"));
  EXPECT_FALSE(fs::exists(Target() / "rank_7"));
}

TEST_F(MoveProofTest, NamesAFolderThatTakesNoFile) {
  ASSERT_TRUE(Run(both_).ok());
  fs::create_directories(Target() / "part_records/rank_1/.reshard_probe/in the way");
  const auto target = OutputDirectory::Open(Target().string());
  ASSERT_TRUE(target.ok());
  const Contents before = Everything(Target());
  const auto report = Run(newer_, true);
  EXPECT_EQ(report.status().code(), StatusCode::kIo);
  EXPECT_THAT(report.status().message(), Naming("target/part_records/rank_1: "));
  EXPECT_EQ(Everything(Target()), before);
}

TEST_F(MoveProofTest, WhatAKilledRunLeftGoesWithTheSameRun) {
  ASSERT_TRUE(Run(both_).ok());
  const Contents before = Everything(Target());
  for (const char* place : kPlaces) {
    Plant(place);
    ASSERT_TRUE(Run(both_, true).ok()) << place;
    EXPECT_EQ(Everything(Target()), before) << place;
  }
}

TEST_F(MoveProofTest, WhatAKilledRunLeftGoesWithItsStagingFolder) {
  ASSERT_TRUE(Run(both_).ok());
  const Contents before = Everything(Target());
  for (const char* place : kPlaces) {
    Plant(place);
    folder_.Write("above/target/.reshard/bbbb/job", "");
    ASSERT_TRUE(Run(zero_, true).ok()) << place;  // which has no files in rank_1
    EXPECT_EQ(Everything(Target()), before) << place;
  }
}

}  // namespace
}  // namespace reshard::move_proof_test
