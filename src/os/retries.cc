#include "src/os/retries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "src/os/mount_point.h"
#include "src/os/storage_kind.h"

namespace reshard {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstWait{500};
constexpr milliseconds kLongestWait{10'000};
constexpr milliseconds kMostInAll{30'000};

// Owned by the RetryScope or the Thread that set it.
constinit thread_local Retries* retries_of_thread = nullptr;

bool MayPass(const Status& failed) {
  const int error = failed.system_error();
  return error == EIO || error == ETIMEDOUT || error == ESTALE;
}

bool IsRemotePlace(const std::string& place) {
  const Result<std::string> type = MountTypeAbove(place);
  return type.ok() && IsRemoteType(*type);
}

}  // namespace

std::optional<milliseconds> WaitBeforeRetry(uint64_t retry) {
  milliseconds all{0};
  milliseconds next = kFirstWait;
  for (uint64_t i = 1; all < kMostInAll; ++i) {
    const milliseconds wait = std::min({next, kLongestWait, kMostInAll - all});
    if (i == retry) return wait;
    all += wait;
    next *= 2;
  }
  return std::nullopt;
}

Status Retries::Repeat(Status failed, const std::function<bool()>& is_remote,
                       const std::function<Status(const Status& failed)>& attempt) {
  if (most_ == 0 || !MayPass(failed) || !is_remote()) return failed;
  uint64_t attempts = 1;
  while (!failed.ok() && MayPass(failed)) {
    const std::optional<milliseconds> time = WaitBeforeRetry(attempts);
    if (attempts > most_ || !time) {
      const std::lock_guard lock(mutex_);
      given_up_ = true;
      changed_.notify_all();
      return failed.WithMessage(
          fmt::format("{}; all {} attempts failed (`retries`)", failed.message(), attempts));
    }
    if (Status waited = Await(*time); !waited.ok()) return waited;
    failed = attempt(failed);
    ++attempts;
  }
  return failed;
}

Status Retries::Await(milliseconds time) {
  std::unique_lock lock(mutex_);
  if (wait_ && !given_up_) {
    wait_(time);
  } else {
    changed_.wait_for(lock, stop_, time, [this] { return given_up_; });
  }
  return stop_.stop_requested() ? CancelledError("stopped on request") : Status();
}

RetryScope::RetryScope(std::shared_ptr<Retries> retries)
    : before_(CurrentRetries()), retries_(std::move(retries)) {
  retries_of_thread = retries_.get();
}

RetryScope::~RetryScope() { retries_of_thread = before_.get(); }

std::shared_ptr<Retries> CurrentRetries() {
  return retries_of_thread == nullptr ? nullptr : retries_of_thread->shared_from_this();
}

bool IsOnRemote(const std::string& path) {
  std::error_code error;
  std::filesystem::path place = std::filesystem::weakly_canonical(path, error);
  if (error) place = std::filesystem::absolute(path, error).lexically_normal();
  return !error && IsRemotePlace(place.string());
}

bool IsOnRemote(int fd) {
  std::error_code error;
  const std::filesystem::path place =
      std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), error);
  return !error && IsRemotePlace(place.string());
}

}  // namespace reshard
