// Blocks of an encrypted .ckpt file, as MindSpore writes them: a header and so many bytes of
// cipher, one block behind the other. The plain bytes of all blocks are the checkpoint.
//
// Takes bytes, opens nothing. BlockCipher is immutable: any number of threads may use one.
#ifndef RESHARD_SRC_CIPHER_ENCRYPTED_BLOCK_H_
#define RESHARD_SRC_CIPHER_ENCRYPTED_BLOCK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "reshard/encryption.h"
#include "reshard/status.h"

namespace reshard {

enum class EncryptionMode { kAesGcm, kAesCbc, kSm4Cbc };

// "AES-GCM", as MindSpore's `enc_mode` has it.
std::string_view NameOf(EncryptionMode mode);

inline constexpr size_t kMagicBytes = 4;
// A header has no more, and one has as many.
inline constexpr size_t kMostBlockHeader = 48;
// Bytes that a cipher takes at a time; a CBC block is padded to these.
inline constexpr size_t kCipherUnit = 16;

// Returns the mode of a block that begins with `head`, kMagicBytes or more; nothing where that is
// no block.
std::optional<EncryptionMode> EncryptionModeOf(std::span<const std::byte> head);

constexpr size_t BlockHeaderBytes(EncryptionMode mode) {
  return mode == EncryptionMode::kAesGcm ? kMostBlockHeader : 32;
}

struct EncryptedBlock {
  std::array<std::byte, kCipherUnit> iv{};
  std::array<std::byte, kCipherUnit> tag{};  // GCM's
  uint32_t cipher_bytes = 0;                 // not 0; of CBC so many whole units
};

// Returns what the header of a block says. `header` begins the block and ends with it, or with the
// file, of which `left` bytes are left from the block's first on.
// Errors: kCorrupt, naming what was expected and found, and where in the block.
Result<EncryptedBlock> ParseBlockHeader(EncryptionMode mode, std::span<const std::byte> header,
                                        uint64_t left);

// Copies cipher bytes of a block at an offset from the first of them.
using ReadCipherBytes = std::function<Status(uint64_t offset, std::span<std::byte> out)>;

// Decrypts blocks of one mode with one key. Errors of all functions: those of `read`, and kInternal
// for those of OpenSSL. kCorrupt for a block that does not fit the key; the message says no more.
class BlockCipher {
 public:
  // Errors: kInvalidArgument for a key of a length that the mode does not take; kUnsupported where
  // OpenSSL was built without the mode.
  static Result<BlockCipher> Make(std::shared_ptr<const EncryptionKey> key, EncryptionMode mode);

  EncryptionMode mode() const { return mode_; }

  // Returns how many plain bytes the block has, one or more; reads the last cipher bytes. The
  // padding of CBC, all that a key is known by there, is checked.
  Result<uint32_t> PlainBytes(const EncryptedBlock& block, const ReadCipherBytes& read) const;

  // Reads the whole block and checks GCM's tag. Of CBC blocks, which have none, reads nothing.
  Status Authenticate(const EncryptedBlock& block, const ReadCipherBytes& read) const;

  // Decrypts the plain bytes from `offset` on, which the block has to have. Those of a GCM block
  // mean nothing unless Authenticate has returned ok.
  Status Decrypt(const EncryptedBlock& block, uint64_t offset, std::span<std::byte> plain,
                 const ReadCipherBytes& read) const;

 private:
  struct Algorithms;
  BlockCipher(std::shared_ptr<const EncryptionKey> key, EncryptionMode mode,
              std::shared_ptr<const Algorithms> algorithms)
      : key_(std::move(key)), mode_(mode), algorithms_(std::move(algorithms)) {}

  std::shared_ptr<const EncryptionKey> key_;
  EncryptionMode mode_;
  std::shared_ptr<const Algorithms> algorithms_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_CIPHER_ENCRYPTED_BLOCK_H_
