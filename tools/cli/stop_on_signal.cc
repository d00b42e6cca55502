#include "tools/cli/stop_on_signal.h"

#include <semaphore.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace reshard {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// Requesting a stop takes locks and runs callbacks, which a signal handler must not; posting a
// semaphore is all that it does.
sem_t wake_waiter;

void OnSignal(int /*signal*/) {
  const int saved_errno = errno;
  sem_post(&wake_waiter);
  errno = saved_errno;
}

timespec After(std::chrono::milliseconds time) {
  constexpr int64_t kNanoseconds = 1'000'000'000;
  timespec when = {};
  clock_gettime(CLOCK_MONOTONIC, &when);
  const int64_t sum = when.tv_nsec + std::chrono::nanoseconds(time).count();
  when.tv_sec += sum / kNanoseconds;
  when.tv_nsec = sum % kNanoseconds;
  return when;
}

}  // namespace

StopOnSignal::StopOnSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : kSignals) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, &mask_);
  sem_init(&wake_waiter, 0, 0);
  waiter_ = std::jthread([this] { Wait(); });
  for (const int signal : kSignals) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = OnSignal;
    action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
    sigaction(signal, &action, nullptr);
  }
}

StopOnSignal::~StopOnSignal() {
  for (const int signal : kSignals) {
    struct sigaction now = {};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler != OnSignal) continue;
    now = {};
    now.sa_handler = SIG_DFL;
    sigaction(signal, &now, nullptr);
  }
  ending_ = true;
  sem_post(&wake_waiter);
  waiter_.join();
  sem_destroy(&wake_waiter);
  pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

void StopOnSignal::Wait() {
  pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  while (sem_wait(&wake_waiter) != 0) {
  }
  if (ending_) return;
  const timespec end = After(kGrace);
  source_.request_stop();
  while (!ending_) {
    // Ends early for another signal, too.
    if (sem_clockwait(&wake_waiter, CLOCK_MONOTONIC, &end) != 0 && errno == ETIMEDOUT && !ending_) {
      std::_Exit(kExitCode);
    }
  }
}

}  // namespace reshard
