// Where a set came from: what a line tells, and how the file grows.
#include "src/record/origin.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reshard/tensor.h"
#include "reshard/version.h"

namespace reshard::origin_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

json LineOf(const SourceSpec& source, const TargetSpec& target, const Selection& selection,
            const OriginFacts& facts = {}, const Manifest& manifest = {}) {
  const std::string line = OriginLine(EncodeOrigin({source, target, selection}, facts), manifest);
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

std::string LineFor(const SourceSpec& source, const TargetSpec& target, const Selection& selection,
                    const std::string& plan = "8d1f") {
  const std::string digest(32, 'a');
  return OriginLine(EncodeOrigin({source, target, selection},
                                 {.plan = plan, .source_strategy = digest, .target_strategy = ""}),
                    {});
}

TEST(OriginTest, OptionsComeBackFromTheLastLine) {
  SourceSpec source;
  source.strategy = "a/s\xff\n";
  source.suffix = "-1_100";
  source.group_info = {"g0", "g1"};
  source.name_map = {{{"new", "old\\"}, {"n2", "o2"}}, {{"a.*", "b.*"}}};
  TargetSpec target;
  target.format = TargetFormat::kHuggingFace;
  target.prefix = "p";
  target.names = "{rank}.{ext}";
  target.shard_size = 1'000'000;
  Selection selection;
  selection.include = {"a*", "b\xfe"};
  selection.exclude = {"adam_*"};
  selection.renames.names = {{"x", "y"}};
  selection.renames.patterns = {{"l.*", "m.*"}};
  selection.renames.rules = "llama:hf-to-mindformers";
  selection.casts = {{"", DType::kBFloat16}, {"w*", {}}};
  selection.unmatched = Selection::Unmatched::kDrop;
  const std::string usual = LineFor({}, {}, {}, "0");
  const auto run = OptionsOfLastRun(usual + LineFor(source, target, selection));
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->plan, "8d1f");
  EXPECT_EQ(run->spec.source.strategy, source.strategy);
  EXPECT_EQ(run->source_strategy, std::string(32, 'a'));
  EXPECT_EQ(run->spec.source.suffix, source.suffix);
  EXPECT_EQ(run->spec.source.group_info, source.group_info);
  EXPECT_EQ(run->spec.source.name_map, source.name_map);
  EXPECT_EQ(run->spec.target.strategy, "");
  EXPECT_EQ(run->spec.target.format, target.format);
  EXPECT_EQ(run->spec.target.prefix, target.prefix);
  EXPECT_EQ(run->spec.target.names, target.names);
  EXPECT_EQ(run->spec.target.shard_size, target.shard_size);
  EXPECT_EQ(run->spec.selection.include, selection.include);
  EXPECT_EQ(run->spec.selection.exclude, selection.exclude);
  EXPECT_EQ(run->spec.selection.renames, selection.renames);
  EXPECT_EQ(run->spec.selection.casts, selection.casts);
  EXPECT_EQ(run->spec.selection.unmatched, selection.unmatched);
  EXPECT_THAT(run->spec.selection.ranks, IsEmpty());

  const auto other = OptionsOfLastRun(LineFor(source, target, selection) + usual);
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->spec.target.prefix, TargetSpec().prefix);
  EXPECT_EQ(other->spec.target.shard_size, TargetSpec().shard_size);
  EXPECT_THAT(other->spec.selection.casts, IsEmpty());
}

TEST(OriginTest, RanksAreThoseOfAllRunsThatJoined) {
  const auto line = [](const std::vector<int64_t>& ranks, const std::string& plan) {
    Selection selection;
    selection.ranks = ranks;
    return LineFor({}, {}, selection, plan);
  };
  using testing::ElementsAre;
  EXPECT_THAT(OptionsOfLastRun(line({3, 1}, "a"))->spec.selection.ranks, ElementsAre(1, 3));
  EXPECT_THAT(OptionsOfLastRun(line({3, 1}, "a") + line({0}, "a"))->spec.selection.ranks,
              ElementsAre(0, 1, 3));
  EXPECT_THAT(OptionsOfLastRun(line({3, 1}, "b") + line({0}, "a"))->spec.selection.ranks,
              ElementsAre(0));
  EXPECT_THAT(OptionsOfLastRun(line({}, "a") + line({0}, "a"))->spec.selection.ranks, IsEmpty());
}

TEST(OriginTest, ADamagedLineTellsNothing) {
  for (const char* const damaged : {"",
                                    "\n",
                                    "x",
                                    "[]",
                                    "1",
                                    R"({"options":1})",
                                    R"({"options":{"casts":[1]}})",
                                    R"({"options":{"casts":[["w"]]}})",
                                    R"({"options":{"casts":[["w",null,null]]}})",
                                    R"({"options":{"casts":[["w","Float3"]]}})",
                                    R"({"options":{"casts":[[["w",null]]]}})",
                                    R"({"options":{"casts":"w"}})",
                                    R"({"options":{"casts":[["w",null]}})",
                                    R"({"options":{"format":"zip"}})",
                                    R"({"options":{"format":["ckpt"]}})",
                                    R"({"options":{"include":"a"}})",
                                    R"({"options":{"include":[["a"]]}})",
                                    R"({"options":{"exclude":[null]}})",
                                    R"({"options":{"ranks":["a"]}})",
                                    R"({"options":{"ranks":[-1]}})",
                                    R"({"options":{"shard_size":"1G"}})",
                                    R"({"options":{"renames":[["a"]]}})",
                                    R"({"options":{"unmatched":"maybe"}})",
                                    R"({"options":{"prefix":"a\\"}})",
                                    R"({"plan":"a","plan":"b"})",
                                    R"({"a":{"a":{"a":{"a":{"a":1}}}}})",
                                    R"({"a":[[[[[1]]]]]})"}) {
    const auto run = OptionsOfLastRun(damaged);
    const bool is_usual =
        run && run->spec.selection.casts.empty() && run->spec.selection.include.empty() &&
        run->spec.selection.exclude.empty() && run->spec.selection.ranks.empty() &&
        run->spec.selection.renames.empty() && !run->spec.target.format &&
        !run->spec.selection.unmatched;
    EXPECT_TRUE(!run || is_usual) << damaged;
  }
  EXPECT_FALSE(OptionsOfLastRun(R"({"options":{"format":"zip"}})").has_value());
  EXPECT_FALSE(OptionsOfLastRun(R"({"options":{"casts":[["w",null]}})").has_value());
  EXPECT_FALSE(OptionsOfLastRun("[]").has_value());
}

// What the last run left of sets before it, and by which names readers find its files.
TEST(OriginTest, ComesBack) {
  TargetSpec target;
  target.format = TargetFormat::kCkpt;
  target.names = "m{rank}\xff.{ext}";
  const std::string origin = EncodeOrigin({{}, target, {}}, {});
  const std::vector<ManifestFile> left = {
      {.path = "rank_2/\"a\"\xff.ckpt", .size = 36, .digest = std::string(32, 'a')},
      {.path = "rank_3/b.ckpt", .size = 7, .encryption = TargetSpec::EncryptionMode::kAesGcm}};
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
}  // namespace reshard::origin_test
