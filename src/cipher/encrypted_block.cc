#include "src/cipher/encrypted_block.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

#include "src/base/status_macros.h"

namespace reshard {

namespace {

struct FreeCipherContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, FreeCipherContext>;

struct ModeFormat {
  uint32_t magic;
  std::string_view name;
};
// By TargetSpec::EncryptionMode.
constexpr std::array<ModeFormat, 3> kModes = {{
    {0x7F3A5ED8, "AES-GCM"},
    {0x7F3A5ED9, "AES-CBC"},
    {0x7F3A5EDA, "SM4-CBC"},
}};

constexpr size_t kIvBytes = 16;
constexpr size_t kTagBytes = 16;
constexpr size_t kGcmNonceBytes = 12;
// The bytes that a header counts besides the cipher bytes: both lengths and the initialization
// vector.
constexpr uint64_t kBesidesCipher = 2 * sizeof(uint32_t) + kIvBytes;
// The counter of the first unit of a GCM block.
constexpr uint32_t kFirstCounter = 2;

// Cipher bytes that are read and decrypted at a time: they stay in a core's cache.
constexpr size_t kStepBytes = size_t{256} << 10;

uint32_t LittleEndian32(std::span<const std::byte> bytes) {
  uint32_t number = 0;
  for (size_t i = sizeof(number); i-- > 0;) {
    number = number << 8 | std::to_integer<uint32_t>(bytes[i]);
  }
  return number;
}

const unsigned char* Unsigned(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}
unsigned char* Unsigned(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

Status OpenSslError() {
  ERR_clear_error();  // the thread's list, which no other code reads
  return InternalError("OpenSSL failed; check its configuration");
}

Status WrongKeyOrDamaged(std::string_view what) {
  return CorruptError(
      fmt::format("{}: the key (`key`) is not the one that the file was encrypted with, or the "
                  "file is damaged; "
                  "give that key, or copy the file again",
                  what));
}

Status NoTag() { return WrongKeyOrDamaged("the block's tag does not fit its bytes"); }

// An operand of GCM: a polynomial over GF(2), the coefficient of x^0 first.
using GcmUnit = std::array<std::byte, kCipherUnit>;

// The product in GCM's field. Takes as long for any factors: one is a secret.
GcmUnit Multiply(const GcmUnit& left, const GcmUnit& right) {
  const auto half = [](const GcmUnit& unit, size_t at) {
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof(number); ++i) {
      number = number << 8 | std::to_integer<uint64_t>(unit[at + i]);
    }
    return number;
  };
  constexpr uint64_t kReduction = uint64_t{0xe1} << 56;              // x^128 is 1 + x + x^2 + x^7
  std::array<uint64_t, 2> power = {half(right, 0), half(right, 8)};  // right * x^i
  std::array<uint64_t, 2> sum{};
  for (size_t i = 0; i < 8 * kCipherUnit; ++i) {
    const uint64_t bit = std::to_integer<uint64_t>(left[i / 8]) >> (7 - i % 8) & 1;
    sum[0] ^= -bit & power[0];
    sum[1] ^= -bit & power[1];
    const uint64_t carry = power[1] & 1;
    power[1] = power[0] << 63 | power[1] >> 1;
    power[0] = power[0] >> 1 ^ (-carry & kReduction);
  }
  GcmUnit product;
  for (size_t i = 0; i < product.size(); ++i) {
    product[i] = static_cast<std::byte>(sum[i / 8] >> (56 - 8 * (i % 8)));
  }
  return product;
}

// GCM's last unit: the numbers of bits of the authenticated data and of the cipher text.
GcmUnit GcmLengths(uint64_t additional_bytes, uint64_t cipher_bytes) {
  GcmUnit lengths;
  for (size_t i = 0; i < 8; ++i) {
    lengths[i] = static_cast<std::byte>(8 * additional_bytes >> (56 - 8 * i));
    lengths[8 + i] = static_cast<std::byte>(8 * cipher_bytes >> (56 - 8 * i));
  }
  return lengths;
}

// One pass over bytes of a block, in place, from one of its units on. Its copy of the key goes with
// it.
class CipherPass {
 public:
  enum Direction { kDecrypt = 0, kEncrypt = 1 };  // as OpenSSL has them

  // `nonce` has 16 bytes; GCM takes the first 12.
  static Result<CipherPass> Begin(const EVP_CIPHER* algorithm, const EncryptionKey& key,
                                  const std::byte* nonce, Direction direction) {
    CipherPass made;
    if (made.context_ == nullptr ||
        EVP_CipherInit_ex2(made.context_.get(), algorithm, Unsigned(key.bytes().data()),
                           Unsigned(nonce), direction, nullptr) != 1 ||
        EVP_CIPHER_CTX_set_padding(made.context_.get(), 0) != 1) {
      return OpenSslError();
    }
    return made;
  }

  // Of CBC whole units. At most kStepBytes. Returns whether that went well.
  bool Update(std::span<std::byte> bytes) {
    int length = 0;
    return EVP_CipherUpdate(context_.get(), Unsigned(bytes.data()), &length, Unsigned(bytes.data()),
                            static_cast<int>(bytes.size())) == 1 &&
           length == static_cast<int>(bytes.size());
  }

  // These end a pass over a GCM block. TakeTag returns the tag of the encrypted bytes; the other
  // tells whether the decrypted bytes have the given tag.
  bool TakeTag(std::array<std::byte, kTagBytes>& tag) {
    return Final() &&
           EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag.data()) == 1;
  }
  bool HasTag(std::array<std::byte, kTagBytes> tag) {
    return EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, kTagBytes, tag.data()) == 1 &&
           Final();
  }

 private:
  CipherPass() : context_(EVP_CIPHER_CTX_new()) {}

  bool Final() {
    std::array<unsigned char, kCipherUnit> none;
    int length = 0;
    const bool ok = EVP_CipherFinal_ex(context_.get(), none.data(), &length) == 1;
    if (!ok) ERR_clear_error();
    return ok;
  }

  CipherContext context_;
};

// Computes the tag of a GCM block from its cipher bytes without running AES on each, which takes
// most of the time. OpenSSL gets the cipher bytes as additional authenticated data, and multiplies
// the same units except for the lengths in the last one. A tag is
//     (sum + lengths) * H + E.
// `sum` is of the cipher bytes, H is the encryption of zeros, and E depends on the nonce. So both
// tags differ by (lengths + other lengths) * H.
class TagOfCipher {
 public:
  static Result<TagOfCipher> Begin(const EVP_CIPHER* gcm, const EncryptionKey& key,
                                   const std::byte* nonce) {
    TagOfCipher made;
    if (made.context_ == nullptr ||
        EVP_EncryptInit_ex2(made.context_.get(), gcm, Unsigned(key.bytes().data()), Unsigned(nonce),
                            nullptr) != 1) {
      return OpenSslError();
    }
    return made;
  }

  // At most kStepBytes; whole units except for the last. As CipherPass::Update.
  bool Update(std::span<const std::byte> bytes) {
    bytes_ += bytes.size();
    int length = 0;
    return EVP_EncryptUpdate(context_.get(), nullptr, &length, Unsigned(bytes.data()),
                             static_cast<int>(bytes.size())) == 1;
  }

  // `zeros`: a unit of zeros, encrypted with the key.
  Result<GcmUnit> Finish(const GcmUnit& zeros) {
    int none = 0;
    GcmUnit tag;
    if (EVP_EncryptFinal_ex(context_.get(), Unsigned(tag.data()), &none) != 1 ||
        EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag.data()) != 1) {
      return OpenSslError();
    }
    GcmUnit difference = GcmLengths(bytes_, 0);
    const GcmUnit lengths = GcmLengths(0, bytes_);
    for (size_t i = 0; i < difference.size(); ++i) difference[i] ^= lengths[i];
    const GcmUnit mend = Multiply(difference, zeros);
    for (size_t i = 0; i < tag.size(); ++i) tag[i] ^= mend[i];
    return tag;
  }

 private:
  TagOfCipher() : context_(EVP_CIPHER_CTX_new()) {}

  CipherContext context_;
  uint64_t bytes_ = 0;
};

// Returns null if OpenSSL does not have it.
std::shared_ptr<EVP_CIPHER> Fetch(const std::string& name) {
  std::shared_ptr<EVP_CIPHER> algorithm(EVP_CIPHER_fetch(nullptr, name.c_str(), nullptr),
                                        EVP_CIPHER_free);
  if (algorithm == nullptr) ERR_clear_error();
  return algorithm;
}

}  // namespace

namespace {

// Returns OpenSSL's name. Errors: kInvalidArgument for a key of an unsupported length.
Result<std::string> AlgorithmFor(const EncryptionKey& key, TargetSpec::EncryptionMode mode,
                                 std::string_view part = {}) {
  const size_t length = key.bytes().size();
  const bool is_sm4 = mode == TargetSpec::EncryptionMode::kSm4Cbc;
  if (is_sm4 && length != 16) {
    return InvalidArgumentError(
        fmt::format("SM4-CBC takes a key of 16 bytes, found one of {}", length));
  }
  const std::string name = is_sm4 ? "SM4" : fmt::format("AES-{}", 8 * length);
  const std::string_view usual = mode == TargetSpec::EncryptionMode::kAesGcm ? "-GCM" : "-CBC";
  return name + std::string(part.empty() ? usual : part);
}

Status NoAlgorithm(TargetSpec::EncryptionMode mode) {
  return UnsupportedError(fmt::format("this OpenSSL has no {}; use one that was built with it",
                                      EncryptionModeName(mode)));
}

}  // namespace

struct BlockCipher::Algorithms {
  std::shared_ptr<EVP_CIPHER> whole;
  // Decrypts from any unit on: for GCM by CTR, as GCM is CTR with a tag.
  std::shared_ptr<EVP_CIPHER> part;
};

inline namespace v0_1 {

std::string_view EncryptionModeName(TargetSpec::EncryptionMode mode) {
  return kModes[static_cast<size_t>(mode)].name;
}

std::optional<TargetSpec::EncryptionMode> ParseEncryptionMode(std::string_view name) {
  for (size_t i = 0; i < kModes.size(); ++i) {
    if (kModes[i].name == name) return static_cast<TargetSpec::EncryptionMode>(i);
  }
  return std::nullopt;
}

}  // namespace v0_1

uint64_t EncryptedBytes(TargetSpec::EncryptionMode mode, uint64_t plain) {
  const auto of_block = [mode](uint64_t bytes) {
    const bool is_gcm = mode == TargetSpec::EncryptionMode::kAesGcm;
    return BlockHeaderBytes(mode) + (is_gcm ? bytes : (bytes / kCipherUnit + 1) * kCipherUnit);
  };
  const uint64_t rest = plain % kPlainBlockBytes;
  return plain / kPlainBlockBytes * of_block(kPlainBlockBytes) + (rest > 0 ? of_block(rest) : 0);
}

Result<std::string> KeyCheck(const EncryptionKey& key) {
  constexpr std::string_view kOf = "reshard checks a key";
  constexpr size_t kBytes = 16;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  size_t length = 0;
  if (EVP_Q_mac(nullptr, "HMAC", nullptr, "SHA256", nullptr, key.bytes().data(), key.bytes().size(),
                reinterpret_cast<const unsigned char*>(kOf.data()), kOf.size(), digest.data(),
                digest.size(), &length) == nullptr ||
      length < kBytes) {
    return OpenSslError();
  }
  std::string text;
  for (size_t i = 0; i < kBytes; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::optional<TargetSpec::EncryptionMode> EncryptionModeOf(std::span<const std::byte> head) {
  if (head.size() < kMagicBytes) return std::nullopt;
  const uint32_t magic = LittleEndian32(head);
  for (size_t i = 0; i < kModes.size(); ++i) {
    if (kModes[i].magic == magic) return static_cast<TargetSpec::EncryptionMode>(i);
  }
  return std::nullopt;
}

Result<EncryptedBlock> ParseBlockHeader(TargetSpec::EncryptionMode mode,
                                        std::span<const std::byte> header, uint64_t left) {
  const size_t header_bytes = BlockHeaderBytes(mode);
  if (header.size() < header_bytes) {
    return CorruptError(
        fmt::format("expected {} bytes of a block's header, found {}; is the file "
                    "cut off?",
                    header_bytes, header.size()));
  }
  const std::optional<TargetSpec::EncryptionMode> found = EncryptionModeOf(header);
  if (found != mode) {
    return CorruptError(fmt::format("expected a block of {}, found {}", EncryptionModeName(mode),
                                    found ? std::string(EncryptionModeName(*found))
                                          : fmt::format("0x{:08x}", LittleEndian32(header))));
  }
  EncryptedBlock block;
  size_t at = kMagicBytes;
  const auto take_number = [&] {
    const uint32_t number = LittleEndian32(header.subspan(at));
    at += sizeof(number);
    return number;
  };
  const auto take_bytes = [&](std::array<std::byte, kCipherUnit>& bytes) {
    std::memcpy(bytes.data(), header.data() + at, bytes.size());
    at += bytes.size();
  };
  if (mode == TargetSpec::EncryptionMode::kAesGcm) take_bytes(block.tag);
  const uint32_t rest = take_number();
  const uint32_t iv_bytes = take_number();
  if (iv_bytes != kIvBytes) {
    return CorruptError(
        fmt::format("expected an initialization vector of {} bytes, found {}", kIvBytes, iv_bytes));
  }
  take_bytes(block.iv);
  block.cipher_bytes = take_number();
  if (rest != kBesidesCipher + block.cipher_bytes) {
    return CorruptError(fmt::format("expected {} bytes in the block's rest, found {}",
                                    kBesidesCipher + block.cipher_bytes, rest));
  }
  if (block.cipher_bytes > left - header_bytes) {
    return CorruptError(fmt::format("expected {} encrypted bytes, found {}; is the file cut off?",
                                    block.cipher_bytes, left - header_bytes));
  }
  if (block.cipher_bytes == 0 ||
      (mode != TargetSpec::EncryptionMode::kAesGcm && block.cipher_bytes % kCipherUnit != 0)) {
    return CorruptError(fmt::format(
        "expected {} encrypted bytes, found {}",
        mode == TargetSpec::EncryptionMode::kAesGcm ? "one or more" : "a multiple of 16",
        block.cipher_bytes));
  }
  return block;
}

Result<BlockCipher> BlockCipher::Make(std::shared_ptr<const EncryptionKey> key,
                                      TargetSpec::EncryptionMode mode) {
  RESHARD_ASSIGN_OR_RETURN(const std::string usual, AlgorithmFor(*key, mode));
  const auto algorithms = std::make_shared<Algorithms>();
  algorithms->whole = Fetch(usual);
  algorithms->part = algorithms->whole;
  if (mode == TargetSpec::EncryptionMode::kAesGcm) {
    RESHARD_ASSIGN_OR_RETURN(const std::string counter, AlgorithmFor(*key, mode, "-CTR"));
    algorithms->part = Fetch(counter);
  }
  if (algorithms->whole == nullptr || algorithms->part == nullptr) return NoAlgorithm(mode);
  return BlockCipher(std::move(key), mode, algorithms);
}

Result<uint32_t> BlockCipher::PlainBytes(const EncryptedBlock& block,
                                         const CipherBytes& cipher) const {
  if (mode_ == TargetSpec::EncryptionMode::kAesGcm) return block.cipher_bytes;
  std::array<std::byte, kCipherUnit> last;
  RESHARD_RETURN_IF_ERROR(Decrypt(block, block.cipher_bytes - last.size(), last, cipher));
  const auto padding = std::to_integer<uint32_t>(last.back());
  const bool is_padding = padding >= 1 && padding <= last.size() &&
                          std::all_of(last.end() - padding, last.end(),
                                      [&last](std::byte byte) { return byte == last.back(); });
  if (!is_padding || padding == block.cipher_bytes) {
    return WrongKeyOrDamaged("the decrypted bytes do not end as a block does");
  }
  return block.cipher_bytes - padding;
}

Status BlockCipher::Authenticate(const EncryptedBlock& block, const CipherBytes& cipher) const {
  if (mode_ != TargetSpec::EncryptionMode::kAesGcm) return {};
  static_assert(kGcmNonceBytes <= kIvBytes && kTagBytes == kCipherUnit);
  RESHARD_ASSIGN_OR_RETURN(TagOfCipher tag,
                           TagOfCipher::Begin(algorithms_->whole.get(), *key_, block.iv.data()));
  const size_t step = std::min<size_t>(block.cipher_bytes, kStepBytes);
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(step);
  for (size_t at = 0; at < block.cipher_bytes; at += step) {
    const std::span bytes(buffer.get(), std::min(step, block.cipher_bytes - at));
    RESHARD_RETURN_IF_ERROR(cipher(at, bytes));
    if (!tag.Update(bytes)) return OpenSslError();
  }
  constexpr GcmUnit kZeros{};
  GcmUnit zeros{};
  RESHARD_ASSIGN_OR_RETURN(
      CipherPass encryption,
      CipherPass::Begin(algorithms_->part.get(), *key_, kZeros.data(), CipherPass::kEncrypt));
  if (!encryption.Update(zeros)) return OpenSslError();
  const Result<GcmUnit> found = tag.Finish(zeros);
  OPENSSL_cleanse(zeros.data(), zeros.size());
  RESHARD_RETURN_IF_ERROR(found.status());
  const bool has_tag = CRYPTO_memcmp(found->data(), block.tag.data(), found->size()) == 0;
  return has_tag ? Status() : NoTag();
}

Status BlockCipher::DecryptWhole(const EncryptedBlock& block, std::span<std::byte> plain,
                                 const CipherBytes& cipher) const {
  assert(mode_ == TargetSpec::EncryptionMode::kAesGcm && plain.size() == block.cipher_bytes);
  RESHARD_ASSIGN_OR_RETURN(
      CipherPass pass,
      CipherPass::Begin(algorithms_->whole.get(), *key_, block.iv.data(), CipherPass::kDecrypt));
  Status status;
  for (size_t at = 0; at < plain.size() && status.ok(); at += kStepBytes) {
    const auto bytes = plain.subspan(at, std::min(kStepBytes, plain.size() - at));
    status = cipher(at, bytes);
    if (status.ok() && !pass.Update(bytes)) status = OpenSslError();
  }
  if (status.ok() && !pass.HasTag(block.tag)) status = NoTag();
  if (!status.ok()) OPENSSL_cleanse(plain.data(), plain.size());
  return status;
}

Status BlockCipher::Decrypt(const EncryptedBlock& block, uint64_t offset,
                            std::span<std::byte> plain, const CipherBytes& cipher) const {
  const uint64_t end = offset + plain.size();
  assert(end <= block.cipher_bytes);
  const uint64_t first = offset / kCipherUnit * kCipherUnit;
  std::array<std::byte, kCipherUnit> nonce = block.iv;
  if (mode_ == TargetSpec::EncryptionMode::kAesGcm) {
    // Below 2^32: a block has fewer than 2^28 units.
    const auto counter = static_cast<uint32_t>(kFirstCounter + first / kCipherUnit);
    for (size_t i = 0; i < sizeof(counter); ++i) {
      nonce[kGcmNonceBytes + i] = static_cast<std::byte>(counter >> (24 - 8 * i));
    }
  } else if (first > 0) {
    RESHARD_RETURN_IF_ERROR(cipher(first - kCipherUnit, nonce));
  }
  RESHARD_ASSIGN_OR_RETURN(
      CipherPass decryption,
      CipherPass::Begin(algorithms_->part.get(), *key_, nonce.data(), CipherPass::kDecrypt));
  std::unique_ptr<std::byte[]> buffer;
  for (uint64_t at = first; at < end;) {
    const size_t length = std::min<uint64_t>(
        kStepBytes, std::min<uint64_t>(block.cipher_bytes,
                                       (end + kCipherUnit - 1) / kCipherUnit * kCipherUnit) -
                        at);
    const uint64_t step_end = at + length;
    const bool is_wanted = at >= offset && step_end <= end;
    if (!is_wanted && buffer == nullptr) {
      buffer = std::make_unique_for_overwrite<std::byte[]>(length);
    }
    // A buffer for the first step is as large as any that follows.
    const std::span bytes =
        is_wanted ? plain.subspan(at - offset, length) : std::span(buffer.get(), length);
    RESHARD_RETURN_IF_ERROR(cipher(at, bytes));
    if (!decryption.Update(bytes)) return OpenSslError();
    if (!is_wanted) {
      const uint64_t from = std::max(at, offset);
      std::memcpy(plain.data() + (from - offset), bytes.data() + (from - at),
                  std::min(step_end, end) - from);
    }
    at = step_end;
  }
  return {};
}

Result<BlockEnds> BlockCipher::Encrypt(std::span<std::byte> plain) const {
  const bool is_gcm = mode_ == TargetSpec::EncryptionMode::kAesGcm;
  std::array<std::byte, kIvBytes> iv;
  if (RAND_bytes(Unsigned(iv.data()), kIvBytes) != 1) return OpenSslError();
  RESHARD_ASSIGN_OR_RETURN(CipherPass pass, CipherPass::Begin(algorithms_->whole.get(), *key_,
                                                              iv.data(), CipherPass::kEncrypt));
  const size_t rest = is_gcm ? 0 : plain.size() % kCipherUnit;
  auto whole = plain.first(plain.size() - rest);
  for (; !whole.empty(); whole = whole.subspan(std::min(whole.size(), kStepBytes))) {
    if (!pass.Update(whole.first(std::min(whole.size(), kStepBytes)))) return OpenSslError();
  }
  BlockEnds ends;
  std::array<std::byte, kTagBytes> tag;
  auto cipher_bytes = static_cast<uint32_t>(plain.size());
  if (is_gcm) {
    if (!pass.TakeTag(tag)) return OpenSslError();
  } else {
    std::array<std::byte, kCipherUnit> last;
    last.fill(static_cast<std::byte>(kCipherUnit - rest));
    std::ranges::copy(plain.last(rest), last.begin());
    if (!pass.Update(last)) return OpenSslError();
    ends.tail.assign(reinterpret_cast<const char*>(last.data()), last.size());
    cipher_bytes += static_cast<uint32_t>(kCipherUnit - rest);
  }
  const auto append_number = [&ends](uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8) {
      ends.header += static_cast<char>(number >> shift & 0xff);
    }
  };
  const auto append_bytes = [&ends](std::span<const std::byte> bytes) {
    ends.header.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  append_number(kModes[static_cast<size_t>(mode_)].magic);
  if (is_gcm) append_bytes(tag);
  append_number(static_cast<uint32_t>(kBesidesCipher) + cipher_bytes);
  append_number(kIvBytes);
  append_bytes(iv);
  append_number(cipher_bytes);
  return ends;
}

Status CheckKey(const EncryptionKey& key, TargetSpec::EncryptionMode mode) {
  RESHARD_ASSIGN_OR_RETURN(const std::string name, AlgorithmFor(key, mode));
  return Fetch(name) == nullptr ? NoAlgorithm(mode) : Status();
}

}  // namespace reshard
