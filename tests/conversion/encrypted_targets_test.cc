// Conversions into encrypted files: what they decrypt to, what is refused, and what nobody may find
// in them.

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "reshard/convert.h"
#include "reshard/encryption.h"
#include "reshard/verify.h"
#include "src/cipher/encrypted_block.h"
#include "src/convert/memory_budget.h"
#include "src/io/source_files.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/encrypted_bytes.h"
#include "tests/support/folder_contents.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::encrypted_targets_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

const std::vector<NamedLayout> kLayouts = {{"w", MakeLayout({2}, {{0, -1}})}};
constexpr char kKey[] = "0123456789abcdef";
constexpr char kOtherKey[] = "0123456789abcdeF";

// Two ranks of a weight of so many KiB, to be joined. Its content has a run that is easy to find.
class SampleFolder : public ConversionFolder {
 public:
  explicit SampleFolder(int64_t kib = 4) : ConversionFolder(kLayouts, {}) {
    std::string weight(static_cast<size_t>(kib) * 1024, 'x');
    for (size_t i = 0; i < weight.size(); i += 1021) weight[i] = static_cast<char>(i >> 10);
    WriteStage(
        {{"w", DType::kFloat64, {kib, 128}, std::move(weight)}, {"odd", DType::kInt8, {3}, "abc"}},
        kLayouts, 2);
    options().force = true;
  }

  void Encrypt(TargetSpec::EncryptionMode mode, const char* key = kKey) {
    options().target.encryption = mode;
    options().target.encryption_key = KeyOf(key);
  }
  std::string FileOfRun() {
    const auto report = Convert(options());
    EXPECT_TRUE(report.ok()) << report.status().message();
    return ReadFile(Path());
  }
  std::string Path() const { return options().target.folder + "/rank_0/checkpoint_0.ckpt"; }
  Result<DamageReport> VerifyWith(const char* key) const {
    return Verify(options().target.folder, key == nullptr ? nullptr : KeyOf(key));
  }
};

std::string Decrypted(const std::string& path, const char* key = kKey) {
  SourceFiles files({.max_open = 1, .key = KeyOf(key)});
  const FileId file = files.Add(path);
  const auto size = files.Size(file);
  if (!size.ok()) return size.status().message();
  std::string plain(*size, '\0');
  const Status read = files.Read(file, 0, std::as_writable_bytes(std::span(plain)));
  return read.ok() ? plain : read.message();
}

class EncryptedTargetsTest : public testing::TestWithParam<TargetSpec::EncryptionMode> {};

INSTANTIATE_TEST_SUITE_P(Modes, EncryptedTargetsTest,
                         testing::Values(TargetSpec::EncryptionMode::kAesGcm,
                                         TargetSpec::EncryptionMode::kAesCbc,
                                         TargetSpec::EncryptionMode::kSm4Cbc),
                         [](const testing::TestParamInfo<TargetSpec::EncryptionMode>& row) {
                           std::string name(EncryptionModeName(row.param));
                           name.erase(name.find('-'), 1);
                           return name;
                         });

// Of many blocks, the last one of no whole units; of one; and in chunks of a block.
TEST_P(EncryptedTargetsTest, DecryptToWhatIsWrittenWithout) {
  for (const int64_t kib : {int64_t{66} << 10, int64_t{4}}) {
    SampleFolder sample(kib);
    const std::string plain = sample.FileOfRun();
    sample.Encrypt(GetParam());
    for (const auto& [jobs, memory_limit] :
         {std::pair(1, uint64_t{0}), std::pair(3, uint64_t{0}), std::pair(2, kLeastMemoryLimit)}) {
      sample.options().run.jobs = jobs;
      sample.options().memory_limit = memory_limit;
      const std::string file = sample.FileOfRun();
      EXPECT_EQ(file.size(), EncryptedBytes(GetParam(), plain.size()));
      EXPECT_TRUE(Decrypted(sample.Path()) == plain);
      EXPECT_THAT(file, Not(HasSubstr("xxxxxxxxxxxxxxxx")));
    }
  }
}

TEST_P(EncryptedTargetsTest, EachRunHasItsOwnVector) {
  SampleFolder sample;
  sample.Encrypt(GetParam());
  const std::string first = sample.FileOfRun();
  const std::string second = sample.FileOfRun();
  const size_t header = BlockHeaderBytes(GetParam());
  EXPECT_NE(first.substr(0, header), second.substr(0, header));
  EXPECT_NE(first.substr(header, 64), second.substr(header, 64));
}

TEST_P(EncryptedTargetsTest, AreVerifiedWithTheirKeyOnly) {
  SampleFolder sample;
  sample.Encrypt(GetParam());
  std::string file = sample.FileOfRun();
  const auto right = sample.VerifyWith(kKey);
  ASSERT_TRUE(right.ok()) << right.status().message();
  EXPECT_THAT(right->damages, SizeIs(0));
  const auto without = sample.VerifyWith(nullptr);
  EXPECT_EQ(without.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(without.status().message(), HasSubstr("`key`"));
  const auto wrong = sample.VerifyWith(kOtherKey);
  EXPECT_TRUE(!wrong.ok() || !wrong->damages.empty());

  ConversionSpec against;
  against.target = sample.options().target;
  against.source = sample.options().source;
  const auto proved = VerifyAgainst(against);
  ASSERT_TRUE(proved.ok()) << proved.status().message();
  EXPECT_TRUE(proved->equal());
}

TEST(EncryptedTargetTest, APlainFileInItsPlaceIsDamage) {
  SampleFolder sample;
  const std::string plain = sample.FileOfRun();
  sample.Encrypt(TargetSpec::EncryptionMode::kAesGcm);
  sample.FileOfRun();
  fs::remove(sample.Path());
  std::ofstream(sample.Path(), std::ios::binary) << plain;
  const auto found = sample.VerifyWith(kKey);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_THAT(found->damages, SizeIs(1));
  EXPECT_THAT(found->damages.front().detail, HasSubstr("not encrypted"));
}

// What the key is told by, in the job's folder, is no part of it.
TEST(EncryptedTargetTest, AnotherKeyDoesNotGoOnWithAJob) {
  SampleFolder sample(int64_t{66} << 10);
  sample.options().force = false;
  sample.Encrypt(TargetSpec::EncryptionMode::kAesCbc);
  sample.options().shard = {0, 2};
  ASSERT_TRUE(Convert(sample.options()).ok());
  for (const auto& entry :
       fs::recursive_directory_iterator(sample.options().target.folder + "/.reshard")) {
    if (!entry.is_regular_file()) continue;
    EXPECT_THAT(ReadFile(entry.path()), AllOf(Not(HasSubstr(kKey)), Not(HasSubstr("xxxxxxxxxxxx"))))
        << entry.path();
  }
  sample.options().shard = {1, 2};
  sample.Encrypt(TargetSpec::EncryptionMode::kAesCbc, kOtherKey);
  const auto refused = Convert(sample.options());
  EXPECT_EQ(refused.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(refused.status().message(), HasSubstr("another key"));
  sample.Encrypt(TargetSpec::EncryptionMode::kAesCbc);
  const auto published = Convert(sample.options());
  ASSERT_TRUE(published.ok()) << published.status().message();
  EXPECT_TRUE(published->shard->published);
  EXPECT_THAT(sample.VerifyWith(kKey)->damages, SizeIs(0));
}

TEST(EncryptedTargetTest, KeepsWhatAnInterruptedRunFinished) {
  ConversionFolder sample(kLayouts, kLayouts);
  sample.WriteStage({MakeTensor("w", DType::kFloat32, {4, 2})}, kLayouts, 2);
  sample.options().target.encryption = TargetSpec::EncryptionMode::kAesGcm;
  sample.options().target.encryption_key = KeyOf(kKey);
  std::stop_source stop;
  sample.options().run.stop = stop.get_token();
  sample.options().run.jobs = 1;
  // After the first file.
  sample.options().run.progress = [&stop](const Progress& progress) {
    if (progress.done_files == 1) stop.request_stop();
  };
  const auto stopped = Convert(sample.options());
  ASSERT_EQ(stopped.status().code(), StatusCode::kCancelled) << stopped.status().message();
  sample.options().run = {};
  for (const auto& [key, code] :
       {std::pair(kOtherKey, StatusCode::kMismatch), std::pair(kKey, StatusCode::kOk)}) {
    sample.options().resume = OutputChoice::Resume::kVerify;
    sample.options().target.encryption_key = KeyOf(key);
    const auto resumed = Convert(sample.options());
    EXPECT_EQ(resumed.status().code(), code) << resumed.status().message();
    if (resumed.ok()) {
      EXPECT_EQ(resumed->files_kept, 1U);
    }
  }
}

// Without a format the target has the source's.
TEST(EncryptedTargetTest, IsNoSafetensorsFile) {
  SampleFolder sample;
  sample.options().target.format = TargetFormat::kSafetensors;
  ASSERT_TRUE(Convert(sample.options()).ok());
  ConvertOptions again;
  again.source.path = sample.options().target.folder;
  again.target.strategy = sample.options().source.strategy;
  again.target.folder = sample.folder().path() / "again";
  again.target.encryption = TargetSpec::EncryptionMode::kAesGcm;
  again.target.encryption_key = KeyOf(kKey);
  const auto refused = Convert(again);
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("`format=ckpt`"));
  EXPECT_FALSE(fs::exists(again.target.folder));
  again.target.format = TargetFormat::kCkpt;
  EXPECT_TRUE(Convert(again).ok());
}

TEST(EncryptedTargetTest, WhatDoesNotGoTogetherIsRefused) {
  const auto refused = [](void (*change)(ConvertOptions & options)) {
    SampleFolder sample;
    sample.Encrypt(TargetSpec::EncryptionMode::kSm4Cbc);
    change(sample.options());
    const auto report = Convert(sample.options());
    EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
    EXPECT_FALSE(fs::exists(sample.options().target.folder));
    return report.status().message();
  };
  EXPECT_THAT(refused([](ConvertOptions& o) { o.target.encryption_key = nullptr; }),
              Naming("`encryption`", "`encryption_key`"));
  EXPECT_THAT(refused([](ConvertOptions& o) { o.target.encryption.reset(); }),
              Naming("`encryption`", "`encryption_key`"));
  EXPECT_THAT(refused([](ConvertOptions& o) { o.target.format = TargetFormat::kSafetensors; }),
              HasSubstr("safetensors"));
  EXPECT_THAT(refused([](ConvertOptions& o) { o.target.states_crc = true; }), HasSubstr("`crc`"));
  EXPECT_THAT(refused([](ConvertOptions& o) { o.io.target = IoChoice::Target::kDirect; }),
              HasSubstr("`io.target=direct`"));
  EXPECT_THAT(refused([](ConvertOptions& o) {
                o.target.encryption_key = KeyOf(std::string(kKey) + "01234567");
              }),
              Naming("16 bytes", " 24"));
}

}  // namespace
}  // namespace reshard::encrypted_targets_test
