// Where a set came from: what a line tells, and how the file grows.
#include "src/record/origin.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reshard/tensor.h"
#include "reshard/version.h"

namespace reshard {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

json LineOf(const SourceSpec& source, const TargetSpec& target, const Selection& selection,
            const OriginFacts& facts = {}, const Manifest& manifest = {}) {
  const std::string line = OriginLine(EncodeOrigin(source, target, selection, facts), manifest);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  return json::parse(line);
}

TEST(OriginTest, TellsWhatWasGiven) {
  SourceSpec source;
  source.path = "runs/\"a\"\xff";
  source.strategy = "s.ckpt";
  source.suffix = "-1_100";
  TargetSpec target;
  target.folder = "out";
  target.prefix = "net";
  target.format = TargetFormat::kSafetensors;
  Selection selection;
  selection.ranks = {1, 2};
  selection.exclude = {"adam_*"};
  selection.renames.names = {{"a", "b"}};
  selection.casts = {{"", DType::kBFloat16}, {"w*", {}}};
  const OriginFacts facts = {
      .plan = "aa", .source_strategy = "bb", .target_strategy = "", .step = std::pair(1, 100)};
  const json line = LineOf(source, target, selection, facts);
  EXPECT_EQ(line.at("version"), std::string(kVersion));
  EXPECT_EQ(line.at("plan"), "aa");
  EXPECT_EQ(line.at("source"), "runs/\"a\"\\xff");  // any bytes
  EXPECT_EQ(line.at("source_strategy"), json({{"path", "s.ckpt"}, {"digest", "bb"}}));
  EXPECT_EQ(line.at("target_strategy"), json());
  EXPECT_EQ(line.at("step"), json({{"epoch", 1}, {"step", 100}}));
  EXPECT_EQ(line.at("options"), json::parse(R"({
    "suffix": "-1_100", "format": "safetensors", "prefix": "net", "ranks": [1, 2],
    "exclude": ["adam_*"], "renames": [["a", "b"]],
    "casts": [[null, "BFloat16"], ["w*", null]]})"));
}

TEST(OriginTest, WhatIsAsUsualIsNotTold) {
  SourceSpec source;
  source.files = {{0, "a"}, {3, "b"}};
  const json line = LineOf(source, {}, {});
  EXPECT_EQ(line.at("source"),
            json::parse(R"([{"rank": 0, "path": "a"}, {"rank": 3, "path": "b"}])"));
  EXPECT_EQ(line.at("options"), json::object());
  EXPECT_EQ(line.at("step"), json());
}

TEST(OriginTest, HasOneDigestOfAllSources) {
  Manifest manifest;
  manifest.sources = {{"rank_0/a", 3, "01"}, {"rank_1/a", 4, "02"}};
  const json line = LineOf({}, {}, {}, {}, manifest);
  EXPECT_EQ(line.at("source_digest").get<std::string>().size(), 32U);
  manifest.sources[1].size = 5;
  EXPECT_NE(LineOf({}, {}, {}, {}, manifest).at("source_digest"), line.at("source_digest"));
  manifest.sources[0].digest.clear();  // --no-checksum
  EXPECT_EQ(LineOf({}, {}, {}, {}, manifest).at("source_digest"), json());
}

TEST(OriginTest, GrowsByALineThatIsNotThereYet) {
  EXPECT_EQ(WithOriginLine("", "b\n"), "b\n");
  EXPECT_EQ(WithOriginLine("a\n", "b\n"), "a\nb\n");
  EXPECT_EQ(WithOriginLine("a", "b\n"), "a\nb\n");  // cut short by somebody
  EXPECT_EQ(WithOriginLine("a\nb\n", "b\n"), std::nullopt);
  EXPECT_EQ(WithOriginLine("b\n", "b\n"), std::nullopt);
  EXPECT_EQ(WithOriginLine("ab\n", "b\n"), "ab\nb\n");
  EXPECT_EQ(WithOriginLine("b\na\n", "b\n"), "b\na\nb\n");
}

TEST(OriginTest, CastsComeBackFromTheLastLine) {
  Selection selection;
  selection.casts = {{"", DType::kBFloat16}, {"w*", {}}};
  const std::string with = OriginLine(EncodeOrigin({}, {}, selection, {}), {});
  const std::string without = OriginLine(EncodeOrigin({}, {}, {}, {}), {});
  EXPECT_EQ(CastsOfLastRun(without + with), selection.casts);
  EXPECT_THAT(CastsOfLastRun(with + without), IsEmpty());
  for (const char* const damaged :
       {"", "\n", "x", "[]", R"({"options":1})", R"({"options":{"casts":[1]}})",
        R"({"options":{"casts":[["w"]]}})", R"({"options":{"casts":[["w",null,null]]}})",
        R"({"options":{"casts":[["w","Float3"]]}})", R"({"options":{"casts":[[["w",null]]]}})",
        R"({"options":{"casts":"w"}})", R"({"options":{"casts":[["w",null]}})"}) {
    EXPECT_THAT(CastsOfLastRun(damaged), IsEmpty()) << damaged;
  }
}

// What the last run left of sets before it, and by which names readers find its files.
TEST(OriginTest, ComesBack) {
  TargetSpec target;
  target.format = TargetFormat::kCkpt;
  target.names = "m{rank}\xff.{ext}";
  const std::string origin = EncodeOrigin({}, target, {}, {});
  const std::vector<ManifestFile> left = {
      {.path = "rank_2/\"a\"\xff.ckpt", .size = 36, .digest = std::string(32, 'a')},
      {.path = "rank_3/b.ckpt", .size = 7, .encryption = EncryptionMode::kAesGcm}};
  const std::string first = OriginLine(origin, {}, left);
  const LastRun run = LastRunOf(first);
  EXPECT_EQ(run.format, "ckpt");
  EXPECT_EQ(run.names, target.names);
  EXPECT_EQ(run.left, left);
  EXPECT_THAT(LastRunOf(first + OriginLine(origin, {})).left, IsEmpty());
}

// It is for people, too: what they change is taken as far as it can be read.
TEST(OriginTest, WhatIsNoOriginTellsNothing) {
  for (const char* bytes :
       {"", "\n", "[", "[]", "3", "{\"left\":3}", "{\"left\":[3,\"a\"]}",
        "{\"left\":{\"path\":\"a\"}}",
        R"({"left":[{"path":"../a"},{"path":"/a"},{"path":"manifest.json"},{"size":1}]})",
        R"({"left":[{"path":"a"}])"}) {
    EXPECT_THAT(LastRunOf(bytes).left, IsEmpty()) << bytes;
    EXPECT_THAT(LastRunOf(bytes).names, IsEmpty()) << bytes;
  }
}

}  // namespace
}  // namespace reshard
