// The examples of src/record/SPEC.md are what the codecs read and write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "src/digest/logical_digest.h"
#include "src/digest/xxh3.h"
#include "src/record/block_record.h"
#include "src/record/manifest_codec.h"
#include "src/record/part_record.h"
#include "src/record/plan_record.h"

namespace reshard::manifest_spec_test {
namespace {

using testing::HasSubstr;

std::string Spec() {
  std::ifstream file(RESHARD_TESTS_DIR "/../src/record/SPEC.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

// The text of the only block that begins with ```KIND.
std::string Block(const std::string& kind) {
  const std::string spec = Spec();
  const std::string begin = "```" + kind + "\n";
  const size_t at = spec.find(begin);
  EXPECT_NE(at, std::string::npos);
  return spec.substr(at + begin.size(), spec.find("```", at + 3) - at - begin.size());
}

TEST(ManifestSpec, TheManifestIsOne) {
  const std::string bytes = Block("json");
  const auto manifest = ParseManifest(bytes, "SPEC.md");
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  EXPECT_EQ(*EncodeManifest(*manifest), bytes);
}

TEST(ManifestSpec, ThePartRecordIsOneAndFitsTheManifest) {
  const std::string bytes = Block("jsonl");
  std::vector<RecordedValue> values;
  PartRecordParser parser("SPEC.md", [&](const RecordedValue& value) { values.push_back(value); });
  ASSERT_TRUE(parser.Feed(bytes).ok());
  const Status finished = parser.Finish();
  ASSERT_TRUE(finished.ok()) << finished.message();

  std::string again;
  PartRecordEncoder encoder([&](std::string_view piece) {
    again += piece;
    return Status();
  });
  ASSERT_TRUE(encoder.WriteHead(*parser.head()).ok());
  for (const RecordedValue& value : values) ASSERT_TRUE(encoder.WriteValue(value).ok());
  ASSERT_TRUE(encoder.Finish().ok());
  EXPECT_EQ(again, bytes);

  const auto manifest = ParseManifest(Block("json"), "SPEC.md");
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  const ManifestFile& file = manifest->files.at(0);
  EXPECT_EQ(file.path, parser.head()->path);
  EXPECT_EQ(file.size, parser.head()->size);
  EXPECT_EQ(file.digest, parser.head()->digest);
  EXPECT_EQ(file.record_size, parser.size());
  EXPECT_EQ(file.record_digest, parser.HexDigest());
}

TEST(ManifestSpec, TheBlockRecordIsOne) {
  const std::string bytes = Block("ndjson");
  const auto record = ParseBlockRecord(bytes, "SPEC.md");
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_EQ(*EncodeBlockRecord(*record), bytes);
}

TEST(ManifestSpec, ThePlanRecordIsOne) {
  const std::string bytes = Block("jsonlines");
  const auto record = ParsePlanRecord(bytes, "SPEC.md");
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_EQ(*EncodePlanRecord(*record), bytes);
}

TEST(ManifestSpec, TheSourcesDigestsFollowFromTheValues) {
  PartRecordHead head;
  RecordedValue only;
  PartRecordParser parser("SPEC.md", [&](const RecordedValue& value) { only = value; });
  ASSERT_TRUE(parser.Feed(Block("jsonl")).ok());
  Xxh3 taken;
  std::string line;
  SetTakenParameter(only.name, only.dtype, only.full_shape, line);
  taken.Update(line + only.digest + "\n");
  EXPECT_EQ(parser.head()->sources.at(0).digest, taken.HexDigest());

  SourceSummary summary;
  ASSERT_TRUE(summary.Add(*parser.head()).ok());
  EXPECT_EQ(ParseManifest(Block("json"), "SPEC.md")->sources, summary.Sources());
}

TEST(ManifestSpec, TheLogicalDigestsAreRight) {
  const auto digest = [](std::initializer_list<uint8_t> bytes, uint64_t position) {
    std::vector<std::byte> copy;
    for (const uint8_t byte : bytes) copy.push_back(static_cast<std::byte>(byte));
    LogicalHasher hasher;
    Digest128 sum{};
    hasher.Add(sum, copy.data(), copy.size(), position);
    return ToHex(sum);
  };
  const std::string spec = Spec();
  EXPECT_THAT(spec, HasSubstr("| `01` | 1 | `" + digest({1}, 0) + "` |"));
  EXPECT_THAT(spec, HasSubstr("| `01 02` | 1 + x^9 | `" + digest({1, 2}, 0) + "` |"));
  EXPECT_THAT(spec, HasSubstr("x^128 = x^7 + x^2 + x + 1 | `" + digest({1}, 16) + "` |"));
  EXPECT_THAT(Block("jsonl"), HasSubstr(digest({1, 0, 2, 0}, 4)));
}

TEST(SourceSummary, NoticesSourcesOfTwoSizesAndRecordsWithoutDigests) {
  SourceSummary summary;
  const std::string hex(32, 'a');
  ASSERT_TRUE(summary.Add({.path = "a", .digest = hex, .sources = {{"s", 1, hex}}}).ok());
  ASSERT_TRUE(summary.Add({.path = "b", .sources = {{"s", 1}, {"t", 2}}}).ok());
  EXPECT_THAT(summary.Sources(),
              testing::ElementsAre(ManifestSource{"s", 1}, ManifestSource{"t", 2}));
  const Status status = summary.Add({.path = "c", .sources = {{"t", 3}}});
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), HasSubstr("the source \"t\" has 3 bytes, an earlier one 2"));
}

}  // namespace
}  // namespace reshard::manifest_spec_test
