#include "reshard/encryption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "src/cipher/encrypted_block.h"
#include "tests/support/encrypted_bytes.h"
#include "tests/support/temporary_folder.h"

namespace reshard::encryption_key_test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string TextOf(const Result<std::shared_ptr<const EncryptionKey>>& key) {
  if (!key.ok()) return key.status().message();
  const auto bytes = (*key)->bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(EncryptionKey, ComesOutOfAFileWithOrWithoutALineFeed) {
  const TemporaryFolder folder;
  for (const size_t length : {16U, 24U, 32U}) {
    const std::string key(length, 'k');
    EXPECT_EQ(TextOf(EncryptionKey::FromFile(folder.Write("key", key))), key);
    EXPECT_EQ(TextOf(EncryptionKey::FromFile(folder.Write("key", key + "\n"))), key);
    const std::string ends_line = key.substr(1) + "\n";
    EXPECT_EQ(TextOf(EncryptionKey::FromFile(folder.Write("key", ends_line))), ends_line);
  }
}

TEST(EncryptionKey, ComesOutOfTheEnvironment) {
  ASSERT_EQ(setenv("RESHARD_TEST_KEY", "0123456789abcdef", 1), 0);
  EXPECT_EQ(TextOf(EncryptionKey::FromEnvironment("RESHARD_TEST_KEY")), "0123456789abcdef");
  ASSERT_EQ(setenv("RESHARD_TEST_KEY", "secret", 1), 0);
  const Status status = EncryptionKey::FromEnvironment("RESHARD_TEST_KEY").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "variable RESHARD_TEST_KEY: expected a key of 16, 24 or 32 bytes, found 6 bytes");
  ASSERT_EQ(unsetenv("RESHARD_TEST_KEY"), 0);
  EXPECT_EQ(EncryptionKey::FromEnvironment("RESHARD_TEST_KEY").status().code(),
            StatusCode::kNotFound);
}

// As by --key-env "$KEY".
TEST(EncryptionKey, GivenInThePlaceOfANameIsNotPrinted) {
  for (const std::string& key :
       {std::string("S3cretS3cretS3cr"), std::string(32, 'S'), std::string(4000, 'S'),
        std::string("S3cret/S3cretS3c"), std::string("S3cret"), std::string("\x01S3cret\xff")}) {
    for (const auto& found : {EncryptionKey::FromEnvironment(key), EncryptionKey::FromFile(key)}) {
      EXPECT_EQ(found.status().code(), StatusCode::kNotFound);
      EXPECT_THAT(found.status().message(), Not(HasSubstr("S3c")));
      EXPECT_THAT(found.status().message(), Not(HasSubstr("SSS")));
    }
  }
}

TEST(EncryptionKey, OfOtherLengthsIsRefusedAndNotPrinted) {
  const TemporaryFolder folder;
  for (const size_t length : {0U, 1U, 15U, 18U, 23U, 31U, 34U, 4096U}) {
    const std::string path = folder.Write("key", std::string(length, 'K'));
    const Status status = EncryptionKey::FromFile(path).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << length;
    EXPECT_THAT(status.message(), HasSubstr(path + ": expected a key of 16, 24 or 32 bytes"));
    EXPECT_THAT(status.message(), Not(HasSubstr("KK")));
  }
}

TEST(EncryptionKey, OfAFileThatIsNotThere) {
  const TemporaryFolder folder;
  EXPECT_EQ(EncryptionKey::FromFile(folder.path() / "none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(EncryptionKey::FromFile(folder.path()).status().code(), StatusCode::kIo);
}

TEST(EncryptionKey, ManyAtATime) {
  for (int i = 0; i < 10'000; ++i) EXPECT_EQ(KeyOf("0123456789abcdef")->bytes().size(), 16U);
}

std::string Decrypted(std::string_view block, TargetSpec::EncryptionMode mode,
                      std::string_view key) {
  const auto bytes = std::as_bytes(std::span(block));
  const size_t header = BlockHeaderBytes(mode);
  const auto parsed = ParseBlockHeader(mode, bytes.first(header), bytes.size());
  const auto cipher = BlockCipher::Make(KeyOf(key), mode);
  const CipherBytes read = [&](uint64_t offset, std::span<std::byte> buffer) {
    std::ranges::copy(bytes.subspan(header + offset, buffer.size()), buffer.begin());
    return Status();
  };
  EXPECT_TRUE(parsed.ok() && cipher.ok());
  EXPECT_EQ(header + parsed->cipher_bytes, bytes.size());
  EXPECT_TRUE(cipher->Authenticate(*parsed, read).ok());
  const auto length = cipher->PlainBytes(*parsed, read);
  if (!length.ok()) return length.status().message();
  std::string plain(*length, '\0');
  EXPECT_TRUE(cipher->Decrypt(*parsed, 0, std::as_writable_bytes(std::span(plain)), read).ok());
  return plain;
}

constexpr TargetSpec::EncryptionMode kModes[] = {TargetSpec::EncryptionMode::kAesGcm,
                                                 TargetSpec::EncryptionMode::kAesCbc,
                                                 TargetSpec::EncryptionMode::kSm4Cbc};
constexpr std::string_view kKey = "0123456789abcdef";

std::string Block(const std::string& plain, TargetSpec::EncryptionMode mode) {
  const auto cipher = BlockCipher::Make(KeyOf(kKey), mode);
  std::string bytes = plain;
  const auto ends = cipher->Encrypt(std::as_writable_bytes(std::span(bytes)));
  if (!ends.ok()) return ends.status().message();
  bytes.resize(ends->tail.empty() ? plain.size() : plain.size() / kCipherUnit * kCipherUnit);
  return ends->header + bytes + ends->tail;
}

TEST(BlockCipher, MakesWhatTheKeyDecryptsAndNeverTheSameTwice) {
  for (const TargetSpec::EncryptionMode mode : kModes) {
    for (const size_t length : {1U, 15U, 16U, 17U, 100'000U, 600'001U}) {
      const std::string plain(length, 'p');
      const std::string block = Block(plain, mode);
      EXPECT_EQ(block.size(), BlockHeaderBytes(mode) + (mode == TargetSpec::EncryptionMode::kAesGcm
                                                            ? length
                                                            : (length / kCipherUnit + 1) * 16));
      EXPECT_EQ(Decrypted(block, mode, kKey), plain);
      EXPECT_NE(Block(plain, mode), block);
    }
  }
}

// In one pass, where nothing of what does not fit is left.
TEST(BlockCipher, DecryptsAWholeBlockOrNothing) {
  const std::string plain(600'001, 'p');
  std::string bytes = Block(plain, TargetSpec::EncryptionMode::kAesGcm);
  const size_t header = BlockHeaderBytes(TargetSpec::EncryptionMode::kAesGcm);
  const auto decrypt = [&](std::string& out) {
    const auto block =
        ParseBlockHeader(TargetSpec::EncryptionMode::kAesGcm,
                         std::as_bytes(std::span(bytes)).first(header), bytes.size());
    return BlockCipher::Make(KeyOf(kKey), TargetSpec::EncryptionMode::kAesGcm)
        ->DecryptWhole(
            *block, std::as_writable_bytes(std::span(out)),
            [&](uint64_t offset, std::span<std::byte> buffer) {
              std::ranges::copy(
                  std::as_bytes(std::span(bytes)).subspan(header + offset, buffer.size()),
                  buffer.begin());
              return Status();
            });
  };
  std::string out(plain.size(), 'o');
  ASSERT_TRUE(decrypt(out).ok());
  EXPECT_EQ(out, plain);
  for (const size_t damaged : {size_t{4}, header, bytes.size() - 1}) {
    bytes[damaged] = static_cast<char>(bytes[damaged] ^ 1);
    out.assign(plain.size(), 'o');
    const Status status = decrypt(out);
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << damaged;
    EXPECT_THAT(status.message(), HasSubstr("tag"));
    EXPECT_EQ(out, std::string(plain.size(), '\0'));
    bytes[damaged] = static_cast<char>(bytes[damaged] ^ 1);
  }
}

TEST(CheckKey, RefusesALengthThatTheModeDoesNotTake) {
  EXPECT_TRUE(CheckKey(*KeyOf(kKey), TargetSpec::EncryptionMode::kSm4Cbc).ok());
  EXPECT_EQ(CheckKey(*KeyOf(std::string(24, 'k')), TargetSpec::EncryptionMode::kSm4Cbc).code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace reshard::encryption_key_test
