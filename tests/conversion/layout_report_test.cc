// The sums and grids of a layout report, against the same counted one by one.

#include "src/frontend/layout_report.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "reshard/checkpoint.h"
#include "src/frontend/layout_sums.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/test_tensor.h"

namespace reshard::layout_report_test {
namespace {

using testing::HasSubstr;

TEST(SideSumsTest, BinsAddUpWhatTheirRanksHave) {
  for (const auto& [stages, devices] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {1, 64}, {1, 65}, {7, 9}, {8, 128}, {100, 3}}) {
    const int64_t first = 2 * devices;  // stage 2, converted alone or not
    SideSums sums(first, stages, devices);
    for (int64_t i = 0; i < stages * devices; ++i) {
      const auto size = static_cast<uint64_t>(1000 + (i * 37) % 101);
      sums.AddFile(first + i, size);
      sums.AddContent(first + i, size - 1);
      sums.AddContent(first + i, 5);
    }
    const LayoutSide& side = sums.side();
    EXPECT_LE(side.by_rank.size(), 64U);
    EXPECT_LE(side.by_stage.size(), 64U);
    int64_t next = first;
    for (const FileBin& bin : side.by_rank) {
      EXPECT_EQ(bin.first, next);
      uint64_t bytes = 0;
      uint64_t least = ~uint64_t{0};
      uint64_t most = 0;
      for (int64_t rank = bin.first; rank <= bin.last; ++rank) {
        const auto size = static_cast<uint64_t>(1000 + ((rank - first) * 37) % 101);
        bytes += size;
        least = std::min(least, size);
        most = std::max(most, size);
      }
      const auto ranks = static_cast<uint64_t>(bin.last - bin.first + 1);
      EXPECT_EQ(bin.files, ranks);
      EXPECT_EQ(bin.file_bytes, bytes);
      EXPECT_EQ(bin.least, least);
      EXPECT_EQ(bin.most, most);
      EXPECT_EQ(bin.content_bytes, bytes + 4 * ranks);
      next = bin.last + 1;
    }
    EXPECT_EQ(next, first + stages * devices);
    EXPECT_EQ(side.by_stage.front().first, 2);
    EXPECT_EQ(side.by_stage.back().last, 2 + stages - 1);
    uint64_t files = 0;
    for (const FileBin& bin : side.by_stage) files += bin.files;
    EXPECT_EQ(files, static_cast<uint64_t>(stages * devices));
  }
}

TEST(PrefixOfTest, IsTheNameUpToItsFirstDot) {
  EXPECT_EQ(PrefixOf("adam_m.layer.weight"), "adam_m.");
  EXPECT_EQ(PrefixOf("step"), "");
  EXPECT_EQ(PrefixOf(".x"), ".");
  EXPECT_EQ(PrefixOf(""), "");
}

// A matrix cut by rows on 4 ranks and by columns on 3, and a vector that two parts of ranks share.
class LayoutReportTest : public testing::Test {
 protected:
  LayoutReportTest() {
    folder_.WriteStage(
        {MakeTensor("net.w", DType::kFloat32, {8, 6}),
         MakeTensor("adam_m.w", DType::kInt16, {4, 2}), MakeTensor("step", DType::kInt64, {})},
        source_, 4);
    options_.conversion = folder_.options();
  }

  const std::vector<NamedLayout> source_ = {{"net.w", MakeLayout({4}, {{0, -1}})},
                                            {"adam_m.w", MakeLayout({2, 2}, {{1, -1}})}};
  ConversionFolder folder_{
      source_, {{"net.w", MakeLayout({3}, {{-1, 0}})}, {"adam_m.w", MakeLayout({3}, {{-1, -1}})}}};
  LayoutReportOptions options_;
};

TEST_F(LayoutReportTest, SumsAreThoseOfEachElement) {
  const auto report = MakeLayoutReport(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_TRUE(report->planned);
  ASSERT_EQ(report->source.by_rank.size(), 4U);
  ASSERT_EQ(report->target.by_rank.size(), 3U);

  // net.w, element by element: no rank shares a row, so there is no choice of replicas.
  std::vector<uint64_t> flow(12);
  for (size_t row = 0; row < 8; ++row) {
    for (size_t column = 0; column < 6; ++column) flow[row / 2 * 3 + column / 2] += 4;
  }
  uint64_t read = 0;
  for (size_t i = 0; i < flow.size(); ++i) {
    EXPECT_GE(report->flow[i], flow[i]) << i;  // with the others', whose replicas may be any
    read += report->flow[i];
  }
  EXPECT_EQ(read, report->plan.bytes_read);
  EXPECT_EQ(read, 8U * 6 * 4 + 3 * (4 * 2 * 2 + 8));
  uint64_t runs = 0;
  uint64_t run_bytes = 0;
  for (const RunBin& bin : report->runs) {
    EXPECT_EQ(bin.longest, 2 * bin.shortest - 1);
    EXPECT_GE(bin.bytes, bin.runs * bin.shortest);
    EXPECT_LE(bin.bytes, bin.runs * bin.longest);
    runs += bin.runs;
    run_bytes += bin.bytes;
  }
  EXPECT_EQ(runs, report->plan.runs);
  EXPECT_EQ(run_bytes, read);
  const auto eight = std::find_if(report->runs.begin(), report->runs.end(),
                                  [](const RunBin& bin) { return bin.shortest == 8; });
  ASSERT_NE(eight, report->runs.end());
  EXPECT_EQ(eight->runs,
            8U * 3 + 3 + 6);  // rows of net.w; step; the halves of adam_m.w, 8 bytes each

  std::map<std::string, ByteShare> dtypes;
  for (const ByteShare& share : report->dtypes) dtypes[share.name] = share;
  EXPECT_EQ(dtypes["Float32"].full_bytes, 192U);
  EXPECT_EQ(dtypes["Float32"].stored_bytes, 192U);
  EXPECT_EQ(dtypes["Int16"].full_bytes, 16U);
  EXPECT_EQ(dtypes["Int16"].stored_bytes, 48U);
  EXPECT_EQ(dtypes["Int64"].parameters, 1U);
  std::map<std::string, ByteShare> prefixes;
  for (const ByteShare& share : report->prefixes) prefixes[share.name] = share;
  EXPECT_EQ(prefixes["net."].stored_bytes, 192U);
  EXPECT_EQ(prefixes["adam_m."].stored_bytes, 48U);
  EXPECT_EQ(prefixes[""].stored_bytes, 24U);

  uint64_t written = 0;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(report->target.by_rank[i].file_bytes, report->plan.targets[i].size);
    written += report->target.by_rank[i].file_bytes;
  }
  EXPECT_EQ(written, report->plan.bytes_written);
}

TEST_F(LayoutReportTest, GridsSayWhatTheCheckpointSays) {
  options_.parameters = {"net.w", "adam_m.w", "step"};
  const auto report = MakeLayoutReport(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->drawn.size(), 3U);
  const auto checkpoint =
      ShardedCheckpoint::Open(options_.conversion.source.path, options_.conversion.source.strategy);
  ASSERT_TRUE(checkpoint.ok());
  for (size_t p = 0; p < 2; ++p) {
    const DeviceGrid& grid = report->drawn[p].source;
    const auto shards = checkpoint->Shards(report->drawn[p].name);
    ASSERT_TRUE(shards.ok());
    EXPECT_EQ(grid.shards, static_cast<int64_t>(shards->size()));
    for (size_t s = 0; s < shards->size(); ++s) {
      for (size_t r = 0; r < (*shards)[s].ranks.size(); ++r) {
        const GridCell& cell = grid.cells[static_cast<size_t>((*shards)[s].ranks[r])];
        EXPECT_EQ(cell.shard, static_cast<int64_t>(s));
        EXPECT_EQ(cell.replica, static_cast<int64_t>(r));
      }
    }
  }
  const DeviceGrid& columns = report->drawn[0].target;
  EXPECT_EQ(columns.cuts, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(columns.shard_shape, (Shape{8, 2}));
  EXPECT_EQ(columns.replicas, 1);
  const DeviceGrid& copied = report->drawn[2].source;  // no layout cuts it
  EXPECT_EQ(copied.shards, 1);
  EXPECT_EQ(copied.replicas, 4);
}

TEST_F(LayoutReportTest, EveryParameterIsListedWithItsCuts) {
  using Cuts = std::vector<int64_t>;
  const auto report = MakeLayoutReport(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->parameters.size(), 3U);
  const ParameterCuts& columns = report->parameters[1];
  EXPECT_EQ(columns.name, "net.w");
  EXPECT_EQ(columns.shape, (Shape{8, 6}));
  EXPECT_EQ(columns.source_cuts, (Cuts{4, 1}));
  EXPECT_EQ(columns.target_cuts, (Cuts{1, 3}));
  const ParameterCuts& gathered = report->parameters[0];
  EXPECT_EQ(gathered.name, "adam_m.w");
  EXPECT_EQ(gathered.source_cuts, (Cuts{2, 1}));
  EXPECT_EQ(gathered.target_cuts, (Cuts{1, 1}));
  EXPECT_FALSE(gathered.copied);
  EXPECT_TRUE(report->parameters[2].copied);  // in no strategy
}

TEST_F(LayoutReportTest, RenamedParametersAreDrawnAndCountedAsBefore) {
  options_.parameters = {"net.w", "adam_m.w", "step"};
  const auto before = MakeLayoutReport(options_);
  ASSERT_TRUE(before.ok()) << before.status().message();
  options_.conversion.selection.renames.names = {
      {"net.w", "step2"}, {"adam_m.w", "net.w"}, {"step", "adam_m.w"}};
  options_.parameters = {"step2", "net.w", "adam_m.w"};
  const auto report = MakeLayoutReport(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->drawn.size(), 3U);
  for (size_t p = 0; p < 3; ++p) {
    for (const auto side : {&ParameterGrids::source, &ParameterGrids::target}) {
      const DeviceGrid& grid = report->drawn[p].*side;
      const DeviceGrid& expected = before->drawn[p].*side;
      EXPECT_EQ(grid.cuts, expected.cuts) << p;
      EXPECT_EQ(grid.shard_shape, expected.shard_shape) << p;
      EXPECT_EQ(grid.shards, expected.shards) << p;
      EXPECT_EQ(grid.replicas, expected.replicas) << p;
    }
  }
  ASSERT_EQ(report->dtypes.size(), before->dtypes.size());
  for (size_t i = 0; i < report->dtypes.size(); ++i) {
    EXPECT_EQ(report->dtypes[i].name, before->dtypes[i].name);
    EXPECT_EQ(report->dtypes[i].full_bytes, before->dtypes[i].full_bytes);
    EXPECT_EQ(report->dtypes[i].stored_bytes, before->dtypes[i].stored_bytes);
  }
}

TEST_F(LayoutReportTest, EachSideHasItsLayout) {
  TargetSpec& target = options_.conversion.target;
  const auto made = Strategy::Make({{"net.w", MakeLayout({3}, {{-1, 0}})}});
  ASSERT_TRUE(made.ok());
  for (const bool by_value : {false, true}) {
    if (by_value) target.strategy = *made;
    const auto report = MakeLayoutReport(options_);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->path, options_.conversion.source.path);
    ASSERT_TRUE(report->source.layout && report->target.layout);
    EXPECT_EQ(report->source.layout->ranks(), 4);
    EXPECT_EQ(report->target.layout->ranks(), 3);
    EXPECT_EQ(report->target.strategy, target.strategy.path());
  }
  target.strategy = {};
  target.cluster.tensor_parallel = 2;
  const auto report = MakeLayoutReport(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->target.layout->ranks(), 2);
  EXPECT_EQ(report->target.strategy, "");
}

TEST_F(LayoutReportTest, TheLargestParameterThatIsCutIsDrawn) {
  const auto report = MakeLayoutReport(options_);
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->drawn.size(), 1U);
  EXPECT_EQ(report->drawn[0].name, "net.w");
}

TEST(DrawnParameterTest, IsNoOptimizerCopyWhereAnotherIsCut) {
  const ParameterLayout rows = MakeLayout({2}, {{0, -1}});
  const TestTensor copy = MakeTensor("adam_m.w", DType::kFloat32, {8, 6});
  const TestTensor weight = MakeTensor("w", DType::kInt16, {8, 6});
  for (const bool is_cut : {true, false}) {
    const std::vector<NamedLayout> layouts = {{"adam_m.w", rows},
                                              {"w", is_cut ? rows : MakeLayout({2}, {{-1, -1}})}};
    ConversionFolder folder(layouts, {});
    folder.WriteStage({copy, weight}, layouts, 2);
    LayoutReportOptions options;
    options.conversion = folder.options();
    const auto report = MakeLayoutReport(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    ASSERT_EQ(report->drawn.size(), 1U);
    EXPECT_EQ(report->drawn[0].name, is_cut ? "w" : "adam_m.w");
  }
}

TEST_F(LayoutReportTest, AParameterThatIsNotThereIsAnError) {
  options_.parameters = {"net.w", "net.v"};
  const auto report = MakeLayoutReport(options_);
  EXPECT_EQ(report.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(report.status().message(), HasSubstr("\"net.v\""));
}

TEST_F(LayoutReportTest, WithoutStrategiesTheFilesAreCounted) {
  options_.conversion.source.strategy = {};
  options_.conversion.target.strategy = {};
  const auto report = MakeLayoutReport(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_FALSE(report->planned);
  EXPECT_EQ(report->plan.sources.size(), 4U);
  EXPECT_EQ(report->plan.parameters, 3U);
  ASSERT_EQ(report->parameters.size(), 3U);
  EXPECT_EQ(report->parameters[1].shape, (Shape{2, 6}));  // as the file of rank 0 has it
  std::map<std::string, uint64_t> dtypes;
  for (const ByteShare& share : report->dtypes) dtypes[share.name] = share.stored_bytes;
  EXPECT_EQ(dtypes["Float32"], 192U);
  EXPECT_EQ(dtypes["Int16"], 4U * 8);
  EXPECT_EQ(dtypes["Int64"], 4U * 8);
  options_.parameters = {"net.w"};
  EXPECT_EQ(MakeLayoutReport(options_).status().code(), StatusCode::kInvalidArgument);
}

TEST(DeviceGridTest, OfVeryManyRanksSeveralAreOneSquare) {
  ConversionFolder folder({{"w", MakeLayout({1}, {{-1}})}}, {{"w", MakeLayout({4, 750}, {{1}})}});
  folder.WriteStage({MakeTensor("w", DType::kInt8, {8})}, {{"w", MakeLayout({1}, {{-1}})}}, 1);
  LayoutReportOptions options;
  options.conversion = folder.options();
  const auto report = MakeLayoutReport(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const DeviceGrid& grid = report->drawn[0].target;
  EXPECT_EQ(grid.ranks_per_cell, 3);
  ASSERT_EQ(grid.cells.size(), 1000U);
  EXPECT_EQ(grid.replicas, 750);
  for (size_t i = 0; i < grid.cells.size(); ++i) {
    const auto rank = static_cast<int64_t>(3 * i);
    EXPECT_EQ(grid.cells[i].shard, rank / 750);
    EXPECT_EQ(grid.cells[i].replica, rank % 750);
  }
}

}  // namespace
}  // namespace reshard::layout_report_test
