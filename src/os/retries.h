// Retries: repeats calls to a network or FUSE file system that failed for a moment.
//
// EIO, ETIMEDOUT and ESTALE may go by there. Only opening, looking up, listing and reading are
// repeated. Writing and flushing are not: after a failed flush, the kernel may have dropped the
// bytes, and the next flush succeeds without them.
#ifndef RESHARD_SRC_OS_RETRIES_H_
#define RESHARD_SRC_OS_RETRIES_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard {

// Returns how long to wait before retry number `retry`, from 1 on. No value: there is none, because
// the waits of a call together take at most 30 s.
std::optional<std::chrono::milliseconds> WaitBeforeRetry(uint64_t retry);

// Any number of threads may use one.
class Retries : public std::enable_shared_from_this<Retries> {
 public:
  // `wait` replaces the waiting in tests.
  using Wait = std::function<void(std::chrono::milliseconds)>;
  Retries(uint64_t most, std::stop_token stop, Wait wait = {})
      : most_(most), stop_(std::move(stop)), wait_(std::move(wait)) {}

  // Repeats a call that failed with `failed`, until it succeeds or fails for another reason, at
  // most as often as allowed. `attempt` gets the failure before. Returns `failed` at once for
  // other errors, or if `is_remote` returns false. After one call has failed for good, all others
  // are repeated without waiting. Errors: the last failure, with the number of attempts; kCancelled
  // soon after a request to stop.
  Status Repeat(Status failed, const std::function<bool()>& is_remote,
                const std::function<Status(const Status& failed)>& attempt);

 private:
  Status Await(std::chrono::milliseconds time);

  const uint64_t most_;
  const std::stop_token stop_;
  const Wait wait_;
  std::mutex mutex_;                     // guards the members below
  std::condition_variable_any changed_;  // nothing is waited for any more
  bool given_up_ = false;
};

// While one lives, its thread and the Threads that it starts repeat calls. The thread destroys its
// objects in the reverse order.
class RetryScope {
 public:
  explicit RetryScope(const RunOptions& run)
      : RetryScope(std::make_shared<Retries>(run.retries, run.stop)) {}
  // Null: no calls are repeated.
  explicit RetryScope(std::shared_ptr<Retries> retries);
  RetryScope(const RetryScope&) = delete;
  RetryScope& operator=(const RetryScope&) = delete;
  ~RetryScope();

 private:
  const std::shared_ptr<Retries> before_;
  const std::shared_ptr<Retries> retries_;
};

// The retries of this thread; null: none.
std::shared_ptr<Retries> CurrentRetries();

// Calls attempt(), which returns a Result and has to do with the file system at `path`, and repeats
// it by the thread's retries.
template <typename Attempt>
auto Retried(const std::string& path, Attempt attempt) -> decltype(attempt());

// Whether `path` lies on a network or FUSE file system, by the table of mounts. Does not ask that
// file system, unless links have to be followed.
bool IsOnRemote(const std::string& path);
// The same of the open file `fd`. Asks no file system.
bool IsOnRemote(int fd);

template <typename Attempt>
auto Retried(const std::string& path, Attempt attempt) -> decltype(attempt()) {
  auto result = attempt();
  if (result.ok()) return result;
  const std::shared_ptr<Retries> retries = CurrentRetries();
  if (retries == nullptr) return result;
  const Status status = retries->Repeat(
      result.status(), [&path] { return IsOnRemote(path); },
      [&](const Status& /*failed*/) {
        result = attempt();
        return result.status();
      });
  if (!status.ok()) return status;
  return result;
}

}  // namespace reshard

#endif  // RESHARD_SRC_OS_RETRIES_H_
