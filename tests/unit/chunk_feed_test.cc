// Chunks in their order, one lane at a time: who is asked for what, and what a failure leaves to be
// done.
#include "src/write/chunk_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace reshard::chunk_feed_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kChunk = 256 << 10;

// Says what it was asked; files are in a folder, under their numbers.
class LoggedSink final : public PartSink {
 public:
  explicit LoggedSink(std::string folder) : folder_(std::move(folder)) {}

  Result<bool> IsKept(const FilePart& part, const std::stop_token& stop) const override {
    if (stop.stop_requested()) return CancelledError("stopped");
    return kept.contains(part.file);
  }
  Result<StagedFile> Create(const FilePart& part, const WriteOptions& options) const override {
    if (fails_to_open.contains(part.file)) return NotFoundError(std::to_string(part.file));
    opened.push_back(part.file);
    std::vector<std::string> made;
    auto folder = OutputDirectory::Create(folder_, made);
    if (!folder.ok()) return folder.status();
    return StagedFile::OpenPart(*folder, std::to_string(part.file), part.range.end(), part.range,
                                options);
  }
  Status Finish(const FilePart& part, StagedFile /*file*/, const FinishedPart& /*finished*/,
                const std::stop_token& /*stop*/) const override {
    finished.push_back(part.file);
    return fails_to_finish.contains(part.file) ? NotFoundError(std::to_string(part.file))
                                               : Status();
  }

  std::set<size_t> kept;
  std::set<size_t> fails_to_open;
  std::set<size_t> fails_to_finish;
  mutable std::vector<size_t> opened;
  mutable std::vector<size_t> finished;

 private:
  const std::string folder_;
};

class ChunkFeedTest : public testing::Test {
 protected:
  // Files of so many chunks each, in these groups.
  void SetUpWork(const std::vector<uint64_t>& chunks, std::vector<std::vector<size_t>> groups) {
    work_.digests = false;
    work_.groups = std::move(groups);
    for (size_t i = 0; i < chunks.size(); ++i) {
      TargetPlan plan;
      plan.path = std::to_string(i);
      plan.size = chunks[i] * kChunk;
      plans_.push_back(std::move(plan));
      work_.parts.push_back({i, {0, chunks[i] * kChunk}});
    }
    work_.plan = [this](size_t file) {
      return Result<PlanHandle>(std::make_shared<const TargetPlan>(plans_[file]));
    };
    work_.part_done = [this] { ++done_; };
    feed_.emplace(files_, work_, sink_, options_, counts_);
  }

  // Has files that are read and not mapped, as where a server has to be asked.
  void ReadSources() {
    const FileId id = files_.Add(folder_.Write("source", "x"));
    ASSERT_TRUE(files_.Size(id).ok());
    ASSERT_TRUE(files_.HasReadFiles());
  }

  // The number of the chunk's file, and of the chunk in it.
  static std::pair<size_t, uint64_t> NameOf(const ChunkFeed::Chunk& chunk) {
    return {std::stoul(chunk.part().plan.path), chunk.range().offset / kChunk};
  }
  std::optional<std::pair<size_t, uint64_t>> Take() {
    const auto chunk = feed_->Take();
    if (!chunk) return std::nullopt;
    taken_.push_back(*chunk);
    return NameOf(*chunk);
  }
  // Takes a chunk; returns what is read ahead with it, and of which files.
  std::vector<std::pair<std::string, ByteRange>> TakeLater() {
    std::vector<std::pair<std::string, ByteRange>> later;
    if (!Take()) ADD_FAILURE() << "no chunk";
    for (const auto& [part, range] : taken_.back().later())
      later.emplace_back(part->plan.path, range);
    return later;
  }
  std::vector<std::pair<size_t, uint64_t>> TakeAll() {
    std::vector<std::pair<size_t, uint64_t>> names;
    while (const auto name = Take()) names.push_back(*name);
    return names;
  }
  void WriteTaken() {
    for (const ChunkFeed::Chunk& chunk : taken_) feed_->Written(chunk);
    taken_.clear();
  }

  const TemporaryFolder folder_;
  SourceFiles files_{SourceFiles::Options{.max_open = 1, .access = IoChoice::Source::kPread}};
  LoggedSink sink_{(folder_.path() / "out").string()};
  std::vector<TargetPlan> plans_;
  PartWork work_;
  LaneOptions options_{.lanes = 2, .chunk_bytes = kChunk};
  WriteCounts counts_;
  size_t done_ = 0;
  std::vector<ChunkFeed::Chunk> taken_;
  std::optional<ChunkFeed> feed_;
};

TEST_F(ChunkFeedTest, WhoIsFurthestBehindGoesOn) {
  SetUpWork({2, 4}, {{0, 1}});
  EXPECT_THAT(TakeAll(), ElementsAre(std::pair(0, 0), std::pair(1, 0), std::pair(1, 1),
                                     std::pair(0, 1), std::pair(1, 2), std::pair(1, 3)));
  EXPECT_EQ(done_, 0U);
  WriteTaken();
  EXPECT_EQ(done_, 2U);
  EXPECT_THAT(sink_.finished, ElementsAre(0, 1));
  EXPECT_TRUE(feed_->TakeFailure().ok());
}

TEST_F(ChunkFeedTest, GroupsComeOneAfterTheOtherAndOpenWhenTheirTurnComes) {
  SetUpWork({1, 1, 1}, {{2}, {0, 1}});
  EXPECT_EQ(Take(), std::pair(size_t{2}, uint64_t{0}));
  EXPECT_THAT(sink_.opened, ElementsAre(2));
  EXPECT_EQ(Take(), std::pair(size_t{0}, uint64_t{0}));
  EXPECT_THAT(sink_.opened, ElementsAre(2, 0, 1));
}

TEST_F(ChunkFeedTest, WhatIsKeptOrEmptyHasNoChunks) {
  sink_.kept = {0};
  SetUpWork({3, 0, 1}, {{0, 1, 2}});
  EXPECT_THAT(TakeAll(), ElementsAre(std::pair(2, 0)));
  EXPECT_EQ(counts_.kept, 1U);
  EXPECT_THAT(sink_.opened, ElementsAre(1, 2));
  EXPECT_THAT(sink_.finished, ElementsAre(1));
  EXPECT_EQ(done_, 2U);
}

TEST_F(ChunkFeedTest, AChunkTellsWhatComesLater) {
  options_.lanes = 3;
  SetUpWork({5}, {{0}});
  EXPECT_THAT(TakeLater(), ElementsAre(std::pair("0", ByteRange{3 * kChunk, kChunk})));
  EXPECT_THAT(TakeLater(), ElementsAre(std::pair("0", ByteRange{4 * kChunk, kChunk})));
  for (int i = 2; i < 5; ++i) EXPECT_THAT(TakeLater(), IsEmpty());
}

// Whoever is the first at a place asks for what all parts of the group take at the next one.
TEST_F(ChunkFeedTest, AGroupIsReadAheadTogether) {
  SetUpWork({4, 4, 2}, {{0, 1, 2}});
  EXPECT_THAT(TakeLater(), ElementsAre(std::pair("0", ByteRange{0, 2 * kChunk}),
                                       std::pair("1", ByteRange{0, 2 * kChunk}),
                                       std::pair("2", ByteRange{0, kChunk})));
  EXPECT_THAT(TakeLater(), IsEmpty());
  // Its next place is far on in the others.
  EXPECT_THAT(TakeLater(), ElementsAre(std::pair("0", ByteRange{2 * kChunk, kChunk}),
                                       std::pair("1", ByteRange{2 * kChunk, kChunk}),
                                       std::pair("2", ByteRange{kChunk, kChunk})));
  EXPECT_EQ(NameOf(taken_.back()), std::pair(size_t{2}, uint64_t{0}));
  EXPECT_THAT(TakeLater(), IsEmpty());
  EXPECT_THAT(TakeLater(), IsEmpty());
  EXPECT_THAT(TakeLater(), ElementsAre(std::pair("0", ByteRange{3 * kChunk, kChunk}),
                                       std::pair("1", ByteRange{3 * kChunk, kChunk})));
}

// Where servers have to be asked, they are asked for the next group while the last chunks of the
// one before it are dealt with: as much as there is room for, and once.
TEST_F(ChunkFeedTest, TheNextGroupIsAskedForBeforeItsTurn) {
  ReadSources();
  options_.lanes = 1;
  options_.window_bytes = 8 * kChunk;  // 6 for what is ahead, of which a lane has taken 1
  SetUpWork({3, 9, 1}, {{0}, {1}, {2}});
  EXPECT_THAT(TakeLater(), ElementsAre(std::pair("0", ByteRange{kChunk, 2 * kChunk})));
  EXPECT_THAT(sink_.opened, ElementsAre(0));
  // One is asked for and not taken.
  EXPECT_THAT(TakeLater(), ElementsAre(std::pair("1", ByteRange{0, 4 * kChunk})));
  EXPECT_EQ(NameOf(taken_.back()), std::pair(size_t{0}, uint64_t{1}));
  EXPECT_THAT(sink_.opened, ElementsAre(0, 1));
  EXPECT_THAT(TakeLater(), ElementsAre(std::pair("1", ByteRange{4 * kChunk, kChunk})));
  EXPECT_EQ(NameOf(taken_.back()), std::pair(size_t{0}, uint64_t{2}));
  EXPECT_THAT(TakeLater(), ElementsAre(std::pair("1", ByteRange{5 * kChunk, kChunk})));
  EXPECT_EQ(NameOf(taken_.back()), std::pair(size_t{1}, uint64_t{0}));
  EXPECT_THAT(sink_.opened, ElementsAre(0, 1));
  WriteTaken();
  EXPECT_EQ(TakeAll().size(), 9U);
  EXPECT_THAT(sink_.opened, ElementsAre(0, 1, 2));
  WriteTaken();
  EXPECT_EQ(done_, 3U);
}

TEST_F(ChunkFeedTest, NoMoreAreOpenedAheadThanMayBeOpen) {
  ReadSources();
  options_.most_open = 1;
  SetUpWork({2, 2}, {{0}, {1}});
  Take();
  Take();
  EXPECT_THAT(sink_.opened, ElementsAre(0));
  EXPECT_THAT(taken_.back().later(), IsEmpty());
}

TEST_F(ChunkFeedTest, TheBatonGoesFromChunkToChunk) {
  SetUpWork({2}, {{0}});
  Take();
  EXPECT_TRUE(feed_->WaitForBaton(taken_[0]));
  feed_->PassBaton(taken_[0]);
  Take();
  EXPECT_TRUE(feed_->WaitForBaton(taken_[1]));
}

// Chunks that end within a block would have to wait for each other.
TEST_F(ChunkFeedTest, WhatIsEncryptedComesInWholeBlocks) {
  const std::vector<std::byte> key(16);
  auto cipher = BlockCipher::Make(*EncryptionKey::FromBytes(std::span(key)),
                                  TargetSpec::EncryptionMode::kAesCbc);
  ASSERT_TRUE(cipher.ok()) << cipher.status().message();
  work_.encryption = *std::move(cipher);
  // A chunk of the lanes, and one of a group so large that it would have smaller ones.
  for (const auto& [chunk, windows] : {std::pair(5 * kPlainBlockBytes / 2, uint64_t{64} << 20),
                                       std::pair(4 * kPlainBlockBytes, kPlainBlockBytes)}) {
    SCOPED_TRACE(chunk);
    options_.chunk_bytes = chunk;
    options_.window_bytes = windows;
    plans_.clear();
    work_.parts.clear();
    SetUpWork({5 * kPlainBlockBytes / kChunk + 1}, {{0}});
    const uint64_t expected = windows == kPlainBlockBytes ? kPlainBlockBytes : 2 * kPlainBlockBytes;
    uint64_t end = 0;
    while (const auto taken = feed_->Take()) {
      EXPECT_EQ(taken->range().offset, end);
      end = taken->range().end();
      EXPECT_EQ(taken->range().length, std::min(expected, plans_[0].size - taken->range().offset));
    }
    EXPECT_EQ(end, plans_[0].size);
  }
  // All of a file that is smaller than a block.
  options_.chunk_bytes = kChunk;
  plans_.clear();
  work_.parts.clear();
  std::filesystem::remove_all(folder_.path() / "out");
  SetUpWork({1}, {{0}});
  EXPECT_EQ(feed_->Take()->range().length, kChunk);
}

// Together with 1, which is as far, but has the higher number.
TEST_F(ChunkFeedTest, AFailureLeavesWhatComesBeforeItsPlace) {
  SetUpWork({2, 2, 2}, {{0, 1}, {2}});
  for (int i = 0; i < 2; ++i) Take();  // the first chunk of both
  feed_->FailAt(taken_[1], kChunk / 2, NotFoundError("first"));
  EXPECT_TRUE(feed_->IsWanted(taken_[0]));
  EXPECT_TRUE(feed_->IsWanted(taken_[1]));
  EXPECT_THAT(TakeAll(), IsEmpty());  // half of a part lies before all others
  // One whose place comes earlier takes over; a later one does not.
  feed_->FailAt(taken_[0], 0, NotFoundError("earlier"));
  feed_->FailAt(taken_[1], 0, NotFoundError("later"));
  EXPECT_FALSE(feed_->IsWanted(taken_[0]));
  EXPECT_FALSE(feed_->WaitForBaton(taken_[1]));
  EXPECT_EQ(feed_->TakeFailure().message(), "earlier");
  EXPECT_THAT(sink_.opened, ElementsAre(0, 1));  // no part of the next group
}

TEST_F(ChunkFeedTest, PartsBeforeOneThatCannotBeOpenedAreWritten) {
  sink_.fails_to_open = {1};
  SetUpWork({2, 1, 1}, {{0}, {1}, {2}});
  EXPECT_THAT(TakeAll(), ElementsAre(std::pair(0, 0), std::pair(0, 1)));
  WriteTaken();
  EXPECT_THAT(sink_.finished, ElementsAre(0));
  EXPECT_THAT(sink_.opened, ElementsAre(0));
  EXPECT_EQ(feed_->TakeFailure().message(), "1");
}

TEST_F(ChunkFeedTest, AFailureToFinishIsAtTheEndOfItsPart) {
  sink_.fails_to_finish = {0};
  SetUpWork({1, 2}, {{0, 1}});
  Take();
  WriteTaken();
  EXPECT_THAT(TakeAll(), ElementsAre(std::pair(1, 0), std::pair(1, 1)));
  WriteTaken();
  EXPECT_THAT(sink_.finished, ElementsAre(0, 1));
  EXPECT_EQ(feed_->TakeFailure().message(), "0");
}

TEST_F(ChunkFeedTest, AFailureToWriteEndsEverythingAtOnce) {
  SetUpWork({2, 1}, {{0}, {1}});
  Take();
  feed_->Fail(NotFoundError("disk"));
  EXPECT_FALSE(feed_->IsWanted(taken_[0]));
  EXPECT_THAT(TakeAll(), ElementsAre());
  feed_->Fail(NotFoundError("second"));
  feed_->Cancel();
  EXPECT_EQ(feed_->TakeFailure().message(), "disk");
}

TEST_F(ChunkFeedTest, CancelIsAFailureUnlessAllIsDone) {
  SetUpWork({1}, {{0}});
  Take();
  feed_->Cancel();
  EXPECT_EQ(feed_->TakeFailure().code(), StatusCode::kCancelled);

  ChunkFeed whole(files_, work_, sink_, options_, counts_);
  const auto chunk = whole.Take();
  ASSERT_TRUE(chunk);
  whole.Written(*chunk);
  EXPECT_FALSE(whole.Take());
  whole.Cancel();
  EXPECT_TRUE(whole.TakeFailure().ok());
}

}  // namespace
}  // namespace reshard::chunk_feed_test
