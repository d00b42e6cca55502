// Files that MindSpore encrypted (README.md here): with their key they are read as the plain ones.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/convert.h"
#include "src/io/source_files.h"
#include "tests/support/encrypted_bytes.h"
#include "tests/support/folder_contents.h"
#include "tests/support/temporary_folder.h"

namespace reshard::encrypted_golden_test {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;
using testing::Not;

const fs::path kData = fs::path(RESHARD_TESTS_DIR) / "golden" / "data";

class EncryptedGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  EncryptedGoldenTest()
      : folder_(kData / "encrypted" / GetParam()),
        case_(nlohmann::json::parse(ReadFile(folder_ / "case.json"))) {}

  // Into "target" in `folder`.
  ConvertOptions OptionsFor(const TemporaryFolder& folder) const {
    ConvertOptions options;
    options.source.path = folder_ / "src";
    options.source.strategy = folder_ / "src_strategy.ckpt";
    options.source.key = KeyOf(case_.at("key_ascii").get<std::string>());
    options.target.strategy = folder_ / "dst_strategy.ckpt";
    options.target.folder = folder.path() / "target";
    options.target.prefix = case_.at("prefix");
    return options;
  }

  const fs::path folder_;
  const nlohmann::json case_;
};

TEST_P(EncryptedGoldenTest, ConvertsToThePlainFilesOutputs) {
  const TemporaryFolder folder(MemoryFolder());
  const ConvertOptions options = OptionsFor(folder);
  const auto report = Convert(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings, IsEmpty());
  EXPECT_EQ(ReadOutputs(options.target.folder), ReadFolder(folder_ / "expected"));
}

// With the key and in the mode of the source.
TEST_P(EncryptedGoldenTest, EncryptedOutputsDecryptToThem) {
  const TemporaryFolder folder(MemoryFolder());
  ConvertOptions options = OptionsFor(folder);
  options.target.encryption = ParseEncryptionMode(case_.at("mode").get<std::string>());
  options.target.encryption_key = options.source.key;
  const auto report = Convert(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  for (const auto& [path, expected] : ReadFolder(folder_ / "expected")) {
    SourceFiles files({.max_open = 1, .key = options.source.key});
    const FileId file = files.Add(options.target.folder + '/' + path);
    const auto size = files.Size(file);
    ASSERT_TRUE(size.ok()) << size.status().message();
    std::string plain(*size, '\0');
    ASSERT_TRUE(files.Read(file, 0, std::as_writable_bytes(std::span(plain))).ok());
    EXPECT_EQ(plain, expected) << path;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, EncryptedGoldenTest,
                         testing::Values("case_000", "case_001", "case_002"),
                         [](const testing::TestParamInfo<std::string>& row) { return row.param; });

Result<DigestReport> DigestsOf(const fs::path& file, const std::string& key) {
  ContentOptions options;
  options.source.path = file;
  if (!key.empty()) options.source.key = KeyOf(key);
  return DigestCheckpoint(options);
}

TEST(EncryptedFilesTest, HaveTheDigestsOfThePlainFile) {
  const fs::path files = kData / "apis" / "files";
  const std::string key = nlohmann::json::parse(ReadFile(files / "case.json")).at("key_ascii");
  const auto plain = DigestsOf(files / "plain.ckpt", "");
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  for (const std::string mode : {"AES-GCM", "AES-CBC", "SM4-CBC"}) {
    SCOPED_TRACE(mode);
    const auto encrypted = DigestsOf(files / ("encrypted_" + mode + ".ckpt"), key);
    ASSERT_TRUE(encrypted.ok()) << encrypted.status().message();
    EXPECT_THAT(encrypted->warnings, IsEmpty());
    ASSERT_EQ(encrypted->parameters.size(), plain->parameters.size());
    for (size_t i = 0; i < plain->parameters.size(); ++i) {
      EXPECT_EQ(encrypted->parameters[i].name, plain->parameters[i].name);
      EXPECT_EQ(encrypted->parameters[i].digest, plain->parameters[i].digest);
    }
  }
}

TEST(EncryptedFilesTest, BecomeThePlainFile) {
  const fs::path files = kData / "apis" / "files";
  const std::string key = nlohmann::json::parse(ReadFile(files / "case.json")).at("key_ascii");
  for (const std::string mode : {"AES-GCM", "AES-CBC", "SM4-CBC"}) {
    SCOPED_TRACE(mode);
    const TemporaryFolder folder(MemoryFolder());
    RecodeOptions options;
    options.source.path = files / ("encrypted_" + mode + ".ckpt");
    options.source.key = KeyOf(key);
    options.target.folder = folder.path() / "target";
    options.target.format = TargetFormat::kCkpt;
    options.decrypt = true;
    const auto report = Recode(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(ReadFile(folder.path() / "target" / ("encrypted_" + mode + ".ckpt")),
              ReadFile(files / "plain.ckpt"));
  }
}

TEST(EncryptedFilesTest, AKeyThatAPlainFileDoesNotNeedIsAWarning) {
  const fs::path file = kData / "apis" / "files" / "plain.ckpt";
  const auto report = DigestsOf(file, "0123456789abcdef");
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->warnings.size(), 1U);
  EXPECT_EQ(report->warnings[0].code, WarningCode::kKeyNotUsed);
  EXPECT_EQ(report->warnings[0].message,
            file.string() + ": is not encrypted; the key is not used for it");
}

TEST(EncryptedFilesTest, AreNotViewedInPlace) {
  const TemporaryFolder folder;
  const std::string key = "0123456789abcdef";
  const std::string path = folder.Write(
      "a.ckpt", Encrypted("AES-GCM", key, ReadFile(kData / "apis" / "files" / "plain.ckpt")));
  const auto checkpoint = Checkpoint::Open(path, KeyOf(key));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  ASSERT_THAT(checkpoint->parameters(), Not(IsEmpty()));
  EXPECT_EQ(checkpoint->View(checkpoint->parameters()[0].name).status().code(),
            StatusCode::kUnsupported);
}

TEST(EncryptedFilesTest, HaveTextsThatAreDecrypted) {
  const TemporaryFolder folder;
  const std::string key = "0123456789abcdef";
  const std::string plain = ReadFile(kData / "apis" / "files" / "dtypes.ckpt");
  const auto text_of = [](const Result<Checkpoint>& checkpoint) {
    const auto spans = checkpoint->View("note");
    EXPECT_TRUE(spans.ok() && spans->size() == 1U);
    return std::string(reinterpret_cast<const char*>((*spans)[0].data()), (*spans)[0].size());
  };
  const std::string expected = text_of(Checkpoint::Open(folder.Write("plain.ckpt", plain)));
  for (const std::string mode : {"AES-GCM", "AES-CBC", "SM4-CBC"}) {
    // Blocks that cut the text.
    const std::string path = folder.Write("a.ckpt", Encrypted(mode, key, plain, 16));
    const auto checkpoint = Checkpoint::Open(path, KeyOf(key));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    EXPECT_EQ(text_of(checkpoint), expected);
    EXPECT_EQ(checkpoint->View("note")->front().data(), checkpoint->View("note")->front().data());
  }
}

}  // namespace
}  // namespace reshard::encrypted_golden_test
