// The job lock: one run at a time, or the shards of one, although its files come and go.
#include "src/os/job_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace reshard::job_lock_test {
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

TEST_F(JobLockTest, RemovesWhatShardsLeft) {
  for (const char* name : {"lock", "begin", "commit"}) {
    folder_.Write(std::string(".reshard/") + name, "");
  }
  const auto lock = JobLock::Acquire(Target());
  ASSERT_TRUE(lock.ok());
  EXPECT_TRUE(*lock->RemoveFolder(Target()));
}

TEST_F(JobLockTest, AskersHoldNobodyUp) {
  const OutputDirectory target = Target();
  const auto asker = FileLock::Open(target, "file");
  const auto worker = FileLock::OpenToAsk(target, "file");
  ASSERT_TRUE(asker.ok() && worker.ok());
  EXPECT_FALSE(*asker->IsHeld());
  // Neither does one that is not quick.
  ASSERT_TRUE(*asker->Try(FileLock::Mode::kShared));
  EXPECT_FALSE(*worker->Try(FileLock::Mode::kExclusive));
  std::optional<bool> had;
  {
    const std::jthread waits([&] { had = *worker->TryPastAskers(); });
    asker->Unlock();
  }
  EXPECT_EQ(had, true);
  EXPECT_TRUE(*asker->IsHeld());
  EXPECT_FALSE(*asker->TryPastAskers());
  worker->Unlock();
  EXPECT_FALSE(*asker->IsHeld());
  EXPECT_TRUE(*worker->Try(FileLock::Mode::kExclusive));
}

TEST_F(JobLockTest, TellsThatAWorkerBeginsOrPublishes) {
  const OutputDirectory target = Target();
  std::filesystem::create_directory(folder_.path() / ".reshard");
  const auto busy = [&] { return *JobLock::IsWorkerBusy(*target.OpenFolder(".reshard")); };
  EXPECT_FALSE(busy());
  std::optional<JobLock> worker = std::move(*JobLock::AcquireAsWorker(target, {}));
  EXPECT_TRUE(busy());
  ASSERT_TRUE(worker->Admit().ok());
  EXPECT_FALSE(busy());
  ASSERT_TRUE(worker->WaitToCommit({}).ok());
  EXPECT_TRUE(busy());
  worker.reset();
  EXPECT_FALSE(busy());
}

JobLock Shard(const OutputDirectory& target) {
  auto lock = JobLock::AcquireAsWorker(target, {});
  EXPECT_TRUE(lock.ok()) << lock.status().message();
  return std::move(*lock);
}

TEST_F(JobLockTest, ShardsGoTogetherAndOrdinaryRunsAlone) {
  const OutputDirectory target = Target();
  std::optional<JobLock> first = Shard(target);
  EXPECT_TRUE(first->alone());
  ASSERT_TRUE(first->Admit().ok());
  std::optional<JobLock> second = Shard(target);
  EXPECT_FALSE(second->alone());
  ASSERT_TRUE(second->Admit().ok());
  EXPECT_EQ(JobLock::Acquire(target).status().code(), StatusCode::kAlreadyExists);
  first.reset();
  EXPECT_EQ(JobLock::Acquire(target).status().code(), StatusCode::kAlreadyExists);
  second.reset();
  const auto ordinary = JobLock::Acquire(target);
  EXPECT_TRUE(ordinary.ok());
  EXPECT_EQ(JobLock::AcquireAsWorker(target, {}).status().code(), StatusCode::kAlreadyExists);
}

// A shard that is killed while it begins frees `begin`, and the target's lock a moment later.
TEST_F(JobLockTest, AShardBeginsWhileAnotherOneIsDying) {
  const OutputDirectory target = Target();
  std::filesystem::create_directory(folder_.path() / ".reshard");
  const auto dying = FileLock::Open(*target.OpenFolder(".reshard"), "lock");
  ASSERT_TRUE(dying.ok() && *dying->Try(FileLock::Mode::kExclusive));
  const std::jthread end([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    dying->Unlock();
  });
  EXPECT_TRUE(Shard(target).alone());
}

// Who gets `begin` finds the target's lock free, whatever has become of who began.
TEST_F(JobLockTest, AShardThatFailsWhileItBeginsFreesBeginLast) {
  const OutputDirectory target = Target();
  for (int i = 0; i < 300; ++i) {
    std::optional<JobLock> shard = Shard(target);
    const auto begin = FileLock::Open(shard->folder(), "begin");
    const auto lock = FileLock::Open(shard->folder(), "lock");
    ASSERT_TRUE(begin.ok() && lock.ok());
    const std::jthread fails([&] { shard.reset(); });
    while (!*begin->Try(FileLock::Mode::kExclusive)) {
    }
    ASSERT_TRUE(*lock->Try(FileLock::Mode::kExclusive)) << i;
  }
}

TEST_F(JobLockTest, ShardsBeginOneAfterTheOther) {
  const OutputDirectory target = Target();
  JobLock first = Shard(target);
  std::atomic<bool> begun = false;
  std::jthread other([&] {
    JobLock second = Shard(target);
    begun = true;
    EXPECT_FALSE(second.alone());
    EXPECT_TRUE(second.Admit().ok());
  });
  EXPECT_FALSE(begun);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(JobLock::AcquireAsWorker(target, stop.get_token()).status().code(),
            StatusCode::kCancelled);
  EXPECT_FALSE(begun);
  ASSERT_TRUE(first.Admit().ok());
  other.join();
  EXPECT_TRUE(begun);
}

TEST_F(JobLockTest, OneShardCommitsAtATime) {
  const OutputDirectory target = Target();
  std::atomic<int> committing = 0;
  std::atomic<int> failures = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      JobLock lock = Shard(target);
      if (!lock.Admit().ok() || !lock.WaitToCommit({}).ok()) ++failures;
      if (++committing != 1) ++failures;
      --committing;
    });
  }
  threads.clear();
  EXPECT_EQ(failures, 0);
}

// A process that holds a shard's lock, and says so, until it is killed.
class HoldingProcess {
 public:
  explicit HoldingProcess(const OutputDirectory& target) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    process_ = fork();
    if (process_ == 0) {
      auto lock = JobLock::AcquireAsWorker(target, {});
      const char held = lock.ok() && lock->Admit().ok() && lock->WaitToCommit({}).ok() ? 'y' : 'n';
      if (write(ends[1], &held, 1) != 1) _exit(1);
      while (true) pause();
    }
    char held = 'n';
    EXPECT_EQ(read(ends[0], &held, 1), 1);
    EXPECT_EQ(held, 'y');
    close(ends[0]);
    close(ends[1]);
  }
  ~HoldingProcess() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  pid_t id() const { return process_; }
  HoldingProcess(const HoldingProcess&) = delete;
  HoldingProcess& operator=(const HoldingProcess&) = delete;

 private:
  pid_t process_ = -1;
};

TEST_F(JobLockTest, ItEndsWithItsProcess) {
  const OutputDirectory target = Target();
  auto process = std::make_unique<HoldingProcess>(target);
  EXPECT_EQ(JobLock::Acquire(target).status().code(), StatusCode::kAlreadyExists);
  {
    JobLock shard = Shard(target);
    EXPECT_FALSE(shard.alone());
    ASSERT_TRUE(shard.Admit().ok());
    std::stop_source stop;
    std::jthread waiting(
        [&] { EXPECT_EQ(shard.WaitToCommit(stop.get_token()).code(), StatusCode::kCancelled); });
    stop.request_stop();
    waiting.join();
    process.reset();
    EXPECT_TRUE(shard.WaitToCommit({}).ok());
  }
  EXPECT_TRUE(JobLock::Acquire(target).ok());
}

// A shard that stands still is named, and not waited for without end.
TEST_F(JobLockTest, WhoWaitsSaysForWhom) {
  const OutputDirectory target = Target();
  const HoldingProcess process(target);
  JobLock shard = Shard(target);
  ASSERT_TRUE(shard.Admit().ok());
  std::vector<std::string> words;
  Patience patience;
  patience.first_report = std::chrono::milliseconds(400);
  patience.limit = std::chrono::milliseconds(1000);
  patience.held = [&](const RunOptions::LockHolder& waiting) {
    words.push_back(waiting.holder + " holds " + waiting.lock);
  };
  const Status refused = shard.WaitToCommit(patience);
  EXPECT_EQ(refused.code(), StatusCode::kAlreadyExists);
  char host[256] = {};
  ASSERT_EQ(gethostname(host, sizeof(host) - 1), 0);
  const std::string holder = "process " + std::to_string(process.id()) + " on " + host;
  EXPECT_THAT(refused.message(), testing::HasSubstr("held by " + holder + " after "));
  const std::string line = holder + " holds " + (folder_.path() / ".reshard/commit").string();
  EXPECT_THAT(words, testing::ElementsAre(line, line));  // after 400 ms, and after 800
  patience.limit = std::chrono::milliseconds(0);
  EXPECT_EQ(shard.WaitToCommit(patience).code(), StatusCode::kAlreadyExists);
}

TEST_F(JobLockTest, AnUnreadableSignatureNamesNobody) {
  const OutputDirectory target = Target();
  for (const char* text : {"", "12", "12 ", "12 \n", "x host\n", " host\n", "12 host"}) {
    folder_.Write("lock", text);
    EXPECT_EQ(FileLock::Open(target, "lock")->Holder(), "") << text;
  }
  folder_.Write("lock", "12 ho\x1bst\n");
  EXPECT_EQ(FileLock::Open(target, "lock")->Holder(), "process 12 on ho\\x1bst");
}

TEST_F(JobLockTest, ShardsThatMakeAndRemoveItNeverMeetAnOrdinaryRun) {
  std::atomic<int> shards = 0;
  std::atomic<int> ordinary = 0;
  std::atomic<int> rounds = 0;
  std::atomic<int> failures = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const OutputDirectory target = Target();
      while (rounds < 200) {
        auto lock = i == 0 ? JobLock::Acquire(target) : JobLock::AcquireAsWorker(target, {});
        if (!lock.ok()) {
          if (lock.status().code() != StatusCode::kAlreadyExists) ++failures;
          continue;
        }
        ++rounds;
        if (i == 0) {
          ++ordinary;
          if (shards != 0) ++failures;
          --ordinary;
          if (!lock->RemoveFolder(target).ok()) ++failures;
          continue;
        }
        ++shards;
        if (ordinary != 0) ++failures;
        --shards;
        if (lock->alone() && !lock->RemoveFolder(target).ok()) ++failures;
        static_cast<void>(lock->Admit());
      }
    });
  }
  threads.clear();
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace reshard::job_lock_test
