// Verify: what it makes of damaged records and manifests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "src/digest/xxh3.h"
#include "src/record/manifest_codec.h"
#include "src/record/part_record.h"
#include "tests/conversion/verify_fixture.h"

namespace reshard::verify_records_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(VerifyTest, EveryDamagedByteOfARecordIsNoticed) {
  folder_.Add("rank_0/a.ckpt", 100, 10, "some content", {Value("w", 20, 30)});
  folder_.Publish();
  const std::string path = RecordPath("rank_0/a.ckpt");
  const std::string whole = ReadFile(folder_.PathOf(path));
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ 1);
    folder_.Write(path, bytes);
    const DamageReport::Damage damage = Only();
    EXPECT_EQ(damage.path, path) << i;
    EXPECT_EQ(damage.kind, DamageReport::Damage::Kind::kRecord) << i;
    EXPECT_FALSE(damage.detail.empty()) << i;
  }
}

TEST_F(VerifyTest, RecordsThatAreNotTheManifests) {
  MakeSmall();
  const std::string path = RecordPath("rank_0/a.ckpt");
  const std::string other = ReadFile(folder_.PathOf(RecordPath("rank_1/a.ckpt")));
  const std::string whole = ReadFile(folder_.PathOf(path));
  const struct {
    const char* name;
    std::string bytes;
    const char* detail;
  } rows[] = {
      {"another file's", other, "bytes, found"},
      {"cut off", whole.substr(0, whole.size() - 1), "bytes, found"},
      {"cut and filled", whole.substr(0, whole.size() - 10) + std::string(10, 'x'), "cut off"},
      {"of another version",
       [&] {
         std::string bytes = whole;
         return bytes.replace(bytes.find(":2,"), 3, ":3,");
       }(),
       "3, but this reshard knows 2"},
  };
  for (const auto& row : rows) {
    folder_.Write(path, row.bytes);
    const DamageReport::Damage damage = Only();
    EXPECT_EQ(damage.kind, DamageReport::Damage::Kind::kRecord) << row.name;
    EXPECT_THAT(damage.detail, HasSubstr(row.detail)) << row.name;
  }
  fs::remove(folder_.PathOf(path));
  EXPECT_EQ(Only().detail, "missing; its file was compared without it");
  fs::create_symlink(folder_.PathOf(RecordPath("rank_1/a.ckpt")), folder_.PathOf(path));
  EXPECT_EQ(Only().detail,
            "expected a file, found a symbolic link; its file was compared without it");
}

TEST_F(VerifyTest, ValuesOfARecordThatFitsItsDigestsAreReadOnlyToNameDamage) {
  folder_.Add("rank_0/a.ckpt", 100, 10, "some content", {Value("w", 20, 30)});
  folder_.Publish();
  const std::string path = RecordPath("rank_0/a.ckpt");
  std::string record = ReadFile(folder_.PathOf(path));
  record.replace(record.find("Int8"), 4, "Int9");
  record.resize(record.rfind(kRecordSealBegin));
  Xxh3 lines;
  lines.Update(record);
  record += PartRecordSeal(lines, 1);
  folder_.Write(path, record);
  auto manifest = ParseManifest(ReadFile(folder_.PathOf("manifest.json")), "manifest.json");
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  Xxh3 whole;
  whole.Update(record);
  manifest->files[0].record_digest = whole.HexDigest();
  folder_.Write("manifest.json", *EncodeManifest(*manifest));
  EXPECT_THAT(Verified().damages, IsEmpty());

  folder_.Damage("rank_0/a.ckpt", 30);
  const DamageReport::Damage damage = Only();
  EXPECT_EQ(damage.kind, DamageReport::Damage::Kind::kContent);
  EXPECT_THAT(damage.detail, HasSubstr("Int9"));
  EXPECT_THAT(damage.parameters, IsEmpty());
}

TEST_F(VerifyTest, AFileIsComparedWithoutItsRecord) {
  MakeSmall();
  fs::remove(folder_.PathOf(RecordPath("rank_0/a.ckpt")));
  folder_.Damage("rank_0/a.ckpt", 30);
  const DamageReport report = Verified();
  ASSERT_THAT(report.damages, SizeIs(2));
  EXPECT_EQ(report.damages[0].kind, DamageReport::Damage::Kind::kRecord);
  EXPECT_EQ(report.damages[1].kind, DamageReport::Damage::Kind::kContent);
  EXPECT_FALSE(report.damages[1].block);
}

TEST_F(VerifyTest, DamagedManifests) {
  MakeSmall();
  folder_.Damage("manifest.json", 200);
  DamageReport::Damage damage = Only();
  EXPECT_EQ(damage.path, "manifest.json");
  EXPECT_EQ(damage.kind, DamageReport::Damage::Kind::kManifest);
  EXPECT_THAT(damage.detail, testing::StartsWith("damaged: byte "));
  EXPECT_EQ(Verified().files, 0U);

  fs::rename(folder_.PathOf("manifest.json"), folder_.PathOf("other.json"));
  fs::create_symlink("other.json", folder_.PathOf("manifest.json"));
  EXPECT_THAT(Only().detail, HasSubstr("found a symbolic link"));
}

TEST_F(VerifyTest, AllManifestsCount) {
  folder_.Add("rank_0/a.ckpt", 100, 0, "a");
  folder_.Publish("manifest_part0.json");
  folder_.Add("rank_1/a.ckpt", 100, 0, "b");
  folder_.Publish("manifest_part1.json");
  folder_.Add("rank_2/a.ckpt", 100, 0, "c");
  folder_.Publish("manifest_part10.json");
  DamageReport report = Verified();
  EXPECT_THAT(report.manifests,
              ElementsAre("manifest_part0.json", "manifest_part1.json", "manifest_part10.json"));
  EXPECT_EQ(report.files, 3U);
  EXPECT_THAT(report.damages, IsEmpty());
  folder_.Damage("manifest_part0.json", 0);
  folder_.Damage("rank_1/a.ckpt", 0);
  report = Verified();
  ASSERT_THAT(report.damages, SizeIs(2)) << "one damaged manifest does not hide the others' files";
  EXPECT_EQ(report.damages[0].path, "manifest_part0.json");
  EXPECT_EQ(report.damages[1].path, "rank_1/a.ckpt");
}

}  // namespace
}  // namespace reshard::verify_records_test
