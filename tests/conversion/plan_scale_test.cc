// What planning costs, counted: files looked at and memory held, whatever the number of ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "reshard/checkpoint.h"
#include "src/io/source_files.h"
#include "src/mindspore/conversion_rule.h"
#include "src/mindspore/grid_placement.h"
#include "src/mindspore/mindspore_target.h"
#include "src/mindspore/strategy_loader.h"
#include "src/source/indexed_file.h"
#include "src/source/source.h"
#include "src/source/table_cache.h"
#include "tests/support/bytes_read.h"
#include "tests/support/temporary_folder.h"
#include "tools/gen/sample_files.h"

namespace reshard::plan_scale_test {
namespace {

SampleModel ModelOf(int64_t tp, int64_t dp, int64_t pp) {
  SampleModel model;
  model.layers = 2;
  model.hidden = 256;
  model.ffn = 512;
  model.vocab = 256;
  model.tp = tp;
  model.dp = dp;
  model.pp = pp;
  return model;
}

// A sample without content, opened for planning; counts the files that are indexed.
class Opened {
 public:
  Opened(const SampleModel& source, const SampleModel& target) {
    const std::string from = (folder_.path() / "from").string();
    const std::string to = (folder_.path() / "to").string();
    EXPECT_TRUE(WriteSample({.folder = from, .model = source, .sparse = true}).ok());
    EXPECT_TRUE(WriteSample({.folder = to, .model = target, .strategy_only = true}).ok());
    source_strategy_ = *LoadStrategy(from + "/strategy");
    target_strategy_ = *LoadStrategy(to + "/strategy");
    rule_.emplace(&*source_strategy_, &*target_strategy_);
    std::map<int64_t, FileId> rank_files;
    for (int64_t rank = 0; rank < source_strategy_->ranks(); ++rank) {
      rank_files[rank] = files_.Add(from + "/rank_" + std::to_string(rank) + "/llama-1_100.ckpt");
    }
    placement_.emplace(*rule_, std::move(rank_files));
    shards_.emplace(files_, tables_, *placement_);
    target_.emplace(*shards_, *rule_, "checkpoint_", Selection::Unmatched::kCopy);
  }

  // Calls `before` before each file that is indexed, in the thread that does it.
  void SetBefore(std::function<Status()> before) { before_ = std::move(before); }

  void IndexSources(int64_t rank, const Indexers& indexers) {
    target_->IndexSources(std::array{rank}, indexers, std::stop_token());
  }
  TargetPlan Plan(int64_t rank) {
    auto plan = target_->Plan(rank, findings_);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return *std::move(plan);
  }
  void PlanAll() {
    for (int64_t rank = 0; rank < rule_->target_ranks(); ++rank) Plan(rank);
  }
  int64_t source_ranks() const { return source_strategy_->ranks(); }
  int64_t indexed() const { return indexed_; }
  size_t index_memory() const { return tables_.memory(); }

 private:
  const TemporaryFolder folder_;
  SourceFiles files_{4};
  std::atomic<int64_t> indexed_ = 0;
  std::function<Status()> before_ = [] { return Status(); };
  TableCache tables_{[this](FileId file, const auto& like) -> Result<IndexedFile> {
                       if (Status status = before_(); !status.ok()) return status;
                       ++indexed_;
                       return ReadFileTable(files_, file, {}, like);
                     },
                     size_t{1} << 30};
  std::optional<Strategy> source_strategy_;
  std::optional<Strategy> target_strategy_;
  std::optional<ConversionRule> rule_;
  std::optional<GridPlacement> placement_;
  std::optional<Source> shards_;
  std::optional<MindSporeTarget> target_;
  PlanFindings findings_;
};

TEST(PlanScaleTest, ARankLooksAtTheFilesThatItNeedsHoweverManyThereAre) {
  for (const int64_t dp : {1, 8, 32}) {
    Opened opened(ModelOf(4, dp, 2), ModelOf(2, dp, 2));
    const TargetPlan plan = opened.Plan(0);
    EXPECT_EQ(opened.indexed(), 2) << opened.source_ranks() << " source ranks";
    EXPECT_EQ(plan.sources.size(), 2U);
  }
}

TEST(PlanScaleTest, AFileIsIndexedOnceForAllRanks) {
  SampleModel source = ModelOf(4, 8, 2);
  source.optimizer_sharding = true;
  Opened opened(source, ModelOf(2, 4, 2));
  opened.PlanAll();
  EXPECT_EQ(opened.indexed(), opened.source_ranks());
  opened.PlanAll();
  EXPECT_EQ(opened.indexed(), opened.source_ranks());
}

// A place where so many threads meet.
class Meeting {
 public:
  explicit Meeting(int threads) : threads_(threads) {}

  // Returns once the others have come, too, or after a time in which they should have.
  bool Join() {
    std::unique_lock lock(mutex_);
    ++here_;
    came_.notify_all();
    return came_.wait_for(lock, std::chrono::seconds(30), [this] { return here_ == threads_; });
  }

 private:
  const int threads_;
  std::mutex mutex_;
  std::condition_variable came_;
  int here_ = 0;
};

TEST(PlanScaleTest, SourcesAreIndexedSeveralAtATime) {
  Opened opened(ModelOf(4, 1, 2), ModelOf(2, 1, 2));
  Meeting meeting(2);
  std::atomic<bool> met = true;
  opened.SetBefore([&] {
    if (!meeting.Join()) met = false;
    return Status();
  });
  opened.IndexSources(0, Indexers(2));
  EXPECT_TRUE(met);
  EXPECT_EQ(opened.indexed(), 2);
  opened.IndexSources(0, Indexers(2));
  opened.Plan(0);
  EXPECT_EQ(opened.indexed(), 2);
}

// Where headers lie far from each other, who reads them mostly waits for the disk.
TEST(PlanScaleTest, MoreThreadsWaitForDistantHeaders) {
  SampleModel source = ModelOf(8, 1, 1);
  source.hidden = 1024;
  Opened opened(source, ModelOf(1, 1, 1));
  Meeting others(6);
  std::atomic<int> asked = 0;
  std::atomic<bool> met = true;
  opened.SetBefore([&] {
    // The first two tell what the others are like.
    if (++asked > 2 && !others.Join()) met = false;
    return Status();
  });
  opened.IndexSources(0, Indexers(2));
  EXPECT_TRUE(met);
  EXPECT_EQ(opened.indexed(), 8);
}

TEST(PlanScaleTest, FewThreadsReadCloseHeaders) {
  SampleModel source = ModelOf(8, 1, 1);
  source.hidden = 64;
  source.ffn = 64;
  Opened opened(source, ModelOf(1, 1, 1));
  std::atomic<int> at_work = 0;
  std::atomic<int> most = 0;
  opened.SetBefore([&] {
    most = std::max<int>(most, ++at_work);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    --at_work;
    return Status();
  });
  opened.IndexSources(0, Indexers(2));
  EXPECT_LE(most, 2);
  EXPECT_EQ(opened.indexed(), 8);
}

// Each holds a table of its own meanwhile.
TEST(PlanScaleTest, NoMoreThreadsIndexThanThereIsMemoryFor) {
  EXPECT_EQ(Indexers(2).waiting, kMostWaiting);
  EXPECT_EQ(Indexers(16).waiting, 16U);
  for (const size_t most : std::initializer_list<size_t>{1, 2, 5}) {
    const Indexers indexers(2, most);
    EXPECT_EQ(indexers.workers, std::min<size_t>(2, most));
    EXPECT_EQ(indexers.waiting, most);
  }
}

TEST(PlanScaleTest, SourcesThatCouldNotBeIndexedAreTriedAgain) {
  Opened opened(ModelOf(4, 1, 2), ModelOf(2, 1, 2));
  std::atomic<int> asked = 0;
  opened.SetBefore([&] {
    ++asked;
    return IoError("no");
  });
  opened.IndexSources(0, Indexers(2));
  EXPECT_GE(asked, 1);
  opened.SetBefore([] { return Status(); });
  opened.Plan(0);
  EXPECT_EQ(opened.indexed(), 2);
}

// The files of one stage have the same headers, so their number hardly counts.
TEST(PlanScaleTest, IndexesTakeMemoryByStagesNotByRanks) {
  SampleModel few = ModelOf(2, 4, 2);
  few.optimizer_sharding = true;
  SampleModel many = ModelOf(2, 32, 2);
  many.optimizer_sharding = true;
  Opened small(few, ModelOf(2, 1, 2));
  Opened large(many, ModelOf(2, 1, 2));
  small.PlanAll();
  large.PlanAll();
  const auto more = static_cast<size_t>(large.indexed() - small.indexed());
  ASSERT_EQ(more, 112U);
  EXPECT_LE(large.index_memory() - small.index_memory(), more * sizeof(IndexedFile) + 1024);
}

// What the command inspect does with a folder of ranks.
TEST(PlanScaleTest, InspectingManyRanksReadsHeadersOnly) {
  SampleModel model = ModelOf(8, 8, 1);
  model.hidden = 8192;
  model.ffn = 16384;
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "ranks").string();
  const auto bytes = WriteSample({.folder = path, .model = model, .sparse = true});
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  ASSERT_GT(*bytes, uint64_t{64} << 30);
  const auto ranks = ListRankFiles({.path = path});
  ASSERT_TRUE(ranks.ok());
  ASSERT_EQ(ranks->files.size(), 64U);

  uint64_t parameters = 0;
  const uint64_t before = BytesRead();
  for (const RankFiles::File& file : ranks->files) {
    const auto checkpoint = Checkpoint::Open(file.path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    parameters += checkpoint->parameters().size();
  }
  // A header lies in one page, or in two.
  EXPECT_LE(BytesRead() - before, parameters * 2 * 4096);
}

}  // namespace
}  // namespace reshard::plan_scale_test
