// Conversions of safetensors files by the real programs (README.md here): the same bytes out of
// Convert and Recode; and small files with what becomes of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/convert.h"
#include "src/job/file_digests.h"
#include "tests/support/folder_contents.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/view_check.h"

namespace reshard::safetensors_golden_test {
namespace {

namespace fs = std::filesystem;

const fs::path kData = fs::path(RESHARD_TESTS_DIR) / "golden" / "data" / "safetensors";

std::vector<std::string> CasesOf(const std::string& kind) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kData / kind)) {
    if (entry.is_directory()) names.push_back(kind + "/" + entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string NameOf(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

DType DTypeOf(const std::string& name) {
  return std::map<std::string, DType>{
      {"float16", DType::kFloat16}, {"bfloat16", DType::kBFloat16}, {"float32", DType::kFloat32}}
      .at(name);
}

class SafetensorsGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  SafetensorsGoldenTest()
      : folder_(kData / GetParam()),
        case_(nlohmann::json::parse(ReadFile(folder_ / "case.json"))) {}

  std::string PathOf(const char* key) const {
    return case_.contains(key) ? (folder_ / case_.at(key).get<std::string>()).string() : "";
  }

  const fs::path folder_;
  const nlohmann::json case_;
};

TEST_P(SafetensorsGoldenTest, OutputsAreTheRealProgramsBytes) {
  const TemporaryFolder folder(MemoryFolder());
  ConvertOptions options;
  options.source.path = PathOf("src");
  options.source.strategy = PathOf("src_strategy");
  options.target.strategy = PathOf("dst_strategy");
  options.target.folder = folder.path() / "target";
  options.target.prefix = case_.at("prefix");
  options.target.format =
      case_.at("format") == "ckpt" ? TargetFormat::kCkpt : TargetFormat::kSafetensors;
  if (case_.contains("rank")) options.selection.ranks = {case_.at("rank").get<int64_t>()};
  for (const std::string rule : case_.value("dtype", nlohmann::json::array())) {
    const size_t equals = rule.find('=');
    options.selection.casts.push_back({rule.substr(0, equals), DTypeOf(rule.substr(equals + 1))});
  }
  const auto report = Convert(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(case_.at("compare"), "bytes");
  EXPECT_EQ(ReadOutputs(options.target.folder), ReadFolder(folder_ / "expected"));
  ExpectViewHasFiles(options);
}

INSTANTIATE_TEST_SUITE_P(Transform, SafetensorsGoldenTest, testing::ValuesIn(CasesOf("transform")),
                         NameOf);

INSTANTIATE_TEST_SUITE_P(Cast, SafetensorsGoldenTest, testing::ValuesIn(CasesOf("cast")), NameOf);

INSTANTIATE_TEST_SUITE_P(Redundancy, SafetensorsGoldenTest,
                         testing::Values("redundancy/case_001", "redundancy/case_002"), NameOf);

class RecodeGoldenTest : public SafetensorsGoldenTest {};

TEST_P(RecodeGoldenTest, OutputsAreMindSporesBytes) {
  const TemporaryFolder folder(MemoryFolder());
  RecodeOptions options;
  options.source.path = PathOf("src");
  options.target.folder = folder.path() / "target";
  options.target.format =
      case_.at("format") == "ckpt" ? TargetFormat::kCkpt : TargetFormat::kSafetensors;
  options.files = case_.value("files", "");
  if (case_.contains("rename")) options.selection.renames = *ReadRenames(PathOf("rename"));
  const auto report = Recode(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(ReadOutputs(options.target.folder), ReadFolder(folder_ / "expected"));
}

// The file `name` that Recode makes of net.ckpt in `folder`, with a CRC.
std::string RecodedWithCrc(const fs::path& folder, TargetFormat format, const std::string& name) {
  const TemporaryFolder target(MemoryFolder());
  RecodeOptions options;
  options.source.path = folder / "net.ckpt";
  options.target.folder = target.path() / "target";
  options.target.format = format;
  options.target.states_crc = true;
  const auto report = Recode(options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? ReadFile(target.path() / "target" / name) : "";
}

// The keys of metadata come in any order there.
TEST(CrcGoldenTest, SafetensorsStateMindSporesNumber) {
  const fs::path folder = kData / "crc" / "case_000";
  std::string expected = ReadFile(folder / "expected" / "net.safetensors");
  const std::string theirs = R"("crc_num":"3413565660","format":"ms")";
  const size_t place = expected.find(theirs);
  ASSERT_NE(place, std::string::npos);
  expected.replace(place, theirs.size(), R"("format":"ms","crc_num":"3413565660")");
  EXPECT_EQ(RecodedWithCrc(folder, TargetFormat::kSafetensors, "net.safetensors"), expected);
}

TEST(CrcGoldenTest, TrailersOfCkptFilesAreMindSpores) {
  const std::string path = (kData / "crc" / "case_001" / "expected" / "net.ckpt").string();
  const auto found = FindCrc(path, {});
  ASSERT_TRUE(found.ok()) << found.status().message();
  const std::string expected = ReadFile(path);
  EXPECT_EQ(found->text.bytes, expected.substr(found->text.offset));
  EXPECT_EQ(expected.substr(0, found->text.offset), ReadFile(kData / "crc/case_001/net.ckpt"));
}

TEST(CrcGoldenTest, AddedToACkptFileItIsMindSporesFile) {
  const fs::path folder = kData / "crc" / "case_001";
  EXPECT_EQ(RecodedWithCrc(folder, TargetFormat::kCkpt, "net.ckpt"),
            ReadFile(folder / "expected" / "net.ckpt"));
}

INSTANTIATE_TEST_SUITE_P(Recode, RecodeGoldenTest, testing::ValuesIn(CasesOf("recode")), NameOf);

TEST(SafetensorsFilesTest, AreAcceptedAndRefusedAsTheLibraryDoes) {
  const fs::path folder = kData / "bad_safetensors";
  const auto verdicts = nlohmann::json::parse(ReadFile(folder / "case.json"));
  EXPECT_EQ(verdicts.size(), 84U);
  for (const auto& [name, verdict] : verdicts.items()) {
    const auto opened = Checkpoint::Open((folder / name).string());
    EXPECT_EQ(opened.ok(), verdict.at("reshard") == "accept")
        << name << ": " << opened.status().message();
    if (opened.ok()) continue;
    EXPECT_EQ(opened.status().code(), StatusCode::kCorrupt) << name;
    EXPECT_THAT(opened.status().message(), testing::HasSubstr(name + ": "));
  }
}

}  // namespace
}  // namespace reshard::safetensors_golden_test
