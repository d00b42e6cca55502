// Target files, written by several lanes at once: the right bytes whatever the lanes, one file used
// by all of them, groups in lockstep, and the first failure ends everything.
#include "src/write/part_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "src/record/part_record.h"
#include "tests/support/temporary_folder.h"

namespace reshard {
namespace {

using testing::HasSubstr;

// The byte at `offset` of the source.
char ByteAt(uint64_t offset) { return static_cast<char>(offset * 7 + offset / 251); }

class PartWriterTest : public testing::Test {
 protected:
  // A plan of `content_bytes` of the source behind a header.
  TargetPlan MakePlan(uint64_t content_bytes) {
    std::string bytes(content_bytes + 11, '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = ByteAt(i);
    const FileId file = files_.Add(folder_.Write("source-" + std::to_string(content_bytes), bytes));
    const std::string header = "header";
    TargetPlan plan;
    plan.path = "target";
    plan.size = header.size() + content_bytes;
    Content content;
    content.target_name = "w";
    content.dtype = DType::kUInt8;
    const auto count = static_cast<int64_t>(content_bytes);
    content.target = {header.size(), content_bytes};
    if (content_bytes > 0) {
      content.copies = {{file, 11, header.size(), content_bytes, {}}};
      content.geometry = {{count}, {{0}, {count}}, {{{{0}, {count}}, 11}}};
    }
    plan.segments = {Literal{0, header}, content};
    return plan;
  }

  // Where all parts are written: files named by their numbers.
  OutputDirectory Out() const {
    std::vector<std::string> made;
    auto folder = OutputDirectory::Create((folder_.path() / "out").string(), made);
    EXPECT_TRUE(folder.ok());
    return std::move(*folder);
  }

  // Work that writes `plans`, a file of each, all in one group.
  PartWork MakeWork(const std::vector<TargetPlan>& plans) {
    PartWork work;
    work.groups.emplace_back();
    for (size_t i = 0; i < plans.size(); ++i) work.groups[0].push_back(i);
    work.open = [this, &plans](size_t i,
                               const std::stop_token&) -> Result<std::unique_ptr<TargetPart>> {
      auto file = StagedFile::Create(Out(), std::to_string(i), plans[i].size);
      if (!file.ok()) return file.status();
      return std::make_unique<TargetPart>(plans[i], ByteRange{0, plans[i].size}, std::move(*file),
                                          true);
    };
    work.finish = [this](size_t i, TargetPart& part) -> Status {
      if (Status status = part.digest->Compare(); !status.ok()) return status;
      const std::scoped_lock lock(mutex_);
      digests_[i] = part.digest->file();
      return part.file.Finish();
    };
    work.progress = [this](uint64_t bytes) { progress_ += bytes; };
    return work;
  }

  // Whether the file is what a plan of MakePlan stands for.
  bool IsRight(const std::string& name, uint64_t content_bytes) const {
    const std::string source =
        ReadFile(folder_.path() / ("source-" + std::to_string(content_bytes)));
    return ReadFile(folder_.path() / "out" / name) == "header" + source.substr(11);
  }

  const TemporaryFolder folder_;
  SourceFiles files_{2};
  std::atomic<uint64_t> progress_ = 0;
  std::mutex mutex_;
  std::map<size_t, std::string> digests_;
};

TEST_F(PartWriterTest, WritesFilesOfAnySizeWithAnyLanes) {
  constexpr uint64_t kSmall = 65536;  // chunks
  const std::vector<uint64_t> sizes = {0,          1,          kSmall - 7,       kSmall - 6,
                                       kSmall - 5, 2 * kSmall, 3 * kSmall + 4097};
  std::vector<TargetPlan> plans;
  uint64_t bytes = 0;
  for (const uint64_t size : sizes) {
    plans.push_back(MakePlan(size));
    bytes += plans.back().size;
  }
  std::map<size_t, std::string> expected;
  for (const size_t lanes : std::initializer_list<size_t>{1, 3, 8}) {
    for (const bool writer_threads : {false, true}) {
      for (const bool grouped : {false, true}) {
        PartWork work = MakeWork(plans);
        if (!grouped) {
          work.groups.clear();
          for (size_t i = 0; i < plans.size(); ++i) work.groups.push_back({i});
        }
        progress_ = 0;
        digests_.clear();
        const Status status = WriteParts(
            files_, work, {.lanes = lanes, .writer_threads = writer_threads, .chunk_bytes = kSmall},
            {});
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(progress_, bytes);
        if (expected.empty()) expected = digests_;
        EXPECT_EQ(digests_, expected);
        for (size_t i = 0; i < sizes.size(); ++i) {
          EXPECT_TRUE(IsRight(std::to_string(i), sizes[i])) << sizes[i];
        }
        std::filesystem::remove_all(folder_.path() / "out");
      }
    }
  }
}

TEST_F(PartWriterTest, WritesPartsOfOneFile) {
  const uint64_t content_bytes = 2 * kDigestBlockBytes + 4097;
  const TargetPlan plan = MakePlan(content_bytes);
  const std::vector<ByteRange> parts = {
      {kDigestBlockBytes, kDigestBlockBytes},
      {0, kDigestBlockBytes},
      {2 * kDigestBlockBytes, plan.size - 2 * kDigestBlockBytes},
  };
  PartWork work = MakeWork({});
  work.groups = {{0, 1}, {2}};
  work.open = [&](size_t i, const std::stop_token&) -> Result<std::unique_ptr<TargetPart>> {
    auto file = StagedFile::OpenPart(Out(), "parts", plan.size, parts[i]);
    if (!file.ok()) return file.status();
    return std::make_unique<TargetPart>(plan, parts[i], std::move(*file), true);
  };
  std::map<uint64_t, std::string> blocks;
  Digest128 sum;
  work.finish = [&](size_t i, TargetPart& part) -> Status {
    if (Status status = part.digest->Compare(); !status.ok()) return status;
    const std::scoped_lock lock(mutex_);
    EXPECT_EQ(part.digest->blocks().size(), 1u);
    blocks[parts[i].offset] = part.digest->blocks()[0];
    sum ^= part.digest->content(1);
    return part.file.Finish();
  };
  const Status status = WriteParts(files_, work, {.lanes = 3}, {});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(IsRight("parts", content_bytes));

  TargetDigest whole(plan);
  const std::string bytes = ReadFile(folder_.path() / "out" / "parts");
  ChunkDigest sums;
  sums.Begin(plan, {0, bytes.size()});
  sums.AddTarget(0, std::as_bytes(std::span(bytes)));
  whole.AddChunk(std::as_bytes(std::span(bytes)), sums);
  EXPECT_EQ(sum, whole.content(1));
  EXPECT_THAT(whole.blocks(), testing::ElementsAre(blocks[0], blocks[kDigestBlockBytes],
                                                   blocks[2 * kDigestBlockBytes]));
}

// The lanes meet: each chunk is held until as many threads as there are lanes have written one.
TEST_F(PartWriterTest, OneFileUsesAllLanes) {
  constexpr size_t kLanes = 4;
  const std::vector<TargetPlan> plans = {MakePlan(2 * kLanes * kChunkBytes)};
  PartWork work = MakeWork(plans);
  std::condition_variable met;
  std::set<std::thread::id> threads;
  work.progress = [&](uint64_t) {
    std::unique_lock lock(mutex_);
    threads.insert(std::this_thread::get_id());
    met.notify_all();
    EXPECT_TRUE(
        met.wait_for(lock, std::chrono::seconds(60), [&] { return threads.size() == kLanes; }));
  };
  const Status status = WriteParts(files_, work, {.lanes = kLanes, .writer_threads = false}, {});
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(threads.size(), kLanes);
}

TEST_F(PartWriterTest, FilesOfAGroupAdvanceTogether) {
  const std::vector<TargetPlan> plans = {MakePlan(4 * kChunkBytes), MakePlan(8 * kChunkBytes),
                                         MakePlan(8 * kChunkBytes)};
  PartWork work = MakeWork(plans);
  std::map<size_t, TargetPart*> open;
  const auto open_part = work.open;
  work.open = [&](size_t i, const std::stop_token& stop) {
    auto part = open_part(i, stop);
    if (part.ok()) open[i] = part->get();
    return part;
  };
  work.finish = [&](size_t i, TargetPart& part) {
    open.erase(i);
    return part.file.Finish();
  };
  double widest = 0;
  work.progress = [&](uint64_t) {
    EXPECT_GE(open.size(), 1u);
    if (open.size() < plans.size()) return;  // the others have one chunk left at most
    double least = 1;
    double most = 0;
    for (const auto& [i, part] : open) {
      const double done =
          static_cast<double>(part->file.written()) / static_cast<double>(part->range.length);
      least = std::min(least, done);
      most = std::max(most, done);
    }
    widest = std::max(widest, most - least);
  };
  const Status status = WriteParts(files_, work, {.lanes = 1, .writer_threads = false}, {});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_LE(widest, 0.26);  // a chunk of the smallest
}

TEST_F(PartWriterTest, ChunksOfLargeGroupsShareTheWindows) {
  const std::vector<TargetPlan> plans = {MakePlan(3 << 20), MakePlan(3 << 20), MakePlan(3 << 20)};
  for (const auto& [window_bytes, largest] : std::map<uint64_t, uint64_t>{
           {6 << 20, 1 << 20}, {1 << 20, 256 << 10}, {uint64_t{64} << 20, kChunkBytes}}) {
    PartWork work = MakeWork(plans);
    uint64_t most = 0;
    work.progress = [&](uint64_t bytes) { most = std::max(most, bytes); };
    const Status status = WriteParts(
        files_, work, {.lanes = 1, .writer_threads = false, .window_bytes = window_bytes}, {});
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(most, std::min(largest, plans[0].size));
    std::filesystem::remove_all(folder_.path() / "out");
  }
}

TEST_F(PartWriterTest, LeavesOutPartsThatAreThere) {
  const std::vector<TargetPlan> plans = {MakePlan(10), MakePlan(kChunkBytes), MakePlan(20)};
  PartWork work = MakeWork(plans);
  const auto open_part = work.open;
  work.open = [&](size_t i, const std::stop_token& stop) {
    if (i != 1) return Result<std::unique_ptr<TargetPart>>(std::unique_ptr<TargetPart>());
    return open_part(i, stop);
  };
  work.groups = {{0}, {1, 2}};
  const Status status = WriteParts(files_, work, {}, {});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(digests_.size(), 1u);
  EXPECT_TRUE(IsRight("1", kChunkBytes));
}

TEST_F(PartWriterTest, EndsWhenTheSourceFails) {
  for (const uint64_t bytes : {uint64_t{1000}, 4 * kChunkBytes}) {
    std::vector<TargetPlan> plans = {MakePlan(bytes), MakePlan(bytes)};
    std::get<Content>(plans[1].segments[1]).copies[0].source_offset = 12;  // one byte too far
    for (const size_t lanes : std::initializer_list<size_t>{1, 4}) {
      PartWork work = MakeWork(plans);
      const Status status = WriteParts(files_, work, {.lanes = lanes}, {});
      EXPECT_EQ(status.code(), StatusCode::kCorrupt) << status.message();
      EXPECT_FALSE(digests_.contains(1));
      std::filesystem::remove_all(folder_.path() / "out");
    }
  }
}

// Three damaged sources, the first damage by place, whatever lanes and chunks there are.
TEST_F(PartWriterTest, ReportsTheSameFailureWithAnyLanes) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  const struct {
    std::vector<std::vector<size_t>> groups;
    std::vector<uint64_t> damaged_from;  // byte of each part's source
    size_t first;
  } rows[] = {
      // Together: that which is met first, though the chunk of another one begins before it.
      {{{0, 1, 2}}, {7 * kMiB / 2, kMiB / 2, 7 * kMiB}, 1},
      {{{0, 1, 2}}, {kMiB / 2, kMiB / 2, kMiB / 2}, 0},
      // One after the other.
      {{{0}, {1}, {2}}, {8 * kMiB, 7 * kMiB, 0}, 1},
      {{{2}, {1}, {0}}, {0, 0, 8 * kMiB - 1}, 2},
  };
  for (const auto& row : rows) {
    std::vector<TargetPlan> plans;
    for (size_t i = 0; i < 3; ++i) {
      plans.push_back(MakePlan(8 * kMiB));
      Content& content = std::get<Content>(plans[i].segments[1]);
      const PlacedBox shard = content.geometry.shard(0);
      content.geometry = {
          content.geometry.full_shape(), content.geometry.target_box(), {shard, shard}};
      std::vector<BlockCopy>& copies = content.copies;
      const uint64_t good = row.damaged_from[i];
      copies.push_back(copies[0]);
      copies[0].run_length = good;
      copies[1].source_offset = (i + 1) << 40;  // nothing is there
      copies[1].target_offset += good;
      copies[1].run_length -= good;
      if (good == 8 * kMiB) copies.pop_back();
      if (good == 0) copies.erase(copies.begin());
    }
    std::string message;
    for (const size_t lanes : std::initializer_list<size_t>{1, 2, 4, 8}) {
      for (const uint64_t chunk_bytes : {kMiB / 4, kMiB, kChunkBytes}) {
        PartWork work = MakeWork(plans);
        work.groups = row.groups;
        const Status status = WriteParts(
            files_, work,
            {.lanes = lanes, .writer_threads = lanes % 4 == 0, .chunk_bytes = chunk_bytes}, {});
        EXPECT_THAT(status.message(), HasSubstr(std::to_string((row.first + 1) << 40)))
            << lanes << " lanes, chunks of " << chunk_bytes;
        if (message.empty()) message = status.message();
        EXPECT_EQ(status.message(), message);
        std::filesystem::remove_all(folder_.path() / "out");
      }
    }
  }
}

TEST_F(PartWriterTest, EndsWhenTheTargetFails) {
  const std::vector<TargetPlan> plans = {MakePlan(4 * kChunkBytes)};
  PartWork work = MakeWork(plans);
  work.open = [&](size_t, const std::stop_token&) -> Result<std::unique_ptr<TargetPart>> {
    auto file = StagedFile::Create(Out(), "small", kChunkBytes + 1);  // takes no second chunk
    if (!file.ok()) return file.status();
    return std::make_unique<TargetPart>(plans[0], ByteRange{0, plans[0].size}, std::move(*file),
                                        false);
  };
  for (const bool writer_threads : {false, true}) {
    const Status status =
        WriteParts(files_, work, {.lanes = 2, .writer_threads = writer_threads}, {});
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    EXPECT_THAT(status.message(), HasSubstr("out/small: "));
    std::filesystem::remove_all(folder_.path() / "out");
  }
}

TEST_F(PartWriterTest, EndsWhenAPartCannotBeOpenedOrFinished) {
  const std::vector<TargetPlan> plans = {MakePlan(100), MakePlan(3 * kChunkBytes), MakePlan(0)};
  for (size_t bad = 0; bad < plans.size(); ++bad) {
    for (const bool at_open : {true, false}) {
      PartWork work = MakeWork(plans);
      const auto open_part = work.open;
      const auto finish_part = work.finish;
      if (at_open) {
        work.open = [&, bad](size_t i, const std::stop_token& stop) {
          if (i != bad) return open_part(i, stop);
          return Result<std::unique_ptr<TargetPart>>(NotFoundError("no such part"));
        };
      } else {
        work.finish = [&, bad](size_t i, TargetPart& part) {
          return i == bad ? NotFoundError("no such part") : finish_part(i, part);
        };
      }
      const Status status = WriteParts(files_, work, {.lanes = 3}, {});
      EXPECT_EQ(status.code(), StatusCode::kNotFound) << status.message();
      std::filesystem::remove_all(folder_.path() / "out");
    }
  }
}

TEST_F(PartWriterTest, StopsBetweenChunks) {
  for (const uint64_t bytes : {uint64_t{1000}, 12 * kChunkBytes}) {
    const std::vector<TargetPlan> plans = {MakePlan(bytes)};
    PartWork work = MakeWork(plans);
    std::stop_source stop;
    if (bytes == 1000) stop.request_stop();
    work.progress = [&](uint64_t done) {
      progress_ += done;
      stop.request_stop();
    };
    const Status status = WriteParts(files_, work, {}, stop.get_token());
    EXPECT_EQ(status.code(), StatusCode::kCancelled);
    EXPECT_LT(progress_, plans[0].size);
    EXPECT_TRUE(digests_.empty());
  }
}

}  // namespace
}  // namespace reshard
