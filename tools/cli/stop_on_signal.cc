#include "tools/cli/stop_on_signal.h"

#include <semaphore.h>

#include <cerrno>
#include <csignal>

namespace reshard {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

// Requesting a stop takes locks and runs callbacks, which a signal handler must not; posting a
// semaphore is all that it does.
sem_t wake_waiter;

void OnSignal(int /*signal*/) {
  const int saved_errno = errno;
  sem_post(&wake_waiter);
  errno = saved_errno;
}

}  // namespace

StopOnSignal::StopOnSignal() {
  sem_init(&wake_waiter, 0, 0);
  waiter_ = std::jthread([source = source_]() mutable {
    while (sem_wait(&wake_waiter) != 0) {
    }
    source.request_stop();
  });
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
  sem_post(&wake_waiter);
  waiter_.join();
  sem_destroy(&wake_waiter);
}

}  // namespace reshard
