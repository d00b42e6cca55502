#include "tests/support/encrypted_bytes.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace reshard {
namespace {

void Want(int done) {
  if (done != 1) throw std::runtime_error("OpenSSL does not encrypt");
}

const unsigned char* BytesIn(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* BytesIn(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

std::string Word32(size_t number) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(number >> shift);
  return bytes;
}

}  // namespace

std::string Encrypted(std::string_view mode, std::string_view key, std::string_view plain,
                      size_t block_bytes) {
  const bool is_gcm = mode == "AES-GCM";
  const std::string algorithm =
      mode == "SM4-CBC" ? "SM4-CBC"
                        : "AES-" + std::to_string(8 * key.size()) + std::string(mode.substr(3));
  const std::unique_ptr<EVP_CIPHER, decltype(&EVP_CIPHER_free)> cipher(
      EVP_CIPHER_fetch(nullptr, algorithm.c_str(), nullptr), EVP_CIPHER_free);
  if (cipher == nullptr) throw std::runtime_error("OpenSSL has no " + algorithm);
  const std::string magic =
      Word32(is_gcm ? 0x7F3A5ED8 : (mode == "AES-CBC" ? 0x7F3A5ED9 : 0x7F3A5EDA));
  std::string file;
  for (size_t number = 0; !plain.empty(); ++number) {
    const std::string_view block = plain.substr(0, block_bytes);
    plain.remove_prefix(block.size());
    std::string iv(16, '\0');
    for (size_t i = 0; i < iv.size(); ++i) iv[i] = static_cast<char>(31 * number + 7 * i + 1);
    const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(
        EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
    Want(EVP_EncryptInit_ex2(context.get(), cipher.get(), BytesIn(key), BytesIn(iv), nullptr));
    std::string text(block.size() + 16, '\0');
    int length = 0;
    Want(EVP_EncryptUpdate(context.get(), BytesIn(text), &length, BytesIn(block),
                           static_cast<int>(block.size())));
    int rest = 0;
    Want(EVP_EncryptFinal_ex(context.get(), BytesIn(text) + length, &rest));
    text.resize(static_cast<size_t>(length) + static_cast<size_t>(rest));
    file += magic;
    if (is_gcm) {
      std::string tag(16, '\0');
      Want(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, 16, tag.data()));
      file += tag;
    }
    const size_t besides = 4 + iv.size() + 4;
    file += Word32(besides + text.size());
    file += Word32(iv.size());
    file += iv;
    file += Word32(text.size());
    file += text;
  }
  return file;
}

std::shared_ptr<const EncryptionKey> KeyOf(std::string_view bytes) {
  return *EncryptionKey::FromBytes(std::as_bytes(std::span(bytes)));
}

}  // namespace reshard
