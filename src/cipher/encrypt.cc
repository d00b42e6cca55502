#include "reshard/encrypt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "src/base/status_macros.h"
#include "src/cipher/encrypted_block.h"

namespace reshard {
inline namespace v0_1 {

static_assert(kPlainBytesOfBlock == kPlainBlockBytes);

Result<std::string> EncryptBlock(const EncryptionKey& key, EncryptionMode mode,
                                 std::span<const std::byte> plain) {
  if (plain.empty() || plain.size() > kPlainBytesOfBlock) {
    return InvalidArgumentError(fmt::format("plain bytes: expected 1 to {} bytes, found {}",
                                            kPlainBytesOfBlock, plain.size()));
  }
  RESHARD_ASSIGN_OR_RETURN(BlockEncryption encryption, BlockEncryption::Begin(key, mode));
  const size_t rest = mode == EncryptionMode::kAesGcm ? 0 : plain.size() % kCipherUnit;
  const std::span<const std::byte> units = plain.first(plain.size() - rest);
  const size_t header_bytes = BlockHeaderBytes(mode);
  std::string block(header_bytes + units.size(), '\0');
  const std::span<std::byte> cipher =
      std::as_writable_bytes(std::span(block)).subspan(header_bytes);
  std::copy(units.begin(), units.end(), cipher.begin());
  RESHARD_RETURN_IF_ERROR(encryption.Update(cipher));
  RESHARD_ASSIGN_OR_RETURN(const BlockEncryption::Ends ends, encryption.Finish(plain.last(rest)));
  std::copy(ends.header.begin(), ends.header.end(), block.begin());
  return block + ends.tail;
}

}  // namespace v0_1
}  // namespace reshard
