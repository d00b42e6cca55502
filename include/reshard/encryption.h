// EncryptionKey: the key to read and write encrypted .ckpt files.
//
// A key is immutable and any number of threads may use it. Its bytes are in memory that is locked
// and left out of core dumps if the system allows that. The destructor overwrites them. No message
// contains them. While a block is encrypted or decrypted, OpenSSL keeps derived values in ordinary
// memory. To keep these out of core dumps, forbid core dumps with prctl(PR_SET_DUMPABLE, 0), as the
// command line does.
//
// Implemented in src/cipher.
#ifndef RESHARD_ENCRYPTION_H_
#define RESHARD_ENCRYPTION_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard {
inline namespace v0_1 {

// Returns "AES-GCM", as MindSpore's `enc_mode` has it.
std::string_view EncryptionModeName(TargetSpec::EncryptionMode mode);

// Returns the mode with exactly this name.
std::optional<TargetSpec::EncryptionMode> ParseEncryptionMode(std::string_view name);

class EncryptionKey {
 public:
  // Reads a key of 16, 24 or 32 bytes out of a file or a pipe, as MindSpore's `enc_key` has them.
  // One line feed behind these is left out.
  // Errors: kNotFound, kIo; kInvalidArgument for another length.
  static Result<std::shared_ptr<const EncryptionKey>> FromFile(const std::string& path);

  // As FromFile, from an environment variable, which stays set. Other threads must not change the
  // environment meanwhile. Errors: kNotFound; kInvalidArgument for another length.
  static Result<std::shared_ptr<const EncryptionKey>> FromEnvironment(const std::string& variable);

  // Copies a key; the caller overwrites `bytes`. Errors: kInvalidArgument, kResourceExhausted.
  static Result<std::shared_ptr<const EncryptionKey>> FromBytes(std::span<const std::byte> bytes);

  EncryptionKey(const EncryptionKey&) = delete;
  EncryptionKey& operator=(const EncryptionKey&) = delete;
  ~EncryptionKey();

  std::span<const std::byte> bytes() const { return {bytes_, size_}; }
  // The path of the file that it was read from; empty: none.
  const std::string& file() const { return file_; }

 private:
  EncryptionKey() = default;
  static Result<std::shared_ptr<const EncryptionKey>> Make(std::span<const std::byte> bytes,
                                                           std::string file);

  std::byte* bytes_ = nullptr;  // of OpenSSL's secure heap
  size_t size_ = 0;
  std::string file_;
};

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_ENCRYPTION_H_
