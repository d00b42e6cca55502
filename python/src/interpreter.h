// The interpreter: WithoutGil gives up the GIL for a while, CallPython calls what is written in
// Python, and fork_count tells that the process was forked meanwhile.
#ifndef RESHARD_PYTHON_INTERPRETER_H_
#define RESHARD_PYTHON_INTERPRETER_H_

#include <cxxabi.h>
#include <nanobind/nanobind.h>

#include <chrono>
#include <cstdint>
#include <thread>

namespace reshard::python {

// Calls `function`, which does nothing but call functions of Python that may ask for the GIL.
//
// Before Python 3.14 a thread that asks for the GIL while the interpreter ends is ended by
// pthread_exit. That unwinds its stack, and frames of nanobind, which are noexcept, abort the
// process. Here such a thread never returns and keeps its stack, as in Python 3.14; the process
// ends without it.
template <typename Function>
auto HoldAtExit(const Function& function) {
  try {
    return function();
  } catch (abi::__forced_unwind&) {
    // The end of this block would abort, too.
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

// Gives up the GIL, which the thread holds, as long as it lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() {
    HoldAtExit([this] { PyEval_RestoreThread(state_); });
  }

 private:
  PyThreadState* state_;
};

// Calls what may be written in Python: its code gives up the GIL now and then. Called with the GIL
// held.
inline nanobind::object CallPython(nanobind::handle function, const nanobind::tuple& arguments) {
  PyObject* const result =
      HoldAtExit([&] { return PyObject_CallObject(function.ptr(), arguments.ptr()); });
  if (result == nullptr) throw nanobind::python_error();
  return nanobind::steal(result);
}

// How often the process was forked on its way here since the module was loaded. A child has only
// the thread that forked: what other threads were at is never finished there.
inline uint64_t fork_count = 0;

}  // namespace reshard::python

#endif  // RESHARD_PYTHON_INTERPRETER_H_
