#include "tools/cli/stop_on_signal.h"

#include <semaphore.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace reshard {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// Requesting a stop takes locks and runs callbacks, which a signal handler must not; so it only
// posts a semaphore.
sem_t wake_waiter;

void OnSignal(int /*signal*/) {
  const int saved_errno = errno;
  sem_post(&wake_waiter);
  errno = saved_errno;
}

// Between two looks whether the call that was stopped has returned. To wait for that with a
// monotonic clock takes sem_clockwait, which came with glibc 2.30.
constexpr std::chrono::milliseconds kLook{5};

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
  const auto end = std::chrono::steady_clock::now() + kGrace;
  source_.request_stop();
  while (!ending_) {
    if (std::chrono::steady_clock::now() >= end) std::_Exit(kExitCode);
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace reshard
