// EncryptedPart: the plain bytes of a target file on their way to its blocks.
//
// Chunks come in the order of the file. Each block has an initialization vector of its own and its
// header when its last byte was encrypted, so it is written behind what follows it. Move-only; one
// thread at a time.
#ifndef RESHARD_SRC_WRITE_ENCRYPTED_PART_H_
#define RESHARD_SRC_WRITE_ENCRYPTED_PART_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reshard/encryption.h"
#include "reshard/status.h"
#include "src/cipher/encrypted_block.h"

namespace reshard {

// With what a target is encrypted.
struct Encryption {
  EncryptionMode mode = EncryptionMode::kAesGcm;
  std::shared_ptr<const EncryptionKey> key;
};

// What is to be written somewhere in the encrypted file.
struct EncryptedPiece {
  uint64_t offset = 0;
  std::span<const std::byte> bytes;  // of the chunk
  std::string own;                   // instead: a header, or the last unit
};

class EncryptedPart {
 public:
  // Of a file of `size` plain bytes.
  EncryptedPart(Encryption encryption, uint64_t size)
      : encryption_(std::move(encryption)), size_(size) {}

  // Encrypts, in place, the next bytes of the file, and adds what is to be written of them; of the
  // file's last bytes some may be left plain, which no piece has.
  // Errors: those of BlockEncryption.
  Status Add(std::span<std::byte> bytes, std::vector<EncryptedPiece>& pieces);

 private:
  // Encrypts bytes of one block.
  Status AddOfBlock(std::span<std::byte> bytes, std::vector<EncryptedPiece>& pieces);

  const Encryption encryption_;
  const uint64_t size_;
  uint64_t next_ = 0;  // plain byte
  std::optional<BlockEncryption> block_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_ENCRYPTED_PART_H_
