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
#include <string>
#include <string_view>
#include <utility>

#include "reshard/encryption.h"
#include "reshard/status.h"

namespace reshard {

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

// What of a block is not where its plain bytes were.
struct BlockEnds {
  std::string header;  // before all else
  std::string tail;    // of CBC: the last unit
};

// Copies as many cipher bytes of a block as `buffer` has, from an offset on from the first of them.
using CipherBytes = std::function<Status(uint64_t offset, std::span<std::byte> buffer)>;

// Decrypts and makes blocks of one mode with one key. Errors of all functions: those of `cipher`,
// and kInternal for those of OpenSSL. kCorrupt for a block that does not fit the key; the message
// says no more.
class BlockCipher {
 public:
  // Errors: kInvalidArgument for a key of a length that the mode does not take; kUnsupported where
  // OpenSSL was built without the mode.
  static Result<BlockCipher> Make(std::shared_ptr<const EncryptionKey> key, EncryptionMode mode);

  EncryptionMode mode() const { return mode_; }

  // Returns how many plain bytes the block has, one or more; reads the last cipher bytes. The
  // padding of CBC, all that a key is known by there, is checked.
  Result<uint32_t> PlainBytes(const EncryptedBlock& block, const CipherBytes& cipher) const;

  // Reads the whole block and checks GCM's tag. Of CBC blocks, which have none, reads nothing.
  Status Authenticate(const EncryptedBlock& block, const CipherBytes& cipher) const;

  // Decrypts the plain bytes from `offset` on, which the block has to have. Those of a GCM block
  // mean nothing unless Authenticate has returned ok.
  Status Decrypt(const EncryptedBlock& block, uint64_t offset, std::span<std::byte> plain,
                 const CipherBytes& cipher) const;

  // Does both for all plain bytes of a GCM block, which is read once. Where it fails, nothing of
  // them is in `plain`.
  Status DecryptWhole(const EncryptedBlock& block, std::span<std::byte> plain,
                      const CipherBytes& cipher) const;

  // Makes a block of these plain bytes, one or more, in place, with an initialization vector of its
  // own. Of CBC the last bytes, fewer than a unit, stay plain: the block ends with `tail` in their
  // place.
  Result<BlockEnds> Encrypt(std::span<std::byte> plain) const;

 private:
  struct Algorithms;
  BlockCipher(std::shared_ptr<const EncryptionKey> key, EncryptionMode mode,
              std::shared_ptr<const Algorithms> algorithms)
      : key_(std::move(key)), mode_(mode), algorithms_(std::move(algorithms)) {}

  std::shared_ptr<const EncryptionKey> key_;
  EncryptionMode mode_;
  std::shared_ptr<const Algorithms> algorithms_;
};

// The plain bytes of each block that is written, but the last. MindSpore has 64 MiB and takes any.
// These are so few that a chunk of a target file has whole blocks, which any thread makes without
// another, and a window of a source file, too, so that one pass checks their tags and decrypts.
inline constexpr uint64_t kPlainBlockBytes = uint64_t{512} << 10;

// Returns how many bytes a file of `plain` bytes has once it is encrypted.
uint64_t EncryptedBytes(EncryptionMode mode, uint64_t plain);

// Returns 32 hexadecimal digits that tell whether two keys are the same, and nothing else of them.
// Errors: kInternal for those of OpenSSL.
Result<std::string> KeyCheck(const EncryptionKey& key);

// Returns ok for a key that the mode takes. Errors: kInvalidArgument, kUnsupported, as
// BlockCipher::Make.
Status CheckKey(const EncryptionKey& key, EncryptionMode mode);

}  // namespace reshard

#endif  // RESHARD_SRC_CIPHER_ENCRYPTED_BLOCK_H_
