// The manifest: bytes, and every way in which a file can fail to be one.
#include "format/manifest/manifest_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace reshard {
namespace {

using testing::HasSubstr;

const char kWhole[] = R"({
  "schema_version": 1,
  "tool": {
    "name": "reshard",
    "version": "0.1.0"
  },
  "plan": "8d1f",
  "files": [
    {
      "path": "rank_0/a.ckpt",
      "size": 5
    },
    {
      "path": "rank_1/\"ä\".ckpt",
      "size": 18446744073709551615
    }
  ]
}
)";

Manifest Whole() {
  return {.tool_version = "0.1.0",
          .plan = "8d1f",
          .files = {{"rank_0/a.ckpt", 5}, {"rank_1/\"ä\".ckpt", UINT64_MAX}}};
}

TEST(ManifestCodec, EncodesSortedWhateverTheOrder) {
  Manifest manifest = Whole();
  std::swap(manifest.files[0], manifest.files[1]);
  const auto bytes = EncodeManifest(manifest);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(*bytes, kWhole);
}

TEST(ManifestCodec, ParsesWhatItEncodes) {
  const auto manifest = ParseManifest(kWhole, "m.json");
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  EXPECT_EQ(*manifest, Whole());
}

TEST(ManifestCodec, EncodesNoFiles) {
  const Manifest empty{.tool_version = "1", .plan = "0", .files = {}};
  const auto bytes = EncodeManifest(empty);
  ASSERT_TRUE(bytes.ok());
  const auto back = ParseManifest(*bytes, "m.json");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, empty);
}

TEST(ManifestCodec, RefusesToEncode) {
  const struct {
    const char* name;
    const char* plan;
    std::vector<ManifestFile> files;
    const char* message;
  } rows[] = {
      {"no plan", "", {}, "1 to 64 lower-case hexadecimal digits"},
      {"plan with a slash", "../a", {}, "fingerprint \"../a\""},
      {"capitals", "8D", {}, "fingerprint \"8D\""},
      {"twice", "0", {{"a", 1}, {"b", 1}, {"a", 2}}, "\"a\" is listed twice"},
      {"outside", "0", {{"../a", 1}}, "\"../a\": it has the component \"..\""},
      {"no UTF-8", "0", {{"a\xff", 1}}, "not valid UTF-8"},
  };
  for (const auto& row : rows) {
    const auto bytes = EncodeManifest({.tool_version = "1", .plan = row.plan, .files = row.files});
    ASSERT_FALSE(bytes.ok()) << row.name;
    EXPECT_EQ(bytes.status().code(), StatusCode::kInvalidArgument) << row.name;
    EXPECT_THAT(bytes.status().message(), HasSubstr(row.message)) << row.name;
  }
}

// Puts `replacement` in place of the only `piece` of a good manifest.
std::string With(const std::string& piece, const std::string& replacement) {
  std::string bytes = kWhole;
  const size_t at = bytes.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  return bytes.replace(at, piece.size(), replacement);
}

TEST(ManifestCodec, RefusesToParse) {
  const std::string path0 = "\"rank_0/a.ckpt\"";
  const struct {
    const char* name;
    std::string bytes;
    const char* message;
  } rows[] = {
      {"empty", "", "m.json: no JSON: "},
      {"cut off", std::string(kWhole).substr(0, 60), "parse error at line"},
      {"rubbish behind", std::string(kWhole) + "x", "no JSON"},
      {"not UTF-8", With("a.ckpt", "\xff.ckpt"), "no JSON"},
      {"an array", "[]", "m.json: expected an object, found array"},
      {"a number", "1", "expected an object, found number"},
      {"member missing", With("\"plan\": \"8d1f\",", ""), "the member \"plan\" is missing"},
      {"member unknown", With("\"plan\"", "\"x\": 1, \"plan\""), "unknown member \"x\""},
      {"member twice", With("\"plan\"", "\"plan\": \"1\", \"plan\""), "\"plan\" occurs twice"},
      {"size twice", With("\"size\": 5", "\"size\": 5, \"size\": 6"), "\"size\" occurs twice"},
      {"version a string", With(": 1,", ": \"1\","), "\"schema_version\": expected an unsigned"},
      {"version a fraction", With(": 1,", ": 1.0,"), "expected an unsigned integer"},
      {"tool a string", With("\"tool\": {", "\"tool\": \"reshard\", \"t\": {"), "unknown member"},
      {"another tool", With("\"reshard\"", "\"cp\""), "written by \"cp\""},
      {"tool's version a number", With("\"0.1.0\"", "1"),
       "\"version\": expected a string, found 1"},
      {"plan no digits", With("8d1f", "8D1F"), "\"plan\": expected 1 to 64"},
      {"files an object",
       R"({"schema_version":1,"tool":{"name":"reshard","version":"1"},"plan":"0","files":{}})",
       "m.json: \"files\": expected an array, found object"},
      {"file a string", With("\"files\": [", "\"files\": [\"a\","),
       "\"files\"[0]: expected an object"},
      {"too deep", With("\"size\": 5", "\"size\": [[[[]]]]"), "nested deeper"},
      {"size negative", With("5", "-5"),
       "\"size\": expected an unsigned integer below 2^64, found -5"},
      {"size a fraction", With(": 5", ": 5.5"), "found 5.5"},
      {"size beyond 64 bits", With("18446744073709551615", "18446744073709551616"), "found 1.844"},
      {"size a string", With(": 5", ": \"5\""), "\"size\": expected an unsigned integer"},
      {"path a number", With(path0, "7"), "\"path\": expected a string"},
      {"path empty", With(path0, "\"\""), "path \"\": it is empty"},
      {"path absolute", With(path0, "\"/a\""), "it is absolute"},
      {"path upwards", With(path0, "\"a/../b\""), "it has the component \"..\""},
      {"path with a dot", With(path0, "\"./b\""), "it has the component \".\""},
      {"path ends in a slash", With(path0, "\"a/\""), "it has an empty component"},
      {"path with two slashes", With(path0, "\"a//b\""), "it has an empty component"},
      {"path with a newline", With(path0, R"("a\nb")"), "it has control characters"},
      {"path with a NUL", With(path0, R"("a\u0000b")"), "it has control characters"},
      {"path in the staging", With(path0, "\".reshard/x\""), "staging folder .reshard"},
      {"path too long", With(path0, '"' + std::string(4096, 'a') + '"'), "longer than 4095 bytes"},
      {"path twice", With("rank_1/\\\"ä\\\".ckpt", "rank_0/a.ckpt"), "sorted and occur once"},
      {"not sorted", With("rank_0/a.ckpt", "rank_2/a.ckpt"), "sorted and occur once"},
      {"too large", std::string(kMaxManifestBytes + 1, ' '), "a manifest has at most"},
  };
  for (const auto& row : rows) {
    const auto manifest = ParseManifest(row.bytes, "m.json");
    ASSERT_FALSE(manifest.ok()) << row.name;
    EXPECT_EQ(manifest.status().code(), StatusCode::kCorrupt) << row.name;
    EXPECT_THAT(manifest.status().message(), HasSubstr(row.message)) << row.name;
    EXPECT_THAT(manifest.status().message(), HasSubstr("m.json")) << row.name;
  }
}

TEST(ManifestCodec, RefusesAnotherSchemaBeforeItsMembers) {
  const auto manifest = ParseManifest(R"({"schema_version": 2, "parts": []})", "m.json");
  ASSERT_FALSE(manifest.ok());
  EXPECT_EQ(manifest.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(manifest.status().message(), HasSubstr("schema_version 2"));
}

TEST(ManifestCodec, TakesPathsAtTheLimit) {
  EXPECT_TRUE(CheckTargetPath(std::string(4095, 'a')).ok());
  EXPECT_TRUE(CheckTargetPath("..a/...").ok());
  EXPECT_TRUE(CheckTargetPath("a/.reshard").ok());
  EXPECT_TRUE(CheckFingerprint(std::string(64, 'f')).ok());
  EXPECT_FALSE(CheckFingerprint(std::string(65, 'f')).ok());
}

}  // namespace
}  // namespace reshard
