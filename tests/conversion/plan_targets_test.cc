// Planning many target ranks: the same report and the same error, however many plans are made at a
// time.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "reshard/convert.h"
#include "src/convert/conversion_plan.h"
#include "src/convert/opened_conversion.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_tensor.h"
#include "tools/gen/sample_files.h"

namespace reshard::plan_targets_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

SampleModel ModelOf(int64_t hidden, int64_t tp, int64_t dp, int64_t pp) {
  SampleModel model;
  model.layers = 4;
  model.hidden = hidden;
  model.ffn = 2 * hidden;
  model.vocab = 4 * hidden;
  model.tp = tp;
  model.dp = dp;
  model.pp = pp;
  return model;
}

std::string Summary(const PlanReport& report) {
  std::string text = fmt::format("{} parameters, {} read, {} written, {} runs of {} to {}\n",
                                 report.parameters, report.bytes_read, report.bytes_written,
                                 report.runs, report.shortest_run, report.longest_run);
  for (const Warning& warning : report.warnings) text += warning.message + '\n';
  for (const auto& source : report.sources) {
    text += fmt::format("source {} {} {}\n", source.rank, source.path, source.size);
  }
  for (const auto& target : report.targets) {
    text += fmt::format("target {} {} {} {} {} {}\n", target.rank, target.path, target.size,
                        target.parameters, target.runs, target.source_ranks);
  }
  for (const auto& largest : report.largest) {
    text += fmt::format("{} {} {}\n", largest.name, largest.shape, largest.bytes);
  }
  return text;
}

class PlanTargetsTest : public testing::Test {
 protected:
  PlanTargetsTest() {
    Write("from", ModelOf(64, 2, 2, 4), /*strategy_only=*/false);
    Write("to", ModelOf(64, 4, 4, 2), /*strategy_only=*/true);
  }

  void Write(const std::string& name, const SampleModel& model, bool strategy_only) {
    const auto written = WriteSample(
        {.folder = Path(name), .model = model, .sparse = true, .strategy_only = strategy_only});
    EXPECT_TRUE(written.ok()) << written.status().message();
  }

  std::string Path(const std::string& name) const { return (folder_.path() / name).string(); }

  Result<PlanReport> PlanWith(int jobs, uint64_t memory_limit = 0) const {
    ConvertOptions options;
    options.source.path = Path("from");
    options.target.folder = Path("out");
    options.source.strategy = Path("from") + "/strategy";
    options.target.strategy = Path("to") + "/strategy";
    options.run.jobs = jobs;
    options.memory_limit = memory_limit;
    return Plan(options);
  }

  const TemporaryFolder folder_;
};

TEST_F(PlanTargetsTest, ReportsAreTheSameForAnyJobsAndLimits) {
  const auto expected = PlanWith(1);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  EXPECT_EQ(expected->targets.size(), 32U);
  for (const int jobs : {2, 3, 16}) {
    for (const uint64_t limit : {uint64_t{0}, uint64_t{64} << 20}) {
      const auto report = PlanWith(jobs, limit);
      ASSERT_TRUE(report.ok()) << report.status().message();
      EXPECT_EQ(Summary(*report), Summary(*expected)) << jobs << " jobs, limit " << limit;
    }
  }
}

// A parameter without a layout comes from another source rank each time; that of the last target
// rank tells its shape.
TEST(PlanTargetsOfCopiesTest, TheLastRankTellsOfWhatIsCopied) {
  ConversionFolder folder({{"w", MakeLayout({2}, {{0}})}}, {{"w", MakeLayout({3}, {{-1}})}});
  const TestTensor shard{"w", DType::kInt8, {1}, "a"};
  folder.WriteRank(0, {shard, {"state", DType::kInt8, {4}, "0000"}});
  folder.WriteRank(1, {shard, {"state", DType::kInt8, {8}, "11111111"}});
  for (const int jobs : {1, 2, 3}) {
    folder.options().run.jobs = jobs;
    const auto report = Plan(folder.options());
    ASSERT_TRUE(report.ok()) << report.status().message();
    ASSERT_EQ(report->largest.size(), 2U);
    EXPECT_EQ(report->largest[0].name, "state");
    EXPECT_EQ(report->largest[0].shape, Shape{4}) << jobs << " jobs";
  }
}

TEST(PlanTargetsTogetherTest, FilesOfTheNextRankAreIndexedWhileOneIsPlanned) {
  const std::vector<NamedLayout> layouts = {{"w", MakeLayout({4}, {{0}})}};
  ConversionFolder folder(layouts, {{"w", MakeLayout({2}, {{0}})}});
  folder.WriteStage({MakeTensor("w", DType::kInt32, {8})}, layouts, 4);
  const ConvertOptions& options = folder.options();
  const auto budget = DivideMemory(0, 2);
  ASSERT_TRUE(budget.ok());
  const auto opened = OpenUnplanned(options, LimitsOf(options, *budget));
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const OpenedSource& source = *opened->source;
  PlanFindings findings;
  const auto is_new = [&](int64_t rank) { return source.tensors().HasNewFile(0, rank); };
  int visits = 0;
  const auto visit = [&](const TargetPlan& /*plan*/) {
    if (visits++ > 0) return;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while ((is_new(2) || is_new(3)) && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_FALSE(is_new(2) || is_new(3));
  };
  const auto plan = PlanConversion(source, opened->target(), options, *budget, {findings, visit});
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(visits, 2);
}

// The files of the third and fourth source stage are those of a smaller model.
TEST_F(PlanTargetsTest, TheFirstRankThatFailsIsToldOf) {
  Write("other", ModelOf(32, 2, 2, 4), /*strategy_only=*/false);
  for (const int rank : {8, 9, 10, 12, 13}) {
    const std::string folder = fmt::format("rank_{}", rank);
    fs::remove_all(Path("from") + "/" + folder);
    fs::rename(Path("other") + "/" + folder, Path("from") + "/" + folder);
  }
  const auto expected = PlanWith(1);
  ASSERT_FALSE(expected.ok());
  EXPECT_EQ(expected.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(expected.status().message(), HasSubstr("do the ranks belong to one checkpoint?"));
  for (int attempt = 0; attempt < 10; ++attempt) {
    const auto report = PlanWith(16);
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.status().message(), expected.status().message());
  }
}

}  // namespace
}  // namespace reshard::plan_targets_test
