// EncryptBlock: for programs that write .ckpt files themselves. `convert` encrypts its own targets
// (TargetSpec::encryption).
//
// Implemented in src/cipher.
#ifndef RESHARD_ENCRYPT_H_
#define RESHARD_ENCRYPT_H_

#include <cstddef>
#include <span>
#include <string>

#include "reshard/encryption.h"
#include "reshard/status.h"

namespace reshard {
inline namespace v0_1 {

// The plain bytes of each block of a file but the last.
inline constexpr size_t kPlainBytesOfBlock = size_t{64} << 20;

// Returns the next bytes of a .ckpt file as an encrypted block, with an initialization vector of
// its own. Such blocks, one behind the other, are the encrypted file.
// Errors: kInvalidArgument for no plain bytes, more than kPlainBytesOfBlock, or a key of a length
// that the mode does not take; kUnsupported where OpenSSL was built without the mode; kInternal for
// errors of OpenSSL.
Result<std::string> EncryptBlock(const EncryptionKey& key, EncryptionMode mode,
                                 std::span<const std::byte> plain);

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_ENCRYPT_H_
