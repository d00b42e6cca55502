// When calls are repeated, how long they wait, and what the last error says.
#include "src/os/retries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <limits>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "src/os/threads.h"

namespace reshard::retries_test {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

Status Failure(int error) { return IoError("a.ckpt: cannot read", error); }

class RetriesTest : public testing::Test {
 protected:
  std::shared_ptr<Retries> Make(uint64_t most) {
    return std::make_shared<Retries>(most, stop_.get_token(),
                                     [this](milliseconds wait) { waits_.push_back(wait); });
  }
  // Repeats a call that fails with `errors`, one after the other, and then succeeds.
  Status Repeat(Retries& retries, std::vector<int> errors, bool is_remote = true) {
    attempts_ = 1;
    return retries.Repeat(
        Failure(errors[0]), [is_remote] { return is_remote; },
        [&](const Status& failed) -> Status {
          EXPECT_EQ(failed.system_error(), errors[attempts_ - 1]);
          if (attempts_ == errors.size()) {
            ++attempts_;
            return {};
          }
          return Failure(errors[attempts_++]);
        });
  }

  std::stop_source stop_;
  std::vector<milliseconds> waits_;
  size_t attempts_ = 0;
};

TEST(WaitBeforeRetryTest, GrowsAndIsThirtySecondsInAll) {
  milliseconds all{0};
  milliseconds last{0};
  uint64_t retry = 1;
  for (; const auto wait = WaitBeforeRetry(retry); ++retry) {
    EXPECT_GT(*wait, milliseconds{0});
    // The last one is what is left.
    if (all + *wait < milliseconds{30000}) {
      EXPECT_GE(*wait, last);
    }
    last = *wait;
    all += *wait;
  }
  EXPECT_EQ(all, milliseconds{30000});
  EXPECT_LT(retry, 20U);
  EXPECT_EQ(WaitBeforeRetry(1), milliseconds{500});
  EXPECT_EQ(WaitBeforeRetry(3), milliseconds{2000});
  EXPECT_EQ(WaitBeforeRetry(std::numeric_limits<uint64_t>::max()), std::nullopt);
}

TEST_F(RetriesTest, AFailureThatPassesIsNone) {
  const auto retries = Make(3);
  EXPECT_TRUE(Repeat(*retries, {EIO, ETIMEDOUT, ESTALE}).ok());
  EXPECT_EQ(attempts_, 4U);
  EXPECT_THAT(waits_, ElementsAre(milliseconds{500}, milliseconds{1000}, milliseconds{2000}));
}

TEST_F(RetriesTest, AFailureThatStaysTellsTheAttempts) {
  const auto retries = Make(2);
  const Status status = Repeat(*retries, {EIO, EIO, EIO, EIO});
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_EQ(status.system_error(), EIO);
  EXPECT_EQ(status.message(), "a.ckpt: cannot read; all 3 attempts failed (`retries`)");
  EXPECT_EQ(status.option(), "retries");
  EXPECT_THAT(waits_, SizeIs(2));
}

// So that a run ends soon that reads many more files of a dead server.
TEST_F(RetriesTest, AfterOneFailureThatStaysNothingWaits) {
  const auto retries = Make(2);
  EXPECT_FALSE(Repeat(*retries, {EIO, EIO, EIO}).ok());
  waits_.clear();
  EXPECT_THAT(Repeat(*retries, {EIO, EIO, EIO}).message(), HasSubstr("all 3 attempts"));
  EXPECT_TRUE(Repeat(*retries, {EIO, EIO}).ok());
  EXPECT_THAT(waits_, IsEmpty());
}

TEST_F(RetriesTest, ManyRetriesEndAfterThirtySeconds) {
  const auto retries = Make(1'000'000);
  EXPECT_FALSE(Repeat(*retries, std::vector<int>(1000, EIO)).ok());
  milliseconds all{0};
  for (const milliseconds wait : waits_) all += wait;
  EXPECT_EQ(all, milliseconds{30000});
}

TEST_F(RetriesTest, OtherErrorsAndLocalFileSystemsAreNotRepeated) {
  const auto retries = Make(3);
  for (const int error : {EACCES, ENOENT, ENOSPC, ENOMEM, EMFILE}) {
    EXPECT_EQ(Repeat(*retries, {error, error}).system_error(), error);
    EXPECT_EQ(attempts_, 1U);
  }
  const Status local = Repeat(*retries, {EIO, EIO}, false);
  EXPECT_EQ(local.message(), "a.ckpt: cannot read");
  EXPECT_EQ(attempts_, 1U);
  const auto none = Make(0);
  EXPECT_THAT(Repeat(*none, {EIO, EIO}).message(), Not(HasSubstr("attempts")));
  EXPECT_EQ(attempts_, 1U);
  // Another error on the way ends it.
  EXPECT_EQ(Repeat(*retries, {EIO, EACCES, EIO}).system_error(), EACCES);
  EXPECT_EQ(attempts_, 2U);
}

TEST_F(RetriesTest, AStopEndsAWait) {
  const auto retries = std::make_shared<Retries>(100, stop_.get_token());
  const auto begin = std::chrono::steady_clock::now();
  size_t attempts = 1;
  const Status status = retries->Repeat(
      Failure(EIO), [] { return true; },
      [&](const Status& /*failed*/) {
        ++attempts;
        stop_.request_stop();  // the next wait would take a second
        return Failure(EIO);
      });
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(attempts, 2U);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds{1400});
}

TEST_F(RetriesTest, ThreadsHaveThoseOfTheStartingThread) {
  EXPECT_EQ(CurrentRetries(), nullptr);
  const auto retries = Make(1);
  {
    const RetryScope scope(retries);
    EXPECT_EQ(CurrentRetries(), retries);
    std::shared_ptr<Retries> seen;
    {
      auto thread = Thread::Start([&seen] { seen = CurrentRetries(); });
      ASSERT_TRUE(thread.ok());
    }
    EXPECT_EQ(seen, retries);
    const RetryScope none(nullptr);
    EXPECT_EQ(CurrentRetries(), nullptr);
  }
  EXPECT_EQ(CurrentRetries(), nullptr);
}

TEST_F(RetriesTest, PathsOfThisTestAreLocal) {
  EXPECT_FALSE(IsOnRemote("/proc/self/status"));
  EXPECT_FALSE(IsOnRemote("/proc/no/such/file"));
  EXPECT_FALSE(IsOnRemote(0));
}

}  // namespace
}  // namespace reshard::retries_test
