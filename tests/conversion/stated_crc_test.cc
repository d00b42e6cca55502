// Conversions whose files state a CRC-32 of themselves: alone, and of shards that write parts of
// one file.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reshard/convert.h"
#include "reshard/verify.h"
#include "src/digest/crc32.h"
#include "src/io/source_files.h"
#include "src/job/file_digests.h"
#include "src/source/indexed_file.h"
#include "src/verify/crc_check.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/view_check.h"

namespace reshard::stated_crc_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::vector<NamedLayout> kLayouts = {{"w", MakeLayout({2}, {{0, -1}})}};

// Two ranks of a weight of so many KiB, and of what MindSpore counts in another way, to be joined.
class SampleFolder : public ConversionFolder {
 public:
  explicit SampleFolder(int64_t kib = 4) : ConversionFolder(kLayouts, {}) {
    std::string weight(static_cast<size_t>(kib) * 1024, 'x');
    for (size_t i = 0; i < weight.size(); i += 1021) weight[i] = static_cast<char>(i >> 10);
    WriteStage({{"w", DType::kFloat64, {kib, 128}, std::move(weight)},
                {"epoch_num", DType::kInt32, {}, std::string("\3\0\0\0", 4)},
                {"least", DType::kInt8, {}, "\xff"},
                {"flag", DType::kBool, {}, "\1"},
                MakeTensor("none", DType::kFloat32, {0, 3})},
               kLayouts, 2);
    options().target.states_crc = true;
  }

  std::string FileOf(TargetFormat format) {
    options().target.format = format;
    options().force = true;
    // A file of the other format must not stay.
    options().prune = fs::exists(options().target.folder + "/manifest.json");
    const auto report = Convert(options());
    EXPECT_TRUE(report.ok()) << report.status().message();
    ExpectViewHasFiles(options());
    return ReadFile(Path());
  }
  std::string Path() const {
    const bool is_ckpt = options().target.format == TargetFormat::kCkpt;
    return options().target.folder + "/rank_0/checkpoint_0" + (is_ckpt ? ".ckpt" : ".safetensors");
  }
};

// Checks the CRC that a file states.
Status CheckFile(const std::string& path) {
  SourceFiles files(1);
  const auto index = ReadFileTable(files, files.Add(path));
  if (!index.ok()) return index.status();
  if (!index->crc()) return InternalError(path + " states no CRC");
  return CheckCrc(files, *index, {}, {});
}

// The number of safetensors files, by its definition (safetensors/SPEC.md).
uint32_t MindSporesNumber(std::vector<TestTensor> tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TestTensor& a, const TestTensor& b) { return a.name < b.name; });
  Crc32 crc;
  for (const TestTensor& tensor : tensors) {
    crc.Update(std::as_bytes(std::span(tensor.name)));
    // What Python's bytes(3) is.
    const std::string content = tensor.name == "epoch_num" ? std::string(3, '\0') : tensor.content;
    crc.Update(std::as_bytes(std::span(content)));
  }
  return crc.value();
}

TEST(StatedCrcTest, CkptFilesEndWithIt) {
  SampleFolder sample;
  const std::string with = sample.FileOf(TargetFormat::kCkpt);
  EXPECT_EQ(CheckFile(sample.Path()).message(), "");
  sample.options().target.states_crc = false;
  const std::string without = sample.FileOf(TargetFormat::kCkpt);
  EXPECT_EQ(with.substr(0, without.size()), without);
  EXPECT_EQ(with.size(), without.size() + 17);
}

TEST(StatedCrcTest, SafetensorsFilesHaveMindSporesNumber) {
  SampleFolder sample;
  const std::string file = sample.FileOf(TargetFormat::kSafetensors);
  sample.options().target.states_crc = false;
  sample.FileOf(TargetFormat::kCkpt);
  const std::string number = std::to_string(MindSporesNumber(sample.Target(0)));
  EXPECT_THAT(file,
              HasSubstr("{\"__metadata__\":{\"format\":\"ms\",\"crc_num\":\"" + number + '"'));
}

TEST(StatedCrcTest, ShardsWriteWhatARunAloneWrites) {
  for (const TargetFormat format : {TargetFormat::kCkpt, TargetFormat::kSafetensors}) {
    SampleFolder sample(int64_t{66} << 10);
    const std::string alone = sample.FileOf(format);
    EXPECT_EQ(CheckFile(sample.Path()).message(), "");
    const std::string manifest = ReadFile(sample.options().target.folder + "/manifest.json");
    fs::remove_all(sample.options().target.folder);
    sample.options().force = false;
    for (uint64_t i = 0; i < 2; ++i) {
      sample.options().shard = {i, 2};
      const auto report = Convert(sample.options());
      ASSERT_TRUE(report.ok()) << report.status().message();
      EXPECT_EQ(report->files.size(), 1U) << "each shard has a part";
    }
    EXPECT_TRUE(ReadFile(sample.Path()) == alone);
    EXPECT_EQ(ReadFile(sample.options().target.folder + "/manifest.json"), manifest);
    const auto verified = Verify(sample.options().target.folder);
    EXPECT_TRUE(verified.ok()) << verified.status().message();
  }
}

// As a process finds a file that another one was killed behind: the number is there, the record
// not.
TEST(StatedCrcTest, IsFoundAgainWhateverNumberIsThere) {
  for (const TargetFormat format : {TargetFormat::kCkpt, TargetFormat::kSafetensors}) {
    SampleFolder sample;
    std::string file = sample.FileOf(format);
    const auto found = FindCrc(sample.Path(), {});
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(file.substr(found->text.offset, found->text.bytes.size()), found->text.bytes);
    const auto whole = DigestFile(sample.Path(), {});
    EXPECT_EQ(found->with.file, whole->file);
    EXPECT_EQ(found->with.blocks, whole->blocks);
    // With the number 0, in as many bytes.
    const bool is_ckpt = format == TargetFormat::kCkpt;
    std::string zero = is_ckpt ? std::string(10, '\0') : "0\"         ";
    const size_t place = found->text.offset + (is_ckpt ? 7 : 0);
    file.replace(place, zero.size(), zero);
    std::ofstream(sample.Path(), std::ios::binary) << file;
    const auto without = DigestFile(sample.Path(), {});
    EXPECT_EQ(found->without.file, without->file);
    EXPECT_EQ(found->without.blocks, without->blocks);
    EXPECT_EQ(FindCrc(sample.Path(), {})->text.bytes, found->text.bytes);
  }
}

// As a file that another process put in the place of a staged one.
TEST(StatedCrcTest, AZipHasNoPlaceForIt) {
  SampleFolder sample;
  sample.FileOf(TargetFormat::kCkpt);
  std::ofstream(sample.Path(), std::ios::binary) << "PK\3\4";
  EXPECT_EQ(FindCrc(sample.Path(), {}).status().message(),
            "there is no place in it that states a CRC-32");
}

TEST(StatedCrcTest, FoldersOfWholeTensorsStateIt) {
  for (const TargetFormat format : {TargetFormat::kUnified, TargetFormat::kHuggingFace}) {
    SampleFolder sample;
    sample.options().target.format = format;
    sample.options().target.shard_size = 2000;
    const auto report = Convert(sample.options());
    ASSERT_TRUE(report.ok()) << report.status().message();
    for (const auto& file : report->files) {
      if (file.path.ends_with(".json")) continue;
      EXPECT_EQ(CheckFile(sample.options().target.folder + '/' + file.path).message(), "");
    }
  }
}

TEST(StatedCrcTest, ATensorOfTheNumbersNameIsRefused) {
  ConversionFolder sample(kLayouts, {});
  sample.WriteStage(
      {MakeTensor("w", DType::kFloat32, {4, 2}), MakeTensor("crc_num", DType::kInt32, {2})},
      kLayouts, 2);
  sample.options().target.states_crc = true;
  sample.options().target.format = TargetFormat::kSafetensors;
  EXPECT_THAT(Convert(sample.options()).status().message(), HasSubstr("parameter \"crc_num\""));
  sample.options().target.format = TargetFormat::kCkpt;
  EXPECT_TRUE(Convert(sample.options()).ok());
}

TEST(StatedCrcTest, IsProvedWithTheRest) {
  for (const TargetFormat format : {TargetFormat::kCkpt, TargetFormat::kSafetensors}) {
    SampleFolder sample;
    std::string file = sample.FileOf(format);
    ConversionSpec against;
    against.target.folder = sample.options().target.folder;
    against.source = sample.options().source;
    auto report = VerifyAgainst(against);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_TRUE(report->equal());
    // Of ten digits, or the trailer.
    const bool is_ckpt = format == TargetFormat::kCkpt;
    char& digit = is_ckpt ? file.back() : file[file.find("crc_num") + sizeof("crc_num\":\"") - 1];
    digit = static_cast<char>(digit ^ 1);
    std::ofstream(sample.Path(), std::ios::binary) << file;
    report = VerifyAgainst(against);
    ASSERT_TRUE(report.ok()) << report.status().message();
    ASSERT_EQ(report->differences.size(), 1U);
    EXPECT_TRUE(report->differences.front().first->in_header);
  }
}

TEST(StatedCrcTest, NeedsTheDigests) {
  SampleFolder sample;
  sample.options().checks.checksum = false;
  const auto report = Convert(sample.options());
  EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(report.status().message(), HasSubstr("`crc` and `checksum=false`"));
}

TEST(StatedCrcTest, ASafetensorsSourceIsCheckedByIt) {
  SampleFolder sample;
  std::string file = sample.FileOf(TargetFormat::kSafetensors);
  ConvertOptions back;
  back.source.path = sample.Path();
  back.target.strategy = sample.options().source.strategy;
  back.target.folder = sample.folder().path() / "back";
  const auto report = Convert(back);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->crc_files, 1U);
  file.back() = static_cast<char>(file.back() ^ 1);
  std::ofstream(sample.Path(), std::ios::binary) << file;
  back.force = true;
  EXPECT_THAT(Convert(back).status().message(),
              testing::AllOf(HasSubstr("crc_num"), HasSubstr("checksum=false")));
  back.checks.checksum = false;
  EXPECT_TRUE(Convert(back).ok());
}

}  // namespace
}  // namespace reshard::stated_crc_test
