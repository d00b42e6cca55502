// EncryptBlock as a function of _reshard.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "python/src/module.h"
#include "reshard/encrypt.h"
#include "reshard/encryption.h"
#include "reshard/status.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace reshard::python {
namespace {

using PlainBytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::bytes EncryptedBlock(const nb::bytes& key, const std::string& mode, const PlainBytes& plain) {
  const std::shared_ptr<const EncryptionKey> encryption = KeyOf(key);
  const std::optional<EncryptionMode> parsed = ParseEncryptionMode(mode);
  if (encryption == nullptr || !parsed) {
    throw StatusError(
        InvalidArgumentError("expected a key, and AES-GCM, AES-CBC or SM4-CBC; found " + mode));
  }
  std::string block;
  {
    const std::span<const uint8_t> bytes(plain.data(), plain.size());
    const nb::gil_scoped_release released;
    block = Take(EncryptBlock(*encryption, *parsed, std::as_bytes(bytes)));
  }
  return nb::bytes(block.data(), block.size());
}

}  // namespace

void AddBlockEncryption(nb::module_& module) {
  module.attr("plain_bytes_of_block") = kPlainBytesOfBlock;
  module.def("encrypted_block", &EncryptedBlock, "key"_a, "mode"_a, "plain"_a);
}

}  // namespace reshard::python
