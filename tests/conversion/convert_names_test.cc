// Names that are not UTF-8, or that no text could hold as they are: they convert, and the records
// give them back.

#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "reshard/verify.h"
#include "src/record/part_record.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::convert_names_test {
namespace {

using testing::ElementsAre;

const std::vector<NamedLayout> kNamedHalves = {{"w", MakeLayout({2}, {{0, -1}})}};
const std::string kOdd = "caf\xe9 \\ \xff\n";

class ConvertNamesTest : public testing::TestWithParam<bool> {};

TEST_P(ConvertNamesTest, ComeBackFromTheRecords) {
  const std::vector<TestTensor> tensors = {MakeTensor("w", DType::kFloat32, {4, 3}),
                                           MakeTensor(kOdd, DType::kInt16, {5}),
                                           MakeTensor("a\\b", DType::kInt8, {2})};
  ConversionFolder folder(kNamedHalves, {});
  folder.WriteStage(tensors, kNamedHalves, 2);
  folder.options().checks.checksum = GetParam();
  const auto report = Convert(folder.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(folder.Target(0), tensors);

  std::vector<std::string> names;
  PartRecordParser parser("record",
                          [&](const RecordedValue& value) { names.push_back(value.name); });
  const FolderContents target = ReadFolder(folder.options().target.folder);
  ASSERT_TRUE(parser.Feed(target.at("part_records/rank_0/checkpoint_0.ckpt.jsonl")).ok());
  ASSERT_TRUE(parser.Finish().ok());
  EXPECT_THAT(names, ElementsAre("w", kOdd, "a\\b"));
}

TEST_P(ConvertNamesTest, SourcePathsAreAnyBytes) {
  ConversionFolder folder({}, kNamedHalves);
  const TestTensor weight = MakeTensor("w", DType::kFloat32, {4, 3});
  folder.WriteRank(0, std::vector<TestTensor>{weight});
  const std::string odd = folder.folder().path() / ("source/rank_0/" + kOdd + ".ckpt");
  std::filesystem::rename(folder.folder().path() / "source" / RankPath(0), odd);
  folder.options().checks.checksum = GetParam();
  for (const std::string& source : {folder.options().source.path, odd}) {
    folder.options().source.path = source;
    folder.options().force = true;
    const auto report = Convert(folder.options());
    ASSERT_TRUE(report.ok()) << report.status().message();
    const auto manifest =
        ParseManifest(ReadFolder(folder.options().target.folder).at("manifest.json"), "");
    ASSERT_TRUE(manifest.ok()) << manifest.status().message();
    ASSERT_EQ(manifest->sources.size(), 1U);
    EXPECT_EQ(std::filesystem::path(manifest->sources[0].path).filename(), kOdd + ".ckpt");
  }
}

INSTANTIATE_TEST_SUITE_P(Checksum, ConvertNamesTest, testing::Bool(),
                         [](const auto& row) { return row.param ? "with" : "without"; });

}  // namespace
}  // namespace reshard::convert_names_test
