// Reads mapped files whose pages may be gone.
//
// Touching a page of a map fails with SIGBUS if the file has shrunk or its disk fails. Guarded()
// turns that into a value. The handler is installed at the first use and stays. Faults outside
// guarded ranges go to the earlier handler. Any thread, any number at a time; guards may nest.
#ifndef RESHARD_SRC_OS_FAULT_GUARD_H_
#define RESHARD_SRC_OS_FAULT_GUARD_H_

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace reshard {

// One guarded call on this thread's stack, seen by the signal handler. Only for Guarded().
struct FaultFrame {
  uintptr_t begin = 0;
  size_t size = 0;
  uintptr_t fault = 0;          // address that failed, set by the handler
  FaultFrame* outer = nullptr;  // the guard around this one
  sigjmp_buf jump;
};

void EnterFaultFrame(FaultFrame* frame);
void LeaveFaultFrame(const FaultFrame* frame);
// After the jump out of the handler.
void RecoverFaultFrame(const FaultFrame* frame);

// Calls reader(), which may touch the `size` mapped bytes at `base`. A fault there abandons it
// midway: it must not make objects with destructors, take locks, allocate or throw. Makes no system
// call unless there is a fault. Returns no value if reader returned. After a fault, returns the
// offset from `base` of a byte that could not be read.
template <typename Reader>
[[gnu::noinline]] std::optional<size_t> Guarded(const void* base, size_t size, Reader reader) {
  static_assert(std::is_trivially_destructible_v<Reader>, "a fault would skip its destructor");
  FaultFrame frame;
  frame.begin = reinterpret_cast<uintptr_t>(base);
  frame.size = size;
  // 0: the signal mask is not saved, which would take a system call each time.
  if (sigsetjmp(frame.jump, 0) != 0) {
    RecoverFaultFrame(&frame);
    return frame.fault - frame.begin;
  }
  EnterFaultFrame(&frame);
  reader();
  LeaveFaultFrame(&frame);
  return std::nullopt;
}

}  // namespace reshard

#endif  // RESHARD_SRC_OS_FAULT_GUARD_H_
