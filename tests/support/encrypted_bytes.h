// Builds encrypted .ckpt files for tests, as MindSpore writes them, of blocks as small as a test
// wants.
//
// Shares no code with src/cipher.
#ifndef RESHARD_TESTS_SUPPORT_ENCRYPTED_BYTES_H_
#define RESHARD_TESTS_SUPPORT_ENCRYPTED_BYTES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "reshard/encryption.h"

namespace reshard {

// `mode` as MindSpore has it: "AES-GCM", "AES-CBC" or "SM4-CBC". The same bytes each time: whether
// a wrong key is noticed in a CBC block depends on its initialization vector. Throws where OpenSSL
// fails.
std::string Encrypted(std::string_view mode, std::string_view key, std::string_view plain,
                      size_t block_bytes = size_t{64} << 20);

// The key of these bytes, which have to be one.
std::shared_ptr<const EncryptionKey> KeyOf(std::string_view bytes);

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_ENCRYPTED_BYTES_H_
