#include "reshard/encryption.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

constexpr size_t kMostKeyBytes = 32;

bool IsKeyLength(size_t length) { return length == 16 || length == 24 || length == 32; }

Status WrongLength(size_t length, std::string_view of) {
  return InvalidArgumentError(
      fmt::format("{}: expected a key of 16, 24 or 32 bytes, found {}{} bytes", of,
                  length > kMostKeyBytes ? "more than " : "", std::min(length, kMostKeyBytes)));
}

// Without the line feed behind a key.
size_t KeyLength(std::span<const std::byte> bytes) {
  const bool ends_line = !bytes.empty() && bytes.back() == std::byte{'\n'};
  return ends_line && IsKeyLength(bytes.size() - 1) ? bytes.size() - 1 : bytes.size();
}

// As much as a key and its line feed, and one byte that tells that there is more.
using KeyBuffer = std::array<std::byte, kMostKeyBytes + 2>;

// Overwrites a buffer when it goes.
class Cleansing {
 public:
  explicit Cleansing(KeyBuffer& buffer) : buffer_(buffer) {}
  Cleansing(const Cleansing&) = delete;
  Cleansing& operator=(const Cleansing&) = delete;
  ~Cleansing() { OPENSSL_cleanse(buffer_.data(), buffer_.size()); }

 private:
  KeyBuffer& buffer_;
};

// Without a secure heap, or if it cannot be locked, OpenSSL returns ordinary memory.
void MakeSecureHeap() {
  static std::once_flag made;
  constexpr size_t kHeapBytes = 16384;
  std::call_once(made, [] { CRYPTO_secure_malloc_init(kHeapBytes, kMostKeyBytes); });
}

}  // namespace

Result<std::shared_ptr<const EncryptionKey>> EncryptionKey::FromBytes(
    std::span<const std::byte> bytes) {
  return Make(bytes, "");
}

Result<std::shared_ptr<const EncryptionKey>> EncryptionKey::Make(std::span<const std::byte> bytes,
                                                                 std::string file) {
  if (!IsKeyLength(bytes.size())) return WrongLength(bytes.size(), "the key");
  MakeSecureHeap();
  const std::shared_ptr<EncryptionKey> key(new EncryptionKey());
  key->bytes_ = static_cast<std::byte*>(OPENSSL_secure_malloc(bytes.size()));
  if (key->bytes_ == nullptr) {
    return ResourceExhaustedError("no memory for a key; too many keys are in use");
  }
  key->size_ = bytes.size();
  key->file_ = std::move(file);
  std::memcpy(key->bytes_, bytes.data(), bytes.size());
  return std::shared_ptr<const EncryptionKey>(key);
}

EncryptionKey::~EncryptionKey() { OPENSSL_secure_clear_free(bytes_, size_); }

Result<std::shared_ptr<const EncryptionKey>> EncryptionKey::FromFile(const std::string& path) {
  KeyBuffer buffer;
  const Cleansing cleansing(buffer);
  std::ifstream file;
  file.rdbuf()->pubsetbuf(nullptr, 0);  // its buffer would keep the key
  errno = 0;
  file.open(path, std::ios::binary);
  if (!file.is_open()) {
    const int why = errno;
    const bool absent = why == ENOENT || why == ENOTDIR || why == ENAMETOOLONG;
    // If there is no such path, the text may be the key itself, which must not be shown.
    std::string message =
        absent ? fmt::format(
                     "there is no file of the name that was given ({} bytes, not shown, as "
                     "it may be the key); expected the path of a file with the key",
                     path.size())
               : fmt::format("{}: cannot read the key: {}", Escape(path), std::strerror(why));
    return Status(absent ? StatusCode::kNotFound : StatusCode::kIo, std::move(message), why);
  }
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  file.read(reinterpret_cast<char*>(buffer.data()), buffer.size());
  if (file.bad()) {
    const int why = errno;
    return IoError(fmt::format("{}: cannot read the key: {}", Escape(path), std::strerror(why)),
                   why);
  }
  const auto length = static_cast<size_t>(file.gcount());
  const size_t key_length = KeyLength(std::span(buffer).first(length));
  if (!IsKeyLength(key_length)) return WrongLength(key_length, Escape(path));
  return Make(std::span(buffer).first(key_length), path);
}

Result<std::shared_ptr<const EncryptionKey>> EncryptionKey::FromEnvironment(
    const std::string& variable) {
  const char* const value = std::getenv(variable.c_str());
  if (value == nullptr) {
    // It may be the key itself, which is never shown.
    return NotFoundError(fmt::format(
        "the environment has no variable of the name that was given ({} bytes, not shown, as it "
        "may be the key); expected the name of a variable, as in KEY for $KEY",
        variable.size()));
  }
  const auto bytes = std::as_bytes(std::span(value, strnlen(value, kMostKeyBytes + 2)));
  const size_t length = KeyLength(bytes);
  if (!IsKeyLength(length)) {
    return WrongLength(length, fmt::format("variable {}", Escape(variable)));
  }
  return FromBytes(bytes.first(length));
}

}  // namespace reshard
