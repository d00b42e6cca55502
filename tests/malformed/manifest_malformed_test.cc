// Manifests with one thing wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "src/digest/xxh3.h"
#include "src/record/manifest_codec.h"

namespace reshard::manifest_malformed_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kDigestA(32, 'a');

std::string Whole() {
  const auto bytes =
      EncodeManifest({.tool_version = "0.1.0",
                      .plan = "8d1f",
                      .source_strategy = kDigestA,
                      .sources = {{"rank_0/s.ckpt", 7, kDigestA}, {"rank_1/s.ckpt", 7, kDigestA}},
                      .stamps = {{"rank_0/s.ckpt", 7, 11, 12}, {"rank_1/s.ckpt", 7, 13, 14}},
                      .files = {{"rank_0/a.ckpt", 5, kDigestA, 400, kDigestA},
                                {"rank_1/a.ckpt", UINT64_MAX, kDigestA, 401, kDigestA}}});
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return *bytes;
}

// Closes the object that `body` begins, as an encoder would.
std::string Sealed(const std::string& body) {
  Xxh3 digest;
  digest.Update(std::string_view(body));
  return body + ",\n  \"digest\": \"" + digest.HexDigest() + "\"\n}\n";
}

// Puts `replacement` in place of the first `piece` of a good manifest, and seals what results: so
// the seal is not what is wrong.
std::string With(const std::string& piece, const std::string& replacement) {
  std::string bytes = Whole();
  bytes.resize(bytes.rfind(",\n  \"digest\""));
  const size_t at = bytes.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  return Sealed(bytes.replace(at, piece.size(), replacement));
}

TEST(ManifestMalformed, IsRefused) {
  const std::string path0 = "\"rank_0/a.ckpt\"";
  const std::string record0 = "\"part_records/rank_0/a.ckpt.jsonl\"";
  const struct {
    const char* name;
    std::string bytes;
    const char* message;
  } rows[] = {
      {"empty", "", "m.json: no JSON at byte 1: "},
      {"an array", "[]", "m.json: byte 1: expected an object, found an array"},
      {"a number", "1", "expected an object, found 1"},
      {"an empty object", "{}", "the member \"schema_version\" is missing"},
      {"rubbish behind", Whole() + "x", "no JSON at byte"},
      {"a space behind", Whole() + " ", "is not formatted as at the end of a manifest"},
      {"no newline at the end", Whole().substr(0, Whole().size() - 1), "is not formatted"},
      {"not UTF-8", With("a.ckpt", "\xff.ckpt"), "no JSON at byte"},
      {"member missing", With("\"plan\": \"8d1f\",", ""),
       "expected the member \"plan\", found \"strategies\""},
      {"member unknown", With("\"plan\"", "\"x\": 1, \"plan\""),
       "expected the member \"plan\", found \"x\""},
      {"member twice", With("\"plan\"", "\"plan\": \"1\", \"plan\""),
       "expected the member \"strategies\", found \"plan\""},
      {"member behind", With("\"version\": \"0.1.0\"", "\"version\": \"0.1.0\", \"x\": 1"),
       "\"tool\": unknown member \"x\""},
      {"members in another order",
       With("\"path\": \"rank_0/a.ckpt\",\n      \"size\": 5",
            "\"size\": 5,\n      \"path\": \"rank_0/a.ckpt\""),
       "\"files\"[0]: expected the member \"path\", found \"size\""},
      {"version a string", With(": 3,", ": \"3\","),
       "\"schema_version\": expected an unsigned integer below 2^64, found \"3\""},
      {"version a fraction", With(": 3,", ": 3.0,"), "found 3.0"},
      {"stamps in schema 2", With(": 3,", ": 2,"),
       "expected the member \"files\", found \"stamps\""},
      {"stamps null", With("\"stamps\": [", "\"stamps\": null, \"x\": ["),
       "expected an array, found null"},
      {"no stamps", With("\"stamps\": [", "\"x\": ["),
       "expected the member \"stamps\", found \"x\""},
      {"stamp without an inode", With(",\n      \"inode\": 12", ""),
       "\"stamps\"[0]: the member \"inode\" is missing"},
      {"stamp twice",
       With("13,\n      \"inode\": 14\n    }",
            "13,\n      \"inode\": 14\n    },\n    {\n      \"path\": "
            "\"rank_1/s.ckpt\",\n      \"size\": 7,\n      \"mtime_ns\": 1,\n    "
            "  \"inode\": 1\n    }"),
       "sorted and occur once"},
      {"time negative", With(": 11,", ": -11,"), "found -11"},
      {"tool a string", With("\"tool\": {", "\"tool\": \"reshard\", \"t\": {"),
       "expected an object, found \"reshard\""},
      {"another tool", With("\"reshard\"", "\"cp\""), "\"name\": written by \"cp\""},
      {"tool's version a number", With("\"0.1.0\"", "1"),
       "\"version\": expected a string, found 1"},
      {"plan no digits", With("8d1f", "8D1F"), "\"plan\": expected 1 to 64"},
      {"strategy short", With("\"source\": \"a", "\"source\": \""),
       "\"source\": expected 32 lower-case hexadecimal digits"},
      {"strategy a number", With("null", "0"), "\"target\": expected a string or null, found 0"},
      {"sources an object", With("\"sources\": [", "\"sources\": {}, \"x\": ["),
       "expected an array, found an object"},
      {"files null", With("\"files\": [", "\"files\": null, \"x\": ["),
       "expected an array, found null"},
      {"file a string", With("\"files\": [", "\"files\": [\"a\","),
       "\"files\"[0]: expected an object, found \"a\""},
      {"too deep", With("\"size\": 5", "\"size\": [[[[]]]]"),
       "\"files\"[0]: \"size\": expected an unsigned integer below 2^64, found an array"},
      {"size negative", With("5", "-5"), "found -5"},
      {"size a fraction", With(": 5", ": 5.5"), "found 5.5"},
      {"size beyond 64 bits", With("18446744073709551615", "18446744073709551616"),
       "\"files\"[1]: \"size\": expected an unsigned integer below 2^64, found "
       "18446744073709551616"},
      {"size beyond any number", With("18446744073709551615", "1e9999"), "no JSON at byte"},
      {"size a truth", With(": 5", ": true"), "found true"},
      {"path a number", With(path0, "7"), "\"path\": expected a string, found 7"},
      {"path empty", With(path0, "\"\""), "path \"\": it is empty"},
      {"path absolute", With(path0, "\"/a\""), "it is absolute"},
      {"path upwards", With(path0, "\"a/../b\""), "it has the component \"..\""},
      {"path with a dot", With(path0, "\"./b\""), "it has the component \".\""},
      {"path ends in a slash", With(path0, "\"a/\""), "it has an empty component"},
      {"path with two slashes", With(path0, "\"a//b\""), "it has an empty component"},
      {"path with a newline", With(path0, R"("a\nb")"), "it has control characters"},
      {"path with a NUL", With(path0, R"("a\u0000b")"), "it has control characters"},
      {"path in the staging", With(path0, "\".reshard/x\""), "staging folder .reshard"},
      {"path among the records", With(path0, "\"part_records/x\""), "folder of the part records"},
      {"path of a manifest", With(path0, "\"manifest_part3.json\""), "is a manifest's name"},
      {"path of checksums", With(path0, "\"checksums.xxh128\""),
       "is the name of a list of checksums"},
      {"path too long", With(path0, '"' + std::string(4096, 'a') + '"'), "longer than 4095 bytes"},
      {"path twice", With("rank_1/a.ckpt", "rank_0/a.ckpt"), "sorted and occur once"},
      {"not sorted", With("rank_0/a.ckpt", "rank_2/a.ckpt"),
       "expected \"part_records/rank_2/a.ckpt.jsonl\""},
      {"source upwards", With("rank_0/s.ckpt", "../s.ckpt"),
       "\"sources\"[0]: \"path\": path \"../s.ckpt\": it has the component \"..\""},
      {"source twice", With("rank_1/s.ckpt", "rank_0/s.ckpt"), "sorted and occur once"},
      {"digest in capitals", With("\"digest\": \"aa", "\"digest\": \"AA"), "found \"AAaa"},
      {"digest too long", With("\"digest\": \"aa", "\"digest\": \"aaa"), "expected 32 lower-case"},
      {"digest empty", With("\"digest\": \"" + kDigestA, "\"digest\": \""), "found \"\""},
      {"record elsewhere", With(record0, "\"rank_0/a.ckpt.jsonl\""),
       "\"record\": \"path\": expected \"part_records/rank_0/a.ckpt.jsonl\""},
      {"record outside", With(record0, "\"part_records/../../a\""), "expected \"part_records/"},
      {"record without a digest",
       With("400,\n        \"digest\": \"" + kDigestA + '"', "400,\n        \"digest\": null"),
       "\"record\": \"digest\": expected a string, found null"},
      {"record null", With("\"record\": {", "\"record\": null, \"x\": {"),
       "expected an object, found null"},
      {"too large", std::string(kMaxManifestBytes + 1, ' '), "a manifest has at most"},
  };
  for (const auto& row : rows) {
    const auto manifest = ParseManifest(row.bytes, "m.json");
    ASSERT_FALSE(manifest.ok()) << row.name;
    EXPECT_EQ(manifest.status().code(), StatusCode::kCorrupt) << row.name;
    EXPECT_THAT(manifest.status().message(), HasSubstr(row.message)) << row.name;
    EXPECT_THAT(manifest.status().message(), AllOf(HasSubstr("m.json"), HasSubstr("byte")))
        << row.name;
  }
}

TEST(ManifestMalformed, AnotherSchemaIsToldFromDamage) {
  const struct {
    const char* name;
    std::string bytes;
    StatusCode code;
    const char* message;
  } rows[] = {
      {"the first schema", "{\n  \"schema_version\": 1,\n  \"tool\": {}\n}\n",
       StatusCode::kUnsupported, "byte 24: \"schema_version\": 1, but this reshard knows 3"},
      {"a later schema, sealed likewise", With(": 3,", ": 4,"), StatusCode::kUnsupported,
       "4, but this reshard knows 3; use the version that wrote it"},
      {"a damaged version",
       [] {
         std::string bytes = Whole();
         bytes[bytes.find(": 3,") + 2] = '4';
         return bytes;
       }(),
       StatusCode::kCorrupt, "damaged: byte"},
  };
  for (const auto& row : rows) {
    const Status status = ParseManifest(row.bytes, "m.json").status();
    EXPECT_EQ(status.code(), row.code) << row.name;
    EXPECT_THAT(status.message(), HasSubstr(row.message)) << row.name;
  }
}

TEST(ManifestMalformed, EveryFlippedBitIsNoticed) {
  const std::string whole = Whole();
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      EXPECT_FALSE(ParseManifest(bytes, "m.json").ok()) << "byte " << i << ", bit " << bit;
    }
  }
}

TEST(ManifestMalformed, EveryTruncationIsNoticed) {
  const std::string whole = Whole();
  for (size_t size = 0; size < whole.size(); ++size) {
    const Status status = ParseManifest(whole.substr(0, size), "m.json").status();
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << size;
  }
}

TEST(ManifestMalformed, MessagesStayShort) {
  for (const std::string& bytes :
       {With("\"rank_0/a.ckpt\"", '"' + std::string(100000, '\x01') + '"'),
        With("\"rank_0/a.ckpt\"", '"' + std::string(100000, 'a') + '"'),
        With("5", std::string(100000, '5')), With("\"plan\"", '"' + std::string(100000, 'p') + '"'),
        With("\"plan\"", "[" + std::string(100000, '[')), std::string(100000, '[')}) {
    const Status status = ParseManifest(bytes, "m.json").status();
    EXPECT_EQ(status.code(), StatusCode::kCorrupt);
    EXPECT_LT(status.message().size(), 4000U);
  }
}

// What a hostile manifest costs: a small multiple of its size, whatever is repeated in it.
TEST(ManifestMalformed, HostileSizesCostLittle) {
  constexpr size_t kSize = size_t{4} << 20;
  const auto repeated = [](const std::string& piece) {
    std::string all;
    while (all.size() < kSize) all += piece;
    return all;
  };
  std::string sources;  // as many good entries as fit: the most that a parser can keep
  for (int i = 0; sources.size() < kSize; ++i) {
    std::string number = std::to_string(i);
    number.insert(0, 8 - number.size(), '0');
    sources += std::string(sources.empty() ? "" : ",") + "{\"path\":\"" + number +
               "\",\"size\":1,\"digest\":null}";
  }
  const std::string list = "\"files\": [";
  const std::string all_sources =
      With("\"sources\": [", "\"sources\": [" + sources + "], \"x\": [");
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_FALSE(ParseManifest(all_sources, "m.json").ok());
  for (const std::string piece :
       {"[", "{\"path\":", "null,", "1,", "{},", "\"a\",", "\\u0000", "9"}) {
    EXPECT_FALSE(ParseManifest(With(list, list + repeated(piece)), "m.json").ok()) << piece;
    EXPECT_FALSE(ParseManifest(With(list, list + '"' + repeated(piece) + '"'), "m.json").ok());
    EXPECT_FALSE(ParseManifest(repeated(piece), "m.json").ok()) << piece;
  }
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, (20 * kSize) >> 10) << "KiB";
}

}  // namespace
}  // namespace reshard::manifest_malformed_test
