// Preloaded into user-mode Linux: lets it run on hosts whose processors have more registers than it
// knows.
//
// It saves a process's extended registers in a buffer of its own and sets them from it again. The
// host refuses to set less than all that it has (EFAULT, on processors with AMX): then what is
// missing is taken from what the process has now, which user-mode Linux never changes.
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace {

// Large enough for all registers that a processor has today (11 KiB with AMX).
constexpr size_t kMostBytes = size_t{64} << 10;

long SetAllRegisters(pid_t process, void* kind, const iovec& some) {
  alignas(64) static std::byte bytes[kMostBytes];  // the caller has one thread
  iovec all = {bytes, sizeof(bytes)};
  if (syscall(SYS_ptrace, PTRACE_GETREGSET, process, kind, &all) != 0) return -1;
  std::copy_n(static_cast<const std::byte*>(some.iov_base), std::min(some.iov_len, all.iov_len),
              bytes);
  return syscall(SYS_ptrace, PTRACE_SETREGSET, process, kind, &all);
}

}  // namespace

// In place of ptrace, whose arguments arrive as these do.
extern "C" long Ptrace(int request, pid_t process, void* address, void* data) __asm__("ptrace");

long Ptrace(int request, pid_t process, void* address, void* data) {
  if (request == PTRACE_SETREGSET && reinterpret_cast<uintptr_t>(address) == NT_X86_XSTATE) {
    return SetAllRegisters(process, address, *static_cast<const iovec*>(data));
  }
  // The system call stores what the function returns.
  if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER) {
    long word = 0;
    return syscall(SYS_ptrace, request, process, address, &word) == 0 ? word : -1;
  }
  return syscall(SYS_ptrace, request, process, address, data);
}
