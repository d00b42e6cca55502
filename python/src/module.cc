#include "python/src/module.h"

#include <nanobind/nanobind.h>

#include <exception>
#include <string>

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
        nb::make_tuple(code, Text(error.status().message()), error.status().system_error());
    PyErr_SetObject(static_cast<PyObject*>(type), arguments.ptr());
  }
}

void AddModule(nb::module_& module) {
  module.attr("__version__") = nb::str(kVersion.data(), kVersion.size());
  PyObject* type = PyErr_NewException("reshard._reshard.StatusError", nullptr, nullptr);
  if (type == nullptr) throw nb::python_error();
  module.attr("StatusError") = nb::steal(type);
  nb::register_exception_translator(RaiseStatusError, type);
  AddCalls(module);
  AddDlpack(module);
  AddInspection(module);
  AddStore(module);
  AddWriting(module);
}

}  // namespace
}  // namespace reshard::python

NB_MODULE(_reshard, module) { reshard::python::AddModule(module); }
