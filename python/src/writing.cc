// WriteCheckpoint as a function of _reshard.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "python/src/interpreter.h"
#include "python/src/module.h"
#include "reshard/checkpoint.h"
#include "reshard/encryption.h"
#include "reshard/options.h"
#include "reshard/tensor.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace reshard::python {
namespace {

using PlainBytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// `encryption` is a key, empty for none, and a mode. Each array is (name, dtype, shape, bytes); the
// dtype of a text is "str".
void Write(const nb::bytes& output, const nb::list& arrays, bool is_safetensors, bool states_crc,
           std::optional<bool> removes_redundancy,
           const std::pair<nb::bytes, std::string>& encryption) {
  const auto& [key, mode] = encryption;
  WriteCheckpointOptions options;
  options.output = Bytes(output);
  options.format = is_safetensors ? TargetFormat::kSafetensors : TargetFormat::kCkpt;
  options.states_crc = states_crc;
  options.removes_redundancy = removes_redundancy;
  options.force = true;
  options.encryption_key = KeyOf(key);
  if (options.encryption_key != nullptr) {
    options.encryption = ParseEncryptionMode(mode);
    if (!options.encryption) {
      throw StatusError(InvalidArgumentError(
          "`encryption`: expected AES-GCM, AES-CBC or SM4-CBC; found " + mode));
    }
  }
  std::vector<PlainBytes> held;
  std::vector<std::string> names;
  std::vector<ArrayToWrite> writes;
  names.reserve(arrays.size());  // views of the names are kept
  for (const nb::handle array : arrays) {
    const PlainBytes& bytes = held.emplace_back(nb::cast<PlainBytes>(array[3]));
    ArrayToWrite& write = writes.emplace_back();
    write.name = names.emplace_back(Bytes(nb::cast<nb::bytes>(array[0])));
    const auto type_name = nb::cast<std::string>(array[1]);
    const std::optional<DType> dtype = ParseDType(type_name);
    if (!dtype) throw StatusError(UnsupportedError("there is no element type " + type_name));
    if (*dtype == DType::kString) write.kind = ArrayKind::kText;
    write.dtype = *dtype;
    write.shape = nb::cast<Shape>(array[2]);
    write.bytes = std::as_bytes(std::span(bytes.data(), bytes.size()));
  }
  const WithoutGil released;
  static_cast<void>(Take(WriteCheckpoint(writes, options)));
}

}  // namespace

void AddWriting(nb::module_& module) {
  module.def("write_checkpoint", &Write, "output"_a, "arrays"_a, "is_safetensors"_a, "states_crc"_a,
             "removes_redundancy"_a.none(), "encryption"_a);
}

}  // namespace reshard::python
