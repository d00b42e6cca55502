// Common code of the module _reshard: turns a Status into an exception, and any bytes into text
// that Python accepts.
//
// Called with the GIL held.
#ifndef RESHARD_PYTHON_MODULE_H_
#define RESHARD_PYTHON_MODULE_H_

#include <nanobind/nanobind.h>

#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "reshard/encryption.h"
#include "reshard/status.h"

namespace reshard::python {

// A Status on its way to Python, which sees _reshard.StatusError(code, message, errno, option).
class StatusError : public std::exception {
 public:
  explicit StatusError(Status status) : status_(std::move(status)) {}
  const char* what() const noexcept override { return status_.message().c_str(); }
  const Status& status() const { return status_; }

 private:
  Status status_;
};

inline void Check(const Status& status) {
  if (!status.ok()) throw StatusError(status);
}

template <typename T>
T Take(Result<T> result) {
  if (!result.ok()) throw StatusError(result.status());
  return *std::move(result);
}

// As os.fsdecode does it: bytes that are no UTF-8 become surrogates.
inline nanobind::object Text(std::string_view text) {
  PyObject* decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  if (decoded == nullptr) throw nanobind::python_error();
  return nanobind::steal(decoded);
}

inline std::string Bytes(const nanobind::bytes& bytes) {
  return std::string(bytes.c_str(), bytes.size());
}

// The key with these bytes; null for no bytes.
inline std::shared_ptr<const EncryptionKey> KeyOf(const nanobind::bytes& key) {
  if (key.size() == 0) return nullptr;
  const std::span<const char> bytes(key.c_str(), key.size());
  return Take(EncryptionKey::FromBytes(std::as_bytes(bytes)));
}

// A key that came from a file or the environment; its bytes stay in C++.
struct Key {
  std::shared_ptr<const EncryptionKey> key;
};

inline std::shared_ptr<const EncryptionKey> KeyOf(const Key* key) {
  return key == nullptr ? nullptr : key->key;
}

void AddCalls(nanobind::module_& module);
void AddDlpack(nanobind::module_& module);
void AddPrograms(nanobind::module_& module);
void AddStore(nanobind::module_& module);
void AddStrategies(nanobind::module_& module);
void AddView(nanobind::module_& module);
void AddWriting(nanobind::module_& module);

}  // namespace reshard::python

#endif  // RESHARD_PYTHON_MODULE_H_
