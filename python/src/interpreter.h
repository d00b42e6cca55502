// The interpreter. WithoutGil gives up the GIL for a while, CallPython calls Python code, and
// fork_count tells whether the process was forked meanwhile.
#ifndef RESHARD_PYTHON_INTERPRETER_H_
#define RESHARD_PYTHON_INTERPRETER_H_

#include <nanobind/nanobind.h>

#include <cstdint>

#include "python/src/held_calls.h"

namespace reshard::python {

// Gives up the GIL, which the thread holds, as long as it lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() { HeldRestoreThread(state_); }

 private:
  PyThreadState* state_;
};

// Calls a function that may be Python code, which gives up the GIL now and then. Called with the
// GIL held.
inline nanobind::object CallPython(nanobind::handle function, const nanobind::tuple& arguments) {
  PyObject* const result = HeldCallObject(function.ptr(), arguments.ptr());
  if (result == nullptr) throw nanobind::python_error();
  return nanobind::steal(result);
}

// How often the process was forked on its way here since the module was loaded. A child has only
// the thread that forked, so the work of other threads never finishes there.
inline uint64_t fork_count = 0;

}  // namespace reshard::python

#endif  // RESHARD_PYTHON_INTERPRETER_H_
