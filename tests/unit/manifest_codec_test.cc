// The manifest: its bytes, and what cannot be encoded.
#include "src/record/manifest_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "src/digest/xxh3.h"

namespace reshard::manifest_codec_test {
namespace {

using testing::HasSubstr;

const std::string kDigestA(32, 'a');
const std::string kDigestB(32, 'b');

const char kSealed[] = R"({
  "schema_version": 3,
  "tool": {
    "name": "reshard",
    "version": "0.1.0"
  },
  "plan": "8d1f",
  "strategies": {
    "source": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "target": null
  },
  "sources": [
    {
      "path": "rank_0/net\n.ckpt",
      "size": 7,
      "digest": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
    }
  ],
  "stamps": [
    {
      "path": "rank_0/net\n.ckpt",
      "size": 7,
      "mtime_ns": 18446744073709551615,
      "inode": 12
    }
  ],
  "files": [
    {
      "path": "rank_0/a.ckpt",
      "size": 5,
      "digest": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
      "record": {
        "path": "part_records/rank_0/a.ckpt.jsonl",
        "size": 400,
        "digest": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      }
    },
    {
      "path": "rank_1/\"ä\".ckpt",
      "size": 18446744073709551615,
      "digest": null,
      "encryption": "SM4-CBC",
      "key_check": "cccccccccccccccccccccccccccccccc",
      "record": {
        "path": "part_records/rank_1/\"ä\".ckpt.jsonl",
        "size": 18446744073709551615,
        "digest": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      }
    }
  ])";

std::string WholeBytes() {
  Xxh3 digest;
  digest.Update(std::string_view(kSealed));
  return std::string(kSealed) + ",\n  \"digest\": \"" + digest.HexDigest() + "\"\n}\n";
}

ManifestFile File(const std::string& path) {
  return {.path = path, .size = 1, .record_size = 1, .record_digest = kDigestA};
}

Manifest Whole() {
  return {.tool_version = "0.1.0",
          .plan = "8d1f",
          .source_strategy = kDigestA,
          .sources = {{"rank_0/net\n.ckpt", 7, kDigestB}},
          .stamps = {{"rank_0/net\n.ckpt", 7, -1, 12}},
          .files = {{"rank_0/a.ckpt", 5, kDigestB, 400, kDigestA},
                    {"rank_1/\"ä\".ckpt", UINT64_MAX, "", UINT64_MAX, kDigestA,
                     TargetSpec::EncryptionMode::kSm4Cbc, std::string(32, 'c')}}};
}

TEST(ManifestCodec, EncodesSortedWhateverTheOrder) {
  Manifest manifest = Whole();
  std::swap(manifest.files[0], manifest.files[1]);
  const auto bytes = EncodeManifest(manifest);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(*bytes, WholeBytes());
}

TEST(ManifestCodec, ParsesWhatItEncodes) {
  const auto manifest = ParseManifest(WholeBytes(), "m.json");
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  EXPECT_EQ(*manifest, Whole());
}

// What earlier versions wrote: without stamps.
TEST(ManifestCodec, ParsesSchema2) {
  std::string old = kSealed;
  old.replace(old.find(": 3,"), 4, ": 2,");
  const size_t stamps = old.find("  \"stamps\"");
  old.erase(stamps, old.find("  \"files\"") - stamps);
  const auto manifest = ParseManifest(old + ManifestSeal(old), "m.json");
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  Manifest expected = Whole();
  expected.stamps.clear();
  EXPECT_EQ(*manifest, expected);
}

TEST(ManifestCodec, EncodesNoFilesAndNoSources) {
  const Manifest empty{.tool_version = "1", .plan = "0"};
  const auto bytes = EncodeManifest(empty);
  ASSERT_TRUE(bytes.ok());
  EXPECT_THAT(*bytes,
              HasSubstr("\"sources\": [],\n  \"stamps\": [],\n  \"files\": [],\n  \"digest\""));
  const auto back = ParseManifest(*bytes, "m.json");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, empty);
}

TEST(ManifestCodec, RefusesToEncode) {
  const auto with = [](auto change) {
    Manifest manifest = Whole();
    change(manifest);
    return manifest;
  };
  const struct {
    const char* name;
    Manifest manifest;
    const char* message;
  } rows[] = {
      {"no plan", with([](Manifest& m) { m.plan = ""; }), "1 to 64 lower-case hexadecimal digits"},
      {"plan with a slash", with([](Manifest& m) { m.plan = "../a"; }), "found \"../a\""},
      {"capitals", with([](Manifest& m) { m.plan = "8D"; }), "found \"8D\""},
      {"twice", with([](Manifest& m) {
         m.files = {File("a"), File("b"), File("a")};
       }),
       "path \"a\" after \"a\""},
      {"source twice", with([](Manifest& m) {
         m.sources = {{"a", 1}, {"a", 2}};
       }),
       "path \"a\" after \"a\""},
      {"stamp twice", with([](Manifest& m) {
         m.stamps = {{"a", 1}, {"a", 2}};
       }),
       "path \"a\" after \"a\""},
      {"key check no digest", with([](Manifest& m) { m.files[0].key_check = "x"; }), "found \"x\""},
      {"outside", with([](Manifest& m) { m.files = {File("../a")}; }),
       "\"../a\": it has the component \"..\""},
      {"short digest", with([](Manifest& m) { m.files[0].digest = "ab"; }),
       "expected 32 lower-case hexadecimal digits, found \"ab\""},
      {"strategy no digest", with([](Manifest& m) { m.target_strategy = "x"; }), "found \"x\""},
      {"no record digest", with([](Manifest& m) { m.files[0].record_digest = ""; }), "found \"\""},
      {"record digest in capitals",
       with([](Manifest& m) { m.files[0].record_digest = std::string(32, 'A'); }), "found \"AAA"},
  };
  for (const auto& row : rows) {
    const auto bytes = EncodeManifest(row.manifest);
    ASSERT_FALSE(bytes.ok()) << row.name;
    EXPECT_EQ(bytes.status().code(), StatusCode::kInvalidArgument) << row.name;
    EXPECT_THAT(bytes.status().message(), HasSubstr(row.message)) << row.name;
  }
}

TEST(ManifestCodec, ListsChecksumsOfFilesThatHaveOne) {
  Manifest manifest = Whole();
  manifest.files.push_back(
      {.path = "rank_0/A.ckpt", .digest = kDigestA, .record_digest = kDigestA});
  EXPECT_EQ(EncodeChecksums(manifest),
            kDigestA + "  rank_0/A.ckpt\n" + kDigestB + "  rank_0/a.ckpt\n");
}

TEST(ManifestPaths, TakesPathsAtTheLimit) {
  EXPECT_TRUE(CheckTargetPath(std::string(4095, 'a')).ok());
  EXPECT_TRUE(CheckTargetPath("..a/...").ok());
  for (const char* path : {"a/.reshard", "a/part_records", "a/manifest.json", "a/checksums.xxh128",
                           "manifest_part.json", "manifest_partx.json", "checksums_part1.json"}) {
    EXPECT_TRUE(CheckTargetPath(path).ok()) << path;
  }
  EXPECT_TRUE(CheckFingerprint(std::string(64, 'f')).ok());
  EXPECT_FALSE(CheckFingerprint(std::string(65, 'f')).ok());
}

TEST(ManifestPaths, RefusesNamesThatMeanSomethingElse) {
  for (const char* path :
       {".reshard/x", "part_records/x", "part_records", "manifest.json", "manifest_part10.json",
        "manifest.json/x", "checksums.xxh128", "checksums_part3.xxh128", "checksums.xxh128/a"}) {
    const Status status = CheckTargetPath(path);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << path;
    EXPECT_THAT(status.message(), HasSubstr(path)) << path;
  }
}

TEST(ManifestPaths, NamesWhatLiesBeside) {
  EXPECT_EQ(ChecksumsName("manifest.json"), "checksums.xxh128");
  EXPECT_EQ(ChecksumsName("manifest_part12.json"), "checksums_part12.xxh128");
  EXPECT_EQ(RecordPath("rank_0/a.ckpt"), "part_records/rank_0/a.ckpt.jsonl");
  EXPECT_EQ(RecordedPath("part_records/rank_0/a.ckpt.jsonl"), "rank_0/a.ckpt");
  for (const char* other : {"rank_0/a.ckpt", "part_records/rank_0/a.ckpt", "part_records.jsonl",
                            "part_recordsx/a.ckpt.jsonl", ""}) {
    EXPECT_EQ(RecordedPath(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace reshard::manifest_codec_test
