// Chunks of a target file on their way to its blocks.
#ifndef RESHARD_SRC_WRITE_ENCRYPTED_CHUNK_H_
#define RESHARD_SRC_WRITE_ENCRYPTED_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reshard/status.h"
#include "src/cipher/encrypted_block.h"

namespace reshard {

// The encrypted bytes to write for a chunk. Move-only. It refers to the chunk, which has to stay.
struct EncryptedChunk {
  EncryptedChunk() = default;
  EncryptedChunk(EncryptedChunk&&) = default;
  EncryptedChunk& operator=(EncryptedChunk&&) = default;

  uint64_t offset = 0;                             // in the encrypted file
  std::vector<std::span<const std::byte>> pieces;  // one behind the other: of the chunk and `ends`
  std::vector<BlockEnds> ends;
};

// Encrypts, in place, the plain bytes from `offset` of a file on. They are whole blocks of
// kPlainBlockBytes, except for the file's last block. Any number of threads. Errors: as
// BlockCipher::Encrypt.
Result<EncryptedChunk> EncryptChunk(const BlockCipher& cipher, uint64_t offset,
                                    std::span<std::byte> chunk);

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_ENCRYPTED_CHUNK_H_
