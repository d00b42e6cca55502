// The job lock: one holder at a time, although its file comes and goes.
#include "src/os/job_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace reshard {
namespace {

class JobLockTest : public testing::Test {
 protected:
  OutputDirectory Target() const {
    auto folder = OutputDirectory::Open(folder_.path().string());
    EXPECT_TRUE(folder.ok());
    return std::move(*folder);
  }

  const TemporaryFolder folder_;
};

TEST_F(JobLockTest, HasOneHolder) {
  const OutputDirectory target = Target();
  std::optional<JobLock> held = std::move(*JobLock::Acquire(target));
  const auto second = JobLock::Acquire(target);
  EXPECT_EQ(second.status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(JobLock::Check(target).message(), second.status().message());
  held.reset();
  EXPECT_TRUE(JobLock::Check(target).ok());
  const auto third = JobLock::Acquire(target);
  ASSERT_TRUE(third.ok());
  EXPECT_TRUE(*third->RemoveFolder(target));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / ".reshard"));
  EXPECT_TRUE(JobLock::Check(target).ok());
}

TEST_F(JobLockTest, KeepsAFolderThatIsNotEmpty) {
  const OutputDirectory target = Target();
  const auto lock = JobLock::Acquire(target);
  ASSERT_TRUE(lock.ok());
  folder_.Write(".reshard/other", "");
  EXPECT_FALSE(*lock->RemoveFolder(target));
}

TEST_F(JobLockTest, FollowsNoLinks) {
  folder_.Write("victim/lock", "");
  std::filesystem::create_symlink(folder_.path() / "victim", folder_.path() / ".reshard");
  EXPECT_EQ(JobLock::Acquire(Target()).status().code(), StatusCode::kAlreadyExists);
  std::filesystem::remove(folder_.path() / ".reshard");
  std::filesystem::create_directory(folder_.path() / ".reshard");
  std::filesystem::create_symlink(folder_.path() / "victim/lock", folder_.path() / ".reshard/lock");
  EXPECT_EQ(JobLock::Acquire(Target()).status().code(), StatusCode::kIo);
  EXPECT_EQ(JobLock::Check(Target()).code(), StatusCode::kIo);
}

TEST_F(JobLockTest, ExcludesThreadsThatMakeAndRemoveIt) {
  std::atomic<int> holders = 0;
  std::atomic<int> rounds = 0;
  std::atomic<int> failures = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const OutputDirectory target = Target();
      while (rounds < 200) {
        const auto lock = JobLock::Acquire(target);
        if (!lock.ok()) {
          if (lock.status().code() != StatusCode::kAlreadyExists) ++failures;
          continue;
        }
        if (++holders != 1) ++failures;
        ++rounds;
        --holders;
        if (!lock->RemoveFolder(target).ok()) ++failures;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace reshard
