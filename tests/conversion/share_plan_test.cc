// The plan that the first share leaves, with a valid seal and wrong content: the next share writes
// what it writes without a plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "reshard/convert.h"
#include "src/record/plan_record.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::share_plan_test {
namespace {

namespace fs = std::filesystem;

const std::vector<NamedLayout> kRowsOf4 = {{"w", MakeLayout({4}, {{0, -1}})}};
const std::vector<NamedLayout> kRowsOf2 = {{"w", MakeLayout({2}, {{0, -1}})}};

class SharePlanTest : public testing::Test {
 protected:
  SharePlanTest() : folder_(kRowsOf4, kRowsOf2) {
    folder_.WriteStage({MakeTensor("w", DType::kFloat32, {8, 4})}, kRowsOf4, 4);
    ConvertOptions alone = folder_.options();
    alone.target.folder = (folder_.folder().path() / "alone").string();
    EXPECT_TRUE(Convert(alone).ok());
    expected_ = ReadFolder(alone.target.folder);
  }

  fs::path Target() const { return folder_.options().target.folder; }

  Result<ConvertReport> RunShard(uint64_t shard) {
    ConvertOptions options = folder_.options();
    options.shard = WorkerShare{shard, 2};
    if (to_cluster_) {
      options.target.strategy = {};
      options.target.cluster.tensor_parallel = 2;
    }
    return Convert(options);
  }

  // Runs the first share in a new target folder and returns the path of its plan.
  fs::path Begin() {
    fs::remove_all(Target());
    const auto report = RunShard(0);
    EXPECT_TRUE(report.ok()) << report.status().message();
    for (const auto& entry : fs::directory_iterator(Target() / ".reshard")) {
      if (fs::exists(entry.path() / "plan.jsonl")) return entry.path() / "plan.jsonl";
    }
    ADD_FAILURE() << "no plan";
    return {};
  }

  static bool Follows(const ConvertReport& report) {
    return std::any_of(report.notes.begin(), report.notes.end(), [](const std::string& note) {
      return note.find("another share has planned") != std::string::npos;
    });
  }

  ConversionFolder folder_;
  FolderContents expected_;
  bool to_cluster_ = false;  // of 2 ranks, in place of the strategy
};

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(SharePlanTest, AShareOfAnotherSourceDoesNotFollow) {
  Begin();
  const fs::path other = folder_.folder().path() / "other";
  fs::copy(folder_.options().source.path, other, fs::copy_options::recursive);
  ConvertOptions options = folder_.options();
  options.source.path = other.string();
  options.shard = WorkerShare{1, 2};
  const auto report = Convert(options);
  EXPECT_EQ(report.status().code(), StatusCode::kChanged) << report.status().message();
}

TEST_F(SharePlanTest, IsFollowedAsItIs) {
  const fs::path path = Begin();
  const auto record = ParsePlanRecord(ReadAll(path), "plan");
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_EQ(record->sources.size(), 4U);
  const auto report = RunShard(1);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(Follows(*report));
  EXPECT_EQ(report->source_ranks, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(ReadFolder(Target()), expected_);
}

TEST_F(SharePlanTest, IsNotBelieved) {
  const struct {
    const char* name;
    void (*change)(PlanRecord& record);
  } rows[] = {
      {"options", [](PlanRecord& r) { r.options = std::string(32, 'a'); }},
      {"job", [](PlanRecord& r) { r.job = std::string(32, 'a'); }},
      {"no base", [](PlanRecord& r) { r.base = ""; }},
      {"base elsewhere", [](PlanRecord& r) { r.base += "rank_0/"; }},
      {"time of the base", [](PlanRecord& r) { ++r.base_mtime_ns; }},
      {"no sources", [](PlanRecord& r) { r.sources.clear(); }},
      {"a source less", [](PlanRecord& r) { r.sources.erase(r.sources.begin()); }},
      {"one more",
       [](PlanRecord& r) {
         r.sources.push_back(r.sources.back());
         ++r.sources.back().rank;
       }},
      {"a rank that is none", [](PlanRecord& r) { r.sources.back().rank = uint64_t{1} << 40; }},
      {"other ranks",
       [](PlanRecord& r) {
         for (PlannedSource& source : r.sources) ++source.rank;
       }},
      {"a path of another rank", [](PlanRecord& r) { r.sources[3].path = r.sources[1].path; }},
      {"paths that change places",
       [](PlanRecord& r) { std::swap(r.sources[2].path, r.sources[3].path); }},
      {"sources that change places",
       [](PlanRecord& r) {
         std::swap(r.sources[2], r.sources[3]);
         std::swap(r.sources[2].rank, r.sources[3].rank);
       }},
      {"a path that is not there", [](PlanRecord& r) { r.sources[2].path += "x"; }},
      {"size", [](PlanRecord& r) { ++r.sources[2].size; }},
      {"size of a source of another share", [](PlanRecord& r) { ++r.sources[0].size; }},
      {"empty", [](PlanRecord& r) { r.sources[2].size = 0; }},
      {"time", [](PlanRecord& r) { ++r.sources[2].mtime_ns; }},
      {"time of the folder", [](PlanRecord& r) { ++r.sources[2].folder_mtime_ns; }},
  };
  for (const auto& row : rows) {
    const fs::path path = Begin();
    PlanRecord record = *ParsePlanRecord(ReadAll(path), "plan");
    row.change(record);
    const auto bytes = EncodePlanRecord(record);
    ASSERT_TRUE(bytes.ok()) << row.name << ": " << bytes.status().message();
    std::ofstream(path, std::ios::binary) << *bytes;
    const auto report = RunShard(1);
    ASSERT_TRUE(report.ok()) << row.name << ": " << report.status().message();
    EXPECT_FALSE(Follows(*report)) << row.name;
    EXPECT_EQ(ReadFolder(Target()), expected_) << row.name;
  }
}

TEST_F(SharePlanTest, HasTheStrategyOfACluster) {
  to_cluster_ = true;
  const fs::path first = Begin();
  const PlanRecord made = *ParsePlanRecord(ReadAll(first), "plan");
  ASSERT_NE(made.strategy, "");
  const auto last = RunShard(1);
  ASSERT_TRUE(last.ok()) << last.status().message();
  EXPECT_TRUE(Follows(*last));
  const FolderContents expected = ReadOutputs(Target());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string strategy = made.strategy;
    strategy.replace(strategy.find(from), from.size(), to);
    return strategy;
  };
  for (const std::string& strategy :
       {std::string(), std::string("{"), std::string("{}"), changed("[0, -1]", "[-1, 0]"),
        changed("\"dev_matrix\": [2]", "\"dev_matrix\": [4]"), changed("\"w\"", "\"v\"")}) {
    const fs::path path = Begin();
    PlanRecord record = *ParsePlanRecord(ReadAll(path), "plan");
    record.strategy = strategy;
    std::ofstream(path, std::ios::binary) << *EncodePlanRecord(record);
    const auto report = RunShard(1);
    ASSERT_TRUE(report.ok()) << strategy << ": " << report.status().message();
    EXPECT_EQ(Follows(*report), strategy.empty()) << strategy;
    EXPECT_EQ(ReadOutputs(Target()), expected) << strategy;
  }
}

// They are not part of what a plan follows from.
TEST_F(SharePlanTest, OtherFactsDoNoHarm) {
  for (const bool redundancy : {false, true}) {
    const fs::path path = Begin();
    PlanRecord record = *ParsePlanRecord(ReadAll(path), "plan");
    if (redundancy) {
      record.states_redundancy = 1;
    } else {
      ++record.sources[2].inode;
    }
    std::ofstream(path, std::ios::binary) << *EncodePlanRecord(record);
    const auto report = RunShard(1);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(ReadOutputs(Target()), ReadOutputs(folder_.folder().path() / "alone"));
  }
}

}  // namespace
}  // namespace reshard::share_plan_test
