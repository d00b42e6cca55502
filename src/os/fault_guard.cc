#include "src/os/fault_guard.h"

#include <pthread.h>

#include <atomic>
#include <csignal>

namespace reshard {
namespace {

// The handler reads it, also on threads that never guarded a range. Initial-exec storage exists
// from a thread's start. The default in a shared library may allocate at the first touch.
[[gnu::tls_model("initial-exec")]] constinit thread_local FaultFrame* innermost = nullptr;

// The action for SIGBUS that was there before ours. Written before ours is installed.
struct sigaction former;

bool IsSynchronous(const siginfo_t& info) {
  return info.si_code == BUS_ADRALN || info.si_code == BUS_ADRERR || info.si_code == BUS_OBJERR ||
         info.si_code == BUS_MCEERR_AR;
}

void SetDefaultAction() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGBUS, &action, nullptr);
}

// Does what the kernel would have done if `former` were still installed.
void CallFormer(int signal, siginfo_t* info, void* context) {
  const bool has_info = (former.sa_flags & SA_SIGINFO) != 0;
  if (!has_info && (former.sa_handler == SIG_DFL || former.sa_handler == SIG_IGN)) {
    if (!IsSynchronous(*info)) {
      if (former.sa_handler == SIG_IGN) return;
      SetDefaultAction();
      raise(signal);
      return;
    }
    // The instruction runs again and fails again, which ends the process at the right place. The
    // kernel does not let a fault be ignored either.
    SetDefaultAction();
    return;
  }

  if ((former.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) SetDefaultAction();
  sigset_t mask = former.sa_mask;
  if ((former.sa_flags & SA_NODEFER) == 0) sigaddset(&mask, SIGBUS);
  sigset_t previous;
  pthread_sigmask(SIG_BLOCK, &mask, &previous);
  if (has_info) {
    former.sa_sigaction(signal, info, context);
  } else {
    former.sa_handler(signal);
  }
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

void OnBusError(int signal, siginfo_t* info, void* context) {
  if (IsSynchronous(*info)) {
    const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
    for (FaultFrame* frame = innermost; frame != nullptr; frame = frame->outer) {
      if (address - frame->begin < frame->size) {  // wraps, and is large, below the range
        frame->fault = address;
        siglongjmp(frame->jump, 1);
      }
    }
  }
  CallFormer(signal, info, context);
}

bool InstallHandler() {
  sigaction(SIGBUS, nullptr, &former);
  struct sigaction action {};
  action.sa_sigaction = OnBusError;
  sigemptyset(&action.sa_mask);
  // SA_NODEFER: the former handler gets the signal mask that it asked for, not ours. SA_ONSTACK: it
  // may rely on an alternate stack.
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  return sigaction(SIGBUS, &action, nullptr) == 0;
}

}  // namespace

void EnterFaultFrame(FaultFrame* frame) {
  [[maybe_unused]] static const bool kInstalled = InstallHandler();
  frame->outer = innermost;
  // The handler runs on this thread: the compiler alone could reorder.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  innermost = frame;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void LeaveFaultFrame(const FaultFrame* frame) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  innermost = frame->outer;
}

void RecoverFaultFrame(const FaultFrame* frame) {
  LeaveFaultFrame(frame);
  // A handler that was installed after ours and calls it may have blocked the signal.
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &mask, nullptr);
}

}  // namespace reshard
