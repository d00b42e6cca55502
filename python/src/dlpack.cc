// Capsules of DLPack around the bytes of a NumPy array: NumPy's own refuse the element types that
// it does not know.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "python/src/interpreter.h"
#include "python/src/module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace reshard::python {
namespace {

using Bytes1D = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// dlpack.h, version 1.0: structs that consumers know by their layout.
struct DlTensor {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct Unversioned {
  DlTensor tensor;
  void* context;
  void (*deleter)(Unversioned*);
};

struct Versioned {
  uint32_t major;
  uint32_t minor;
  void* context;
  void (*deleter)(Versioned*);
  uint64_t flags;
  DlTensor tensor;
};

constexpr int32_t kCpu = 1;

// The data that a capsule owns: the struct for the consumer, and the memory that it points to.
template <typename Managed>
struct Exported {
  Managed managed = {};
  Bytes1D bytes;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements
};

template <typename Managed>
void Delete(Managed* managed) {
  // Consumers call from any thread, also after Python has ended. Then the array cannot be freed.
  if (Py_IsInitialized() == 0) return;
  const PyGILState_STATE state = HeldEnsureGil();
  delete static_cast<Exported<Managed>*>(managed->context);
  PyGILState_Release(state);
}

// For an unused capsule. A consumer renames the capsule that it takes.
template <typename Managed>
void DeleteUnused(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

constexpr const char* kUnversionedName = "dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";

template <typename Managed>
nb::object Export(Bytes1D bytes, std::vector<int64_t> shape, uint8_t code, uint8_t bits,
                  const char* name, PyCapsule_Destructor destructor) {
  auto exported = std::make_unique<Exported<Managed>>();
  exported->bytes = std::move(bytes);
  exported->shape = std::move(shape);
  exported->strides.resize(exported->shape.size());
  int64_t stride = 1;
  for (size_t d = exported->shape.size(); d-- > 0;) {
    exported->strides[d] = stride;
    stride *= exported->shape[d];
  }
  Managed& managed = exported->managed;
  managed.context = exported.get();
  managed.deleter = &Delete<Managed>;
  managed.tensor = {exported->bytes.data(),
                    kCpu,
                    0,
                    static_cast<int32_t>(exported->shape.size()),
                    code,
                    bits,
                    1,
                    exported->shape.data(),
                    exported->strides.data(),
                    0};
  PyObject* const capsule = PyCapsule_New(&managed, name, destructor);
  if (capsule == nullptr) throw nb::python_error();
  static_cast<void>(exported.release());
  return nb::steal(capsule);
}

// Returns a capsule of `bytes` as an array of C order with elements of DLPack's type `code` and
// `bits`. It keeps the array, and its taker may write to it.
nb::object Capsule(Bytes1D bytes, std::vector<int64_t> shape, uint8_t code, uint8_t bits,
                   bool versioned) {
  if (!versioned) {
    return Export<Unversioned>(
        std::move(bytes), std::move(shape), code, bits, kUnversionedName,
        [](PyObject* capsule) { DeleteUnused<Unversioned>(capsule, kUnversionedName); });
  }
  nb::object capsule =
      Export<Versioned>(std::move(bytes), std::move(shape), code, bits, kVersionedName,
                        [](PyObject* unused) { DeleteUnused<Versioned>(unused, kVersionedName); });
  static_cast<Versioned*>(PyCapsule_GetPointer(capsule.ptr(), kVersionedName))->major = 1;
  return capsule;
}

}  // namespace

void AddDlpack(nb::module_& module) {
  module.def("dlpack", &Capsule, "bytes"_a, "shape"_a, "code"_a, "bits"_a, "versioned"_a);
}

}  // namespace reshard::python
