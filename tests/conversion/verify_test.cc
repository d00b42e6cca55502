// Verify: what is damaged in a target folder, and where.
#include "reshard/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <vector>

#include "src/record/manifest_codec.h"
#include "tests/conversion/verify_fixture.h"
#include "tests/support/memory_pages.h"
#include "tests/support/says.h"
#include "tests/support/temporary_folder.h"

namespace reshard::verify_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(VerifyTest, FindsNothingInWhatWasWritten) {
  MakeSmall();
  const DamageReport report = Verified();
  EXPECT_THAT(report.damages, IsEmpty());
  EXPECT_THAT(report.manifests, ElementsAre("manifest.json"));
  EXPECT_EQ(report.files, 2U);
  EXPECT_EQ(report.bytes, 150U);
  EXPECT_EQ(report.files_without_digest, 0U);
}

TEST_F(VerifyTest, OtherFilesDoNotMatter) {
  MakeSmall();
  folder_.Write("rank_0/b.txt", "x");
  folder_.Write("part_records/rank_9/b.ckpt.jsonl", "x");
  folder_.Write("manifest.txt", "x");
  EXPECT_THAT(Verified().damages, IsEmpty());
}

TEST_F(VerifyTest, NamesThatNoFileSystemHasAreMissing) {
  const std::string name(300, 'n');
  for (const std::string& path : {name, name + "/a.ckpt", "rank_0/" + name}) {
    const auto manifest = EncodeManifest(
        {.tool_version = "0.1.0",
         .plan = "aaaa",
         .files = {
             {.path = path, .size = 4, .record_size = 1, .record_digest = std::string(32, '0')}}});
    ASSERT_TRUE(manifest.ok()) << manifest.status().message();
    folder_.Write("manifest.json", *manifest);
    const DamageReport report = Verified();
    ASSERT_THAT(report.damages, SizeIs(2));  // the part record, then the file
    EXPECT_EQ(report.damages[1].path, path);
    EXPECT_EQ(report.damages[1].kind, DamageReport::Damage::Kind::kMissing);
  }
}

TEST_F(VerifyTest, ComparesTheListOfChecksums) {
  MakeSmall();
  const std::string manifest = ReadFile(fs::path(folder_.path()) / "manifest.json");
  const std::string list = EncodeChecksums(*ParseManifest(manifest, "manifest.json"));
  EXPECT_THAT(Verified().notes, ElementsAre(HasSubstr("checksums.xxh128: missing")));
  folder_.Write("checksums.xxh128", list);
  EXPECT_THAT(Verified().notes, IsEmpty());
  EXPECT_THAT(Verified().damages, IsEmpty());
  for (size_t i = 0; i < list.size(); ++i) {
    std::string other = list;
    other[i] = static_cast<char>(other[i] ^ 1);
    folder_.Write("checksums.xxh128", other);
    const DamageReport::Damage damage = Only();
    EXPECT_EQ(damage.path, "checksums.xxh128");
    EXPECT_EQ(damage.kind, DamageReport::Damage::Kind::kContent);
    EXPECT_THAT(damage.detail, Naming("manifest.json", "byte " + std::to_string(i) + " "));
  }
  folder_.Write("checksums.xxh128", list.substr(0, list.size() - 1));
  EXPECT_EQ(Only().path, "checksums.xxh128");
  folder_.Write("checksums.xxh128", list + "x");
  EXPECT_EQ(Only().path, "checksums.xxh128");
  fs::remove(fs::path(folder_.path()) / "checksums.xxh128");
  fs::create_symlink("manifest.json", fs::path(folder_.path()) / "checksums.xxh128");
  EXPECT_EQ(Only().path, "checksums.xxh128");
}

TEST_F(VerifyTest, LocatesAFlippedByteInEachBlock) {
  MakeLarge();
  ASSERT_THAT(Verified().damages, IsEmpty());
  const struct {
    const char* name;
    uint64_t offset;
    uint64_t block;
    uint64_t length;
    std::vector<std::string> parameters;
  } rows[] = {
      {"first header", 0, 0, kBlock, {"first", "both"}},
      {"first byte of content", 100, 0, kBlock, {"first"}},
      {"first byte of a parameter's second Value", 3000, 0, kBlock, {"both"}},
      {"last byte of the first block", kBlock - 1, 0, kBlock, {"both"}},
      {"first byte of the second", kBlock, 1, kBlock, {"both"}},
      {"a header", kBlock + 1500, 1, kBlock, {"last"}},
      {"last byte of the second", 2 * kBlock - 1, 1, kBlock, {"last"}},
      {"first byte of the last", 2 * kBlock, 2, 1000, {"last"}},
      {"behind the parameters", 2 * kBlock + 999, 2, 1000, {}},
  };
  for (const auto& row : rows) {
    folder_.Damage("rank_0/a.ckpt", row.offset);
    const DamageReport::Damage damage = Only();
    EXPECT_EQ(damage.path, "rank_0/a.ckpt") << row.name;
    EXPECT_EQ(damage.kind, DamageReport::Damage::Kind::kContent) << row.name;
    EXPECT_THAT(damage.detail, HasSubstr("expected the digest ")) << row.name;
    ASSERT_TRUE(damage.block) << row.name;
    EXPECT_EQ(damage.block->index, row.block) << row.name;
    EXPECT_EQ(damage.block->range, (ByteRange{row.block * kBlock, row.length})) << row.name;
    EXPECT_EQ(damage.bad_blocks, 1U) << row.name;
    EXPECT_EQ(damage.parameters, row.parameters) << row.name;
    EXPECT_EQ(damage.parameter_count, row.parameters.size()) << row.name;
    for (int i = 0; i < 255; ++i) folder_.Damage("rank_0/a.ckpt", row.offset);  // as it was
  }
}

TEST_F(VerifyTest, CountsBadBlocks) {
  MakeLarge();
  folder_.Damage("rank_0/a.ckpt", 5000);
  folder_.Damage("rank_0/a.ckpt", 2 * kBlock + 5);
  const DamageReport::Damage damage = Only();
  EXPECT_EQ(damage.bad_blocks, 2U);
  EXPECT_EQ(damage.block->index, 0U);
  EXPECT_THAT(damage.parameters, ElementsAre("both", "last"));
}

TEST_F(VerifyTest, NamesTheFirstTwentyParameters) {
  std::vector<RecordedValue> values;
  for (uint64_t i = 0; i < 50; ++i) values.push_back(Value("p" + std::to_string(i), i * 10, 10));
  folder_.Add("rank_0/a.ckpt", 500, 0, "x", values);
  folder_.Publish();
  folder_.Damage("rank_0/a.ckpt", 499);
  EXPECT_THAT(Only().parameters, ElementsAre("p49"));
  fs::resize_file(folder_.PathOf("rank_0/a.ckpt"), 0);
  const DamageReport::Damage damage = Only();
  EXPECT_THAT(damage.parameters, SizeIs(20));
  EXPECT_EQ(damage.parameters.back(), "p19");
  EXPECT_EQ(damage.parameter_count, 50U);
}

TEST_F(VerifyTest, FilesOfAnotherSize) {
  MakeLarge();
  const fs::path path = folder_.PathOf("rank_0/a.ckpt");
  fs::resize_file(path, kBlock + 7);
  DamageReport::Damage damage = Only();
  EXPECT_EQ(damage.kind, DamageReport::Damage::Kind::kSize);
  EXPECT_EQ(damage.detail, "expected 134218728 bytes, found 67108871");
  ASSERT_TRUE(damage.block);
  EXPECT_EQ(damage.block->index, 1U);
  EXPECT_EQ(damage.bad_blocks, 2U);
  EXPECT_THAT(damage.parameters, ElementsAre("both", "last"));

  fs::resize_file(path, 0);
  damage = Only();
  EXPECT_EQ(damage.detail, "expected 134218728 bytes, found 0");
  EXPECT_EQ(damage.bad_blocks, 3U);
}

TEST_F(VerifyTest, LongerFiles) {
  MakeSmall();
  fs::resize_file(folder_.PathOf("rank_0/a.ckpt"), 101);
  DamageReport::Damage damage = Only();
  EXPECT_EQ(damage.kind, DamageReport::Damage::Kind::kSize);
  EXPECT_EQ(damage.detail, "expected 100 bytes, found 101");
  EXPECT_FALSE(damage.block) << "what was written is still there";

  folder_.Damage("rank_0/a.ckpt", 0);
  damage = Only();
  EXPECT_EQ(damage.kind, DamageReport::Damage::Kind::kSize);
  EXPECT_TRUE(damage.block);
}

TEST_F(VerifyTest, EmptyFiles) {
  folder_.Add("rank_0/a.ckpt", 0, 0, "");
  folder_.Publish();
  EXPECT_THAT(Verified().damages, IsEmpty());
  folder_.Write("rank_0/a.ckpt", "x");
  EXPECT_EQ(Only().kind, DamageReport::Damage::Kind::kSize);
}

TEST_F(VerifyTest, MissingFilesAndFolders) {
  MakeSmall();
  fs::remove(folder_.PathOf("rank_0/a.ckpt"));
  fs::remove_all(folder_.PathOf("rank_1"));
  EXPECT_THAT(
      Verified().damages,
      ElementsAre(AllOf(Field(&DamageReport::Damage::path, "rank_0/a.ckpt"),
                        Field(&DamageReport::Damage::kind, DamageReport::Damage::Kind::kMissing)),
                  AllOf(Field(&DamageReport::Damage::path, "rank_1/a.ckpt"),
                        Field(&DamageReport::Damage::kind, DamageReport::Damage::Kind::kMissing))));
}

TEST_F(VerifyTest, FollowsNoLinks) {
  MakeSmall();
  const fs::path file = folder_.PathOf("rank_0/a.ckpt");
  fs::rename(file, folder_.PathOf("elsewhere"));
  fs::create_symlink("../elsewhere", file);
  DamageReport::Damage damage = Only();
  EXPECT_EQ(damage.path, "rank_0/a.ckpt");
  EXPECT_EQ(damage.kind, DamageReport::Damage::Kind::kNoFile);
  EXPECT_EQ(damage.detail, "expected a file, found a symbolic link");

  fs::remove(file);
  fs::create_directory(file);
  EXPECT_EQ(Only().detail, "expected a file, found a folder");
  fs::remove(file);
  fs::rename(folder_.PathOf("elsewhere"), file);
  ASSERT_THAT(Verified().damages, IsEmpty());

  fs::rename(folder_.PathOf("rank_0"), folder_.PathOf("other"));
  fs::create_symlink("other", folder_.PathOf("rank_0"));
  damage = Only();
  EXPECT_EQ(damage.kind, DamageReport::Damage::Kind::kNoFile);
}

TEST_F(VerifyTest, TheFolderItselfMayBeALink) {
  MakeSmall();
  const TemporaryFolder other;
  fs::create_symlink(folder_.path(), other.path() / "link");
  const auto report = Verify(other.path() / "link");
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->damages, IsEmpty());
}

TEST_F(VerifyTest, WithoutDigestsOnlySizesCount) {
  folder_.Add("rank_0/a.ckpt", 100, 0, "a", {Value("w", 0, 100)}, false);
  folder_.Add("rank_1/a.ckpt", 100, 0, "b");
  folder_.Publish();
  folder_.Damage("rank_0/a.ckpt", 0);
  const DamageReport report = Verified();
  EXPECT_THAT(report.damages, IsEmpty());
  EXPECT_EQ(report.files_without_digest, 1U);
  EXPECT_EQ(report.bytes, 100U);
  fs::resize_file(folder_.PathOf("rank_0/a.ckpt"), 99);
  EXPECT_EQ(Only().detail, "expected 100 bytes, found 99");
}

TEST_F(VerifyTest, Refuses) {
  const auto none = Verify(folder_.path());
  EXPECT_EQ(none.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(none.status().message(), Naming("manifest.json"));
  EXPECT_EQ(Verify(folder_.path() + "/nowhere").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Verify("").status().code(), StatusCode::kInvalidArgument);
  MakeSmall();
  EXPECT_EQ(Verify(folder_.path(), nullptr, {.jobs = -1}).status().code(),
            StatusCode::kInvalidArgument);
  folder_.Write("manifest_part1.json", "{\"schema_version\": 1}");
  const auto old = Verify(folder_.path());
  EXPECT_EQ(old.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(old.status().message(), HasSubstr("manifest_part1.json"));
}

TEST_F(VerifyTest, TellsHowFarItIs) {
  MakeLarge();
  folder_.Add("rank_1/a.ckpt", 100, 0, "a");
  folder_.Add("rank_2/a.ckpt", 77, 0, "b");
  folder_.Publish("manifest_part1.json");
  fs::remove(folder_.PathOf("rank_2/a.ckpt"));
  Progress last;
  const auto progress = [&](const Progress& now) {  // calls do not overlap: TSan looks at it
    EXPECT_GE(now.done_bytes, last.done_bytes);
    last = now;
  };
  ASSERT_TRUE(Verify(folder_.path(), nullptr, {.jobs = 3, .progress = progress}).ok());
  EXPECT_EQ(last.total_bytes, 2 * kBlock + 1177);
  EXPECT_EQ(last.done_bytes, last.total_bytes) << "missing files have been dealt with, too";
}

TEST_F(VerifyTest, StopsOnRequest) {
  MakeLarge();
  std::stop_source source;
  const auto progress = [&](const Progress&) { source.request_stop(); };
  const auto report = Verify(folder_.path(), nullptr,
                             {.jobs = 1, .stop = source.get_token(), .progress = progress});
  EXPECT_EQ(report.status().code(), StatusCode::kCancelled);
}

TEST_F(VerifyTest, AFileThatIsWrittenToMeanwhileIsAnError) {
  MakeLarge();
  bool written = false;
  const auto progress = [&](const Progress&) {
    if (!std::exchange(written, true)) {
      std::ofstream(folder_.PathOf("rank_0/a.ckpt"), std::ios::app) << 'x';
    }
  };
  const auto report = Verify(folder_.path(), nullptr, {.progress = progress});
  EXPECT_EQ(report.status().code(), StatusCode::kChanged);
  EXPECT_THAT(report.status().message(), HasSubstr("rank_0/a.ckpt"));
}

TEST_F(VerifyTest, ManyFilesInManyThreads) {
  for (int i = 0; i < 40; ++i) {
    const std::string path = "rank_" + std::to_string(i) + "/a.ckpt";
    folder_.Add(path, 10000, 0, path, {Value("w", 100, 900), Value("v", 1000, 9000)});
  }
  folder_.Publish();
  folder_.Damage("rank_7/a.ckpt", 9);
  folder_.Damage("rank_33/a.ckpt", 9999);
  const DamageReport alone = Verified(1);
  const DamageReport together = Verified(8);
  for (const DamageReport& report : {alone, together}) {
    EXPECT_EQ(report.bytes, 400000U);
    EXPECT_THAT(report.damages, ElementsAre(Field(&DamageReport::Damage::path, "rank_33/a.ckpt"),
                                            Field(&DamageReport::Damage::path, "rank_7/a.ckpt")));
  }
}

// Each byte is read once: the windows behind it are given back.
TEST_F(VerifyTest, LeavesFewPagesMapped) {
  MakeLarge();
  const std::string path = folder_.PathOf("rank_0/a.ckpt");
  size_t most = 0;
  const auto progress = [&](const Progress&) { most = std::max(most, MappedPages(path)); };
  ASSERT_TRUE(Verify(folder_.path(), nullptr, {.jobs = 1, .progress = progress}).ok());
  // Those that are kept, those that are read ahead among them, and one in use.
  EXPECT_LE(most, size_t{5} * (4 << 20) / 4096);
}

}  // namespace
}  // namespace reshard::verify_test
