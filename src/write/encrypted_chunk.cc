#include "src/write/encrypted_chunk.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "src/base/status_macros.h"

namespace reshard {

Result<EncryptedChunk> EncryptChunk(const BlockCipher& cipher, uint64_t offset,
                                    std::span<std::byte> chunk) {
  assert(offset % kPlainBlockBytes == 0);
  EncryptedChunk made;
  made.offset = EncryptedBytes(cipher.mode(), offset);
  made.ends.reserve(chunk.size() / kPlainBlockBytes + 1);  // pieces refer to them
  const auto add = [&made](std::span<const std::byte> piece) {
    if (!piece.empty()) made.pieces.push_back(piece);
  };
  while (!chunk.empty()) {
    const auto block = chunk.first(std::min<uint64_t>(chunk.size(), kPlainBlockBytes));
    RESHARD_ASSIGN_OR_RETURN(BlockEnds ends, cipher.Encrypt(block));
    made.ends.push_back(std::move(ends));
    const auto& [header, tail] = made.ends.back();
    add(std::as_bytes(std::span(header)));
    add(tail.empty() ? block : block.first(block.size() - block.size() % kCipherUnit));
    add(std::as_bytes(std::span(tail)));
    chunk = chunk.subspan(block.size());
  }
  return made;
}

}  // namespace reshard
