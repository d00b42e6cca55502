// An encrypted checkpoint with one thing broken for each row, and keys that do not fit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/encryption.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/encrypted_bytes.h"
#include "tests/support/temporary_folder.h"

namespace reshard::encrypted_malformed_test {
namespace {

using testing::HasSubstr;

constexpr const char* kGoodKey = "0123456789abcdef";
// Of the blocks below, each with 64 plain bytes.
constexpr size_t kGcmBlock = 48 + 64;
constexpr size_t kCbcBlock = 32 + 80;

struct EncryptedCase {
  const char* name;
  const char* mode;
  std::function<void(std::string& file)> break_it;
  StatusCode code;
  std::vector<std::string> message;
  std::string key = kGoodKey;
};

std::function<void(std::string&)> CutTo(size_t length) {
  return [length](std::string& file) { file.resize(length); };
}
std::function<void(std::string&)> Flip(size_t offset) {
  return [offset](std::string& file) { file[offset] = static_cast<char>(file[offset] ^ 1); };
}
std::function<void(std::string&)> Put(size_t offset, const std::string& bytes) {
  return [offset, bytes](std::string& file) { file.replace(offset, bytes.size(), bytes); };
}

std::string NameOfCase(const testing::TestParamInfo<EncryptedCase>& info) {
  return info.param.name;
}

class EncryptedMalformedTest : public testing::TestWithParam<EncryptedCase> {};

TEST_P(EncryptedMalformedTest, IsRefusedInWords) {
  const EncryptedCase& row = GetParam();
  const std::string plain = TensorValue("w", "Float32", {40}, std::string(160, 'x'));
  std::string file = Encrypted(row.mode, kGoodKey, plain, 64);
  row.break_it(file);
  const TemporaryFolder folder;
  const std::string path = folder.Write("a.ckpt", file);
  const auto checkpoint = Checkpoint::Open(path, row.key.empty() ? nullptr : KeyOf(row.key));
  ASSERT_FALSE(checkpoint.ok());
  EXPECT_EQ(checkpoint.status().code(), row.code) << checkpoint.status().message();
  EXPECT_THAT(checkpoint.status().message(), HasSubstr(path + ": "));
  for (const std::string& part : row.message) {
    EXPECT_THAT(checkpoint.status().message(), HasSubstr(part));
  }
}

const auto kNothing = [](std::string& /*file*/) {};
constexpr StatusCode kCorrupt = StatusCode::kCorrupt;

INSTANTIATE_TEST_SUITE_P(
    Files, EncryptedMalformedTest,
    testing::Values(
        EncryptedCase{"without_a_key",
                      "AES-GCM",
                      kNothing,
                      StatusCode::kUnsupported,
                      {"the checkpoint is encrypted (AES-GCM); give its key (`key`)"},
                      ""},
        EncryptedCase{"gcm_with_another_key",
                      "AES-GCM",
                      kNothing,
                      kCorrupt,
                      {"encrypted block 0 at offset 0: the block's tag does not fit its bytes",
                       "is not the one that the file was encrypted with"},
                      "0123456789abcdeX"},
        EncryptedCase{"gcm_with_a_longer_key",
                      "AES-GCM",
                      kNothing,
                      kCorrupt,
                      {"tag does not fit"},
                      "0123456789abcdef01234567"},
        EncryptedCase{
            "cbc_with_another_key",
            "AES-CBC",
            kNothing,
            kCorrupt,
            {"encrypted block 0 at offset 0: ", "is not the one that the file was encrypted with"},
            "0123456789abcdeX"},
        EncryptedCase{
            "sm4_with_another_key",
            "SM4-CBC",
            kNothing,
            kCorrupt,
            {"encrypted block 0 at offset 0: ", "is not the one that the file was encrypted with"},
            "0123456789abcdeX"},
        EncryptedCase{"sm4_with_a_key_of_another_length",
                      "SM4-CBC",
                      kNothing,
                      StatusCode::kInvalidArgument,
                      {"SM4-CBC takes a key of 16 bytes, found one of 32"},
                      "0123456789abcdef0123456789abcdef"},
        EncryptedCase{"the_magic_of_another_mode",
                      "AES-GCM",
                      Put(0, "\xd9"),
                      kCorrupt,
                      {"encrypted block 0 at offset 0: ", "initialization vector of 16 bytes"}},
        EncryptedCase{"a_second_block_of_another_mode",
                      "AES-GCM",
                      Put(kGcmBlock, "\xd9"),
                      kCorrupt,
                      {"encrypted block 1 at offset 112: expected a block of AES-GCM, found "
                       "AES-CBC"}},
        EncryptedCase{"a_second_block_that_is_none",
                      "AES-CBC",
                      Put(kCbcBlock, "abcd"),
                      kCorrupt,
                      {"block 1 at offset 112: expected a block of AES-CBC, found 0x64636261"}},
        EncryptedCase{"a_changed_byte",
                      "AES-GCM",
                      Flip(48),
                      kCorrupt,
                      {"block 0 at offset 0: the block's tag does not fit"}},
        EncryptedCase{"a_changed_tag",
                      "AES-GCM",
                      Flip(kGcmBlock + 4),
                      kCorrupt,
                      {"block 1 at offset 112: the block's tag does not fit"}},
        EncryptedCase{
            "a_changed_nonce", "AES-GCM", Flip(28), kCorrupt, {"the block's tag does not fit"}},
        EncryptedCase{"a_changed_padding",
                      "AES-CBC",
                      Flip(kCbcBlock - 1),
                      kCorrupt,
                      {"block 0 at offset 0: the decrypted bytes do not end as a block does"}},
        EncryptedCase{
            "a_changed_vector", "AES-CBC", Flip(12), kCorrupt, {"after decryption; give the key"}},
        EncryptedCase{"cut_in_a_header",
                      "AES-GCM",
                      CutTo(kGcmBlock + 20),
                      kCorrupt,
                      {"block 1 at offset 112: expected 48 bytes of a block's header, found 20"}},
        EncryptedCase{"cut_in_the_first_header",
                      "AES-CBC",
                      CutTo(5),
                      kCorrupt,
                      {"block 0 at offset 0: expected 32 bytes of a block's header, found 5"}},
        EncryptedCase{"cut_in_its_bytes",
                      "AES-GCM",
                      CutTo(kGcmBlock - 1),
                      kCorrupt,
                      {"block 0 at offset 0: expected 64 encrypted bytes, found 63"}},
        EncryptedCase{"cut_behind_a_block",
                      "AES-CBC",
                      CutTo(kCbcBlock),
                      kCorrupt,
                      {"a.ckpt: ", "after decryption; give the key"}},
        EncryptedCase{"a_vector_of_another_length",
                      "AES-CBC",
                      Put(8, "\x0c"),
                      kCorrupt,
                      {"expected an initialization vector of 16 bytes, found 12"}},
        EncryptedCase{"a_length_that_does_not_fit_its_rest",
                      "AES-GCM",
                      Put(44, "\x3f"),
                      kCorrupt,
                      {"expected 87 bytes in the block's rest, found 88"}},
        EncryptedCase{"a_length_beyond_the_file",
                      "AES-GCM",
                      [](std::string& file) {
                        file.replace(20, 4, "\xff\xff\xff\xff");
                        file.replace(44, 4, "\xe7\xff\xff\xff");
                      },
                      kCorrupt,
                      {"expected 4294967271 encrypted bytes, found "}},
        EncryptedCase{"no_bytes",
                      "AES-GCM",
                      [](std::string& file) {
                        file.resize(48);
                        file.replace(20, 4, std::string("\x18\0\0\0", 4));
                        file.replace(44, 4, std::string(4, '\0'));
                      },
                      kCorrupt,
                      {"expected one or more encrypted bytes, found 0"}},
        EncryptedCase{"bytes_that_are_no_whole_units",
                      "AES-CBC",
                      [](std::string& file) {
                        file.resize(kCbcBlock - 1);
                        file[4] = static_cast<char>(file[4] - 1);
                        file[28] = static_cast<char>(file[28] - 1);
                      },
                      kCorrupt,
                      {"expected a multiple of 16 encrypted bytes, found 79"}},
        EncryptedCase{"other_bytes_behind_the_blocks",
                      "AES-GCM",
                      [](std::string& file) { file += "crc_nun0123456789"; },
                      kCorrupt,
                      {"expected 48 bytes of a block's header, found 17"}}),
    NameOfCase);

}  // namespace
}  // namespace reshard::encrypted_malformed_test
