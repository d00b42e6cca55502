// Strategies of the golden conversions: parsed as case.json describes them, merged as MindSpore
// merged them.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/mindspore/strategy_loader.h"
#include "tests/support/temporary_folder.h"

namespace reshard::strategy_golden_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kData = fs::path(RESHARD_TESTS_DIR) / "golden" / "data";

std::vector<fs::path> Cases() {
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(kData / "convert")) {
    if (entry.is_directory()) cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

uint64_t TakeVarint(std::string_view& bytes) {
  uint64_t number = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    number |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return number;
  }
}

// Returns what a merged strategy would be if its files had come in the order of their stages.
std::string InStageOrder(std::string_view merged) {
  std::vector<std::pair<uint64_t, std::string_view>> strategies;
  std::vector<std::pair<uint64_t, std::string_view>> layouts;
  std::string out(merged.substr(0, 2));
  merged.remove_prefix(2);
  while (!merged.empty()) {
    const std::string_view item = merged;
    merged.remove_prefix(1);
    const uint64_t length = TakeVarint(merged);
    std::string_view body = merged.substr(0, length);
    merged.remove_prefix(length);
    const std::string_view whole = item.substr(0, item.size() - merged.size());
    body.remove_prefix(1);  // the key of the name
    const uint64_t name_length = TakeVarint(body);
    const std::string name(body.substr(0, name_length));
    body.remove_prefix(name_length);
    if (item.front() == 0x1a) {
      layouts.emplace_back(std::stoull(name), whole);  // STAGE-NAME
    } else {
      body.remove_prefix(1);
      TakeVarint(body);       // the length of parallel_strategys
      body.remove_prefix(1);  // the key of the stage
      strategies.emplace_back(TakeVarint(body), whole);
    }
  }
  for (auto* items : {&strategies, &layouts}) {
    std::stable_sort(items->begin(), items->end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [stage, bytes] : *items) out += bytes;
  }
  return out;
}

TEST(StrategyGoldenTest, MergesTheStagesOfEveryCase) {
  int merged = 0;
  for (const fs::path& folder : Cases()) {
    for (const std::string side : {"src", "dst"}) {
      const fs::path stages = folder / (side + "_stages");
      if (!fs::exists(stages)) continue;
      const auto result = MergeStrategyFolder(stages.string());
      ASSERT_TRUE(result.ok()) << result.status().message();
      EXPECT_EQ(result->bytes, InStageOrder(ReadFile(folder / (side + "_strategy.ckpt"))))
          << stages;
      ++merged;
    }
  }
  EXPECT_EQ(merged, 37);
}

TEST(StrategyGoldenTest, MergesOddEncodingsByteForByte) {
  const auto protobuf = MergeStrategyFolder((kData / "strategy_merge/protobuf/stages").string());
  ASSERT_TRUE(protobuf.ok()) << protobuf.status().message();
  EXPECT_EQ(protobuf->bytes, ReadFile(kData / "strategy_merge/protobuf/merged.ckpt"));
  const auto text = MergeStrategyFolder((kData / "strategy_merge/json/stages").string());
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(text->bytes, ReadFile(kData / "strategy_merge/json/merged.json"));
}

// A folder of stages is the strategy that merging it makes.
TEST(StrategyGoldenTest, LoadsStagesAsTheirMergedFile) {
  std::vector<std::pair<fs::path, fs::path>> pairs = {
      {kData / "strategy_merge/protobuf/stages", kData / "strategy_merge/protobuf/merged.ckpt"},
      {kData / "strategy_merge/json/stages", kData / "strategy_merge/json/merged.json"}};
  for (const fs::path& folder : Cases()) {
    for (const std::string side : {"src", "dst"}) {
      const fs::path stages = folder / (side + "_stages");
      if (fs::exists(stages)) pairs.emplace_back(stages, folder / (side + "_strategy.ckpt"));
    }
  }
  for (const auto& [stages, file] : pairs) {
    const auto joined = LoadStrategy(stages.string());
    const auto merged = LoadStrategy(file.string());
    ASSERT_TRUE(joined.ok()) << joined.status().message();
    ASSERT_TRUE(merged.ok()) << merged.status().message();
    EXPECT_TRUE(joined->is_pipeline());
    EXPECT_TRUE(merged->is_pipeline());
    EXPECT_EQ(joined->devices_per_stage(), merged->devices_per_stage());
    ASSERT_EQ(joined->stages().size(), merged->stages().size());
    for (size_t s = 0; s < joined->stages().size(); ++s) {
      EXPECT_TRUE(std::equal(joined->stages()[s].begin(), joined->stages()[s].end(),
                             merged->stages()[s].begin(), merged->stages()[s].end()))
          << stages << s;
    }
  }
}

// The tensor map of case.json in the form of ParameterLayout.
std::vector<std::vector<int64_t>> MapOf(const json& entries) {
  if (std::none_of(entries.begin(), entries.end(), [](const json& e) { return e.is_array(); })) {
    return {entries.get<std::vector<int64_t>>()};
  }
  std::vector<std::vector<int64_t>> map;
  for (const json& entry : entries) {
    map.push_back(entry.is_array() ? entry.get<std::vector<int64_t>>()
                                   : std::vector<int64_t>{entry.get<int64_t>()});
  }
  return map;
}

TEST(StrategyGoldenTest, LoadsWhatCaseJsonDescribes) {
  size_t strategies = 0;
  for (const fs::path& folder : Cases()) {
    const json described = json::parse(ReadFile(folder / "case.json"));
    for (const std::string side : {"src", "dst"}) {
      if (described[side + "_strategy"].is_null()) continue;
      const std::string path = (folder / described[side + "_strategy"].get<std::string>()).string();
      const auto strategy = LoadStrategy(path);
      ASSERT_TRUE(strategy.ok()) << strategy.status().message();
      ++strategies;
      const auto stages = described[side + "_stages"].get<size_t>();
      EXPECT_EQ(strategy->is_pipeline(), stages > 1) << path;
      ASSERT_EQ(strategy->stages().size(), stages) << path;
      EXPECT_EQ(strategy->ranks(), described[side + "_ranks"].get<int64_t>()) << path;
      size_t layouts = 0;
      for (const auto& [name, parameter] : described["layouts"].items()) {
        if (parameter.contains("only_in") && parameter["only_in"] != side) continue;
        for (const json& stage : parameter[side + "_stages"]) {
          const ParameterLayout* layout = strategy->stages().at(stage.get<size_t>()).Find(name);
          ASSERT_NE(layout, nullptr) << path << " " << name;
          const json& expected = parameter[side];
          EXPECT_EQ(layout->device_matrix, expected[0].get<std::vector<int64_t>>()) << path << name;
          EXPECT_EQ(layout->tensor_map, MapOf(expected[1])) << path << " " << name;
          EXPECT_EQ(layout->opt_weight_shard_step, expected[2].get<int64_t>()) << path << name;
          EXPECT_EQ(layout->opt_weight_shard_size, expected[3].get<int64_t>()) << path << name;
          ++layouts;
        }
      }
      for (const Strategy::Stage& stage : strategy->stages()) layouts -= stage.size();
      EXPECT_EQ(layouts, 0U) << path;
    }
  }
  EXPECT_EQ(strategies, 114U);
}

}  // namespace
}  // namespace reshard::strategy_golden_test
