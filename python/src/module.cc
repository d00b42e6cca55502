#include "python/src/module.h"

#include <nanobind/nanobind.h>
#include <pthread.h>

#include <exception>
#include <new>
#include <string>

#include "python/src/interpreter.h"
#include "reshard/status.h"
#include "reshard/version.h"

namespace nb = nanobind;

namespace reshard::python {
namespace {

void RaiseStatusError(const std::exception_ptr& thrown, void* type) {
  try {
    std::rethrow_exception(thrown);
  } catch (const StatusError& error) {
    const nb::object code = Text(StatusCodeName(error.status().code()));
    const nb::tuple arguments =
        nb::make_tuple(code, Text(error.status().message()), error.status().system_error(),
                       Text(error.status().option()));
    PyErr_SetObject(static_cast<PyObject*>(type), arguments.ptr());
  }
}

void AddModule(nb::module_& module) {
#ifdef NDEBUG
  // A daemon thread that is cut off at exit keeps the objects that it was using.
  nb::set_leak_warnings(false);
#endif
  module.attr("__version__") = nb::str(kVersion.data(), kVersion.size());
  PyObject* type = PyErr_NewException("reshard._reshard.StatusError", nullptr, nullptr);
  if (type == nullptr) throw nb::python_error();
  module.attr("StatusError") = nb::steal(type);
  nb::register_exception_translator(RaiseStatusError, type);
  if (pthread_atfork(nullptr, nullptr, [] { ++fork_count; }) != 0) throw std::bad_alloc();
  AddCalls(module);
  AddDlpack(module);
  AddPrograms(module);
  AddStore(module);
  AddStrategies(module);
  AddView(module);
  AddWriting(module);
}

}  // namespace
}  // namespace reshard::python

// nanobind's name for PyInit__reshard.
#define PyInit__reshard InitInMain
NB_MODULE(_reshard, module) { reshard::python::AddModule(module); }
#undef PyInit__reshard

extern "C" NB_EXPORT PyObject* PyInit__reshard() {
  // The module's data belong to the process, so another interpreter must not share them.
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    PyErr_SetString(PyExc_ImportError,
                    "reshard can be imported in the main interpreter only, not in subinterpreters");
    return nullptr;
  }
  return InitInMain();
}
