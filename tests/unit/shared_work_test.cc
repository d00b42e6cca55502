#include "src/io/shared_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

namespace reshard::shared_work_test {
namespace {

using testing::ElementsAre;

TEST(SharedWorkTest, ThingsAreCutIntoPiecesThatAreDoneOnceEach) {
  constexpr std::array<uint64_t, 5> kSizes = {0, 10, 4, 0, 9};
  for (const size_t workers : {size_t{1}, size_t{3}}) {
    SharedWork work;
    work.workers = workers;
    std::mutex mutex;
    std::multiset<std::tuple<size_t, uint64_t, uint64_t>> seen;
    const Status status =
        ForEachPiece(kSizes, 4, work, [&](size_t index, ByteRange piece, const std::stop_token&) {
          const std::scoped_lock lock(mutex);
          seen.emplace(index, piece.offset, piece.length);
          return Status();
        });
    EXPECT_TRUE(status.ok()) << status.message();
    using Piece = std::tuple<size_t, uint64_t, uint64_t>;
    EXPECT_THAT(seen, ElementsAre(Piece(1, 0, 4), Piece(1, 4, 4), Piece(1, 8, 2), Piece(2, 0, 4),
                                  Piece(4, 0, 4), Piece(4, 4, 4), Piece(4, 8, 1)));
  }
}

TEST(SharedWorkTest, StepsEndAtMultiplesAndAreReportedAsTheyAreDone) {
  std::vector<ByteRange> steps;
  std::vector<uint64_t> reported;
  const auto take = [&](ByteRange step) {
    EXPECT_EQ(reported.size(), steps.size());
    steps.push_back(step);
    return Status();
  };
  const auto report = [&](uint64_t bytes) { reported.push_back(bytes); };
  EXPECT_TRUE(InSteps({6, 11}, 4, {}, report, take).ok());
  EXPECT_THAT(steps,
              ElementsAre(ByteRange{6, 2}, ByteRange{8, 4}, ByteRange{12, 4}, ByteRange{16, 1}));
  EXPECT_THAT(reported, ElementsAre(2, 4, 4, 1));
  EXPECT_TRUE(InSteps({6, 0}, 4, {}, report, take).ok());
  EXPECT_EQ(steps.size(), 4U);
}

TEST(SharedWorkTest, StepsEndWithAFailureOrARequest) {
  std::stop_source stop;
  int steps = 0;
  const auto fail = [&](ByteRange) { return ++steps < 2 ? Status() : IoError("the second"); };
  EXPECT_EQ(InSteps({0, 12}, 4, {}, {}, fail).code(), StatusCode::kIo);
  EXPECT_EQ(steps, 2);
  const auto ask = [&](ByteRange) {
    ++steps;
    stop.request_stop();
    return Status();
  };
  EXPECT_EQ(InSteps({0, 12}, 4, stop.get_token(), {}, ask).code(), StatusCode::kCancelled);
  EXPECT_EQ(steps, 3);
}

TEST(SharedWorkTest, ProgressOfAllThreadsIsOneSum) {
  std::vector<uint64_t> done;
  const std::function<void(const Progress&)> progress = [&](const Progress& sum) {
    EXPECT_EQ(sum.total_bytes, 800U);
    done.push_back(sum.done_bytes);
  };
  RunOptions run;
  run.progress = progress;
  Progress all;
  all.total_bytes = 800;
  const CountedWork counted(run, all);
  const std::vector<uint64_t> sizes(4, 200);
  EXPECT_TRUE(ForEachPiece(sizes, 100, counted.work(),
                           [&](size_t, ByteRange piece, const std::stop_token&) {
                             counted.work().progress(piece.length);
                             return Status();
                           })
                  .ok());
  EXPECT_THAT(done, ElementsAre(100, 200, 300, 400, 500, 600, 700, 800));
  run.progress = {};
  EXPECT_FALSE(CountedWork(run, all).work().progress);
}

TEST(SharedWorkTest, PhasesAndFilesAreCounted) {
  std::vector<std::string> said;
  RunOptions run;
  run.progress = [&](const Progress& sum) {
    said.push_back(std::string(PhaseName(sum.phase)) + ' ' + std::to_string(sum.done_bytes) + ' ' +
                   std::to_string(sum.done_files) + '/' + std::to_string(sum.total_files));
  };
  Progress all;
  all.total_bytes = 8;
  all.phase = Progress::Phase::kCheck;
  all.total_files = 1;
  const CountedWork counted(run, all);
  counted.work().progress(3);
  counted.Enter(Progress::Phase::kWrite);
  counted.work().progress(5);
  counted.work().file_done();
  counted.Enter(Progress::Phase::kPublish);
  EXPECT_THAT(said, ElementsAre("check 3 0/1", "write 3 0/1", "write 8 0/1", "write 8 1/1",
                                "publish 8 1/1"));
}

TEST(SharedWorkTest, JobsStandForThreads) {
  EXPECT_TRUE(CheckJobs(0).ok());
  EXPECT_EQ(CheckJobs(-1).code(), StatusCode::kInvalidArgument);
  EXPECT_GE(Workers(0), 1U);
  EXPECT_EQ(Workers(3), 3U);
}

}  // namespace
}  // namespace reshard::shared_work_test
