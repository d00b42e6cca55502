// Blocks of an encrypted .ckpt file, as MindSpore writes them: a header and the cipher bytes, one
// block after the other. The plain bytes of all blocks are the checkpoint.
//
// Takes bytes, opens no file. BlockCipher is immutable: any number of threads may use one.
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

// Returns the mode of a block that begins with `head`, kMagicBytes or more; no value if it is not a
// block.
std::optional<TargetSpec::EncryptionMode> EncryptionModeOf(std::span<const std::byte> head);

constexpr size_t BlockHeaderBytes(TargetSpec::EncryptionMode mode) {
  return mode == TargetSpec::EncryptionMode::kAesGcm ? kMostBlockHeader : 32;
}

struct EncryptedBlock {
  std::array<std::byte, kCipherUnit> iv{};
  std::array<std::byte, kCipherUnit> tag{};  // GCM's
  uint32_t cipher_bytes = 0;                 // not 0; of CBC so many whole units
};

// Parses the header of a block. `header` begins the block and reaches the header's end, or the end
// of the file. The file has `left` bytes from the block's begin on. Errors: kCorrupt, naming the
// expected and found values, and the place in the block.
Result<EncryptedBlock> ParseBlockHeader(TargetSpec::EncryptionMode mode,
                                        std::span<const std::byte> header, uint64_t left);

// The bytes of a block that do not take the place of its plain bytes.
struct BlockEnds {
  std::string header;  // before all else
  std::string tail;    // of CBC: the last unit
};

// Copies cipher bytes of a block into all of `buffer`. `offset` counts from the first cipher byte.
using CipherBytes = std::function<Status(uint64_t offset, std::span<std::byte> buffer)>;

// Decrypts and makes blocks of one mode with one key. Errors of all functions: as `cipher`;
// kInternal for errors of OpenSSL; kCorrupt if the key does not fit the block, without further
// details.
class BlockCipher {
 public:
  // Errors: kInvalidArgument for a key of a length that the mode does not take; kUnsupported if
  // OpenSSL was built without the mode.
  static Result<BlockCipher> Make(std::shared_ptr<const EncryptionKey> key,
                                  TargetSpec::EncryptionMode mode);

  TargetSpec::EncryptionMode mode() const { return mode_; }

  // Returns how many plain bytes the block has, one or more; reads the last cipher bytes. The
  // padding of CBC, the only evidence for a key there, is checked.
  Result<uint32_t> PlainBytes(const EncryptedBlock& block, const CipherBytes& cipher) const;

  // Reads the whole block and checks GCM's tag. CBC blocks have no tag and are not read.
  Status Authenticate(const EncryptedBlock& block, const CipherBytes& cipher) const;

  // Decrypts the plain bytes from `offset` on. The block has to have them. Bytes of a GCM block are
  // valid only if Authenticate has returned ok.
  Status Decrypt(const EncryptedBlock& block, uint64_t offset, std::span<std::byte> plain,
                 const CipherBytes& cipher) const;

  // Does both for all plain bytes of a GCM block, with a single read. After an error, `plain` has
  // no plain bytes.
  Status DecryptWhole(const EncryptedBlock& block, std::span<std::byte> plain,
                      const CipherBytes& cipher) const;

  // Makes a block of these plain bytes, one or more, in place, with a new initialization vector.
  // For CBC, the last bytes, fewer than a unit, stay plain: the block has `tail` in their place.
  Result<BlockEnds> Encrypt(std::span<std::byte> plain) const;

 private:
  struct Algorithms;
  BlockCipher(std::shared_ptr<const EncryptionKey> key, TargetSpec::EncryptionMode mode,
              std::shared_ptr<const Algorithms> algorithms)
      : key_(std::move(key)), mode_(mode), algorithms_(std::move(algorithms)) {}

  std::shared_ptr<const EncryptionKey> key_;
  TargetSpec::EncryptionMode mode_;
  std::shared_ptr<const Algorithms> algorithms_;
};

// The plain bytes of each written block but the last. MindSpore uses 64 MiB and accepts any size. A
// chunk of a target file has whole blocks of this size, so any thread can make them alone. A window
// of a source file has whole blocks, too, so that one pass checks their tags and decrypts.
inline constexpr uint64_t kPlainBlockBytes = uint64_t{512} << 10;

// Returns how many bytes a file of `plain` bytes has once it is encrypted.
uint64_t EncryptedBytes(TargetSpec::EncryptionMode mode, uint64_t plain);

// Returns 32 hexadecimal digits that tell whether two keys are equal, and reveal no more. Errors:
// kInternal for errors of OpenSSL.
Result<std::string> KeyCheck(const EncryptionKey& key);

// Returns ok for a key that the mode takes. Errors: kInvalidArgument, kUnsupported, as
// BlockCipher::Make.
Status CheckKey(const EncryptionKey& key, TargetSpec::EncryptionMode mode);

}  // namespace reshard

#endif  // RESHARD_SRC_CIPHER_ENCRYPTED_BLOCK_H_
