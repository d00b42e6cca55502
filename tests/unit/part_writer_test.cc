// Target files, written by several lanes at once: the right bytes whatever the lanes, one file used
// by all of them, groups in lockstep, and the first failure ends everything.
#include "src/write/part_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "src/record/block_record.h"
#include "src/record/part_record.h"
#include "src/write/chunk_feed.h"
#include "tests/support/temporary_folder.h"

namespace reshard::part_writer_test {
namespace {

using testing::HasSubstr;

// The source repeats itself after so many bytes.
constexpr size_t kPeriod = 1'000'003;

// The byte at `offset` of the source.
char ByteAt(uint64_t offset) {
  offset %= kPeriod;
  return static_cast<char>(offset * 7 + offset / 251);
}

// Files in a folder, named by their numbers.
class FolderSink final : public PartSink {
 public:
  FolderSink(std::string folder, const std::vector<TargetPlan>& plans)
      : folder_(std::move(folder)), plans_(plans) {}

  Result<bool> IsKept(const FilePart& part, const std::stop_token& /*stop*/) const override {
    return kept.contains(part.file);
  }
  Result<StagedFile> Create(const FilePart& part, const WriteOptions& options) const override {
    if (part.file == fails_to_open) return NotFoundError("no such part");
    std::vector<std::string> made;
    auto folder = OutputDirectory::Create(folder_, made);
    if (!folder.ok()) return folder.status();
    const uint64_t size = size_of_all.value_or(plans_[part.file].size);
    return StagedFile::OpenPart(*folder, std::to_string(part.file), size,
                                size_of_all ? ByteRange{0, size} : part.range, options);
  }
  Status Finish(const FilePart& part, StagedFile file, const FinishedPart& finished,
                const std::stop_token& /*stop*/) const override {
    if (part.file == fails_to_finish) return NotFoundError("no such part");
    std::string bytes;
    const Status recorded = finished.record(nullptr, [&](std::string_view piece) {
      bytes += piece;
      return Status();
    });
    if (!recorded.ok()) return recorded;
    const std::scoped_lock lock(mutex);
    records[{part.file, part.range.offset}] = std::move(bytes);
    return file.Finish();
  }

  std::set<size_t> kept;
  std::optional<size_t> fails_to_open;
  std::optional<size_t> fails_to_finish;
  std::optional<uint64_t> size_of_all;
  mutable std::mutex mutex;  // guards records
  // By file and first byte.
  mutable std::map<std::pair<size_t, uint64_t>, std::string> records;

 private:
  const std::string folder_;
  const std::vector<TargetPlan>& plans_;
};

class PartWriterTest : public testing::Test {
 protected:
  // A plan of `content_bytes` of the source behind a header.
  TargetPlan MakePlan(uint64_t content_bytes) {
    std::string bytes(content_bytes + 11, '\0');
    // One by one the first of them only: most builds of tests are not optimized.
    const size_t first = std::min<size_t>(bytes.size(), kPeriod);
    for (size_t i = 0; i < first; ++i) bytes[i] = ByteAt(i);
    for (size_t i = first; i < bytes.size(); i += first) {
      std::memcpy(bytes.data() + i, bytes.data(), std::min(first, bytes.size() - i));
    }
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
    if (content_bytes > 0) plan.sources = {file};
    return plan;
  }

  // Work that writes `plans`, a file of each, all in one group.
  PartWork MakeWork(const std::vector<TargetPlan>& plans) {
    PartWork work;
    work.groups.emplace_back();
    for (size_t i = 0; i < plans.size(); ++i) {
      work.parts.push_back({i, {0, plans[i].size}});
      work.groups[0].push_back(i);
      for (const FileId file : plans[i].sources)
        work.sources[file] = {.path = "source-" + std::to_string(file)};
    }
    work.plan = [&plans](size_t file) {
      return Result<PlanHandle>(std::make_shared<const TargetPlan>(plans[file]));
    };
    work.fingerprint = "0123";
    work.progress = [this](uint64_t bytes, bool) { progress_ += bytes; };
    return work;
  }

  FolderSink MakeSink(const std::vector<TargetPlan>& plans) const {
    return {Out().string(), plans};
  }
  std::filesystem::path Out() const { return folder_.path() / "out"; }

  Status Write(const PartWork& work, const PartSink& sink, const LaneOptions& lanes) {
    return WriteParts(files_, work, sink, lanes, counts_, {});
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
  WriteCounts counts_;
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
  decltype(FolderSink::records) expected;
  for (const size_t lanes : std::initializer_list<size_t>{1, 3, 8}) {
    for (const bool writer_threads : {false, true}) {
      for (const bool grouped : {false, true}) {
        PartWork work = MakeWork(plans);
        if (!grouped) {
          work.groups.clear();
          for (size_t i = 0; i < plans.size(); ++i) work.groups.push_back({i});
        }
        progress_ = 0;
        const FolderSink sink = MakeSink(plans);
        const Status status = Write(
            work, sink, {.lanes = lanes, .writer_threads = writer_threads, .chunk_bytes = kSmall});
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(progress_, bytes);
        if (expected.empty()) expected = sink.records;
        EXPECT_EQ(sink.records, expected);
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
  const std::vector<TargetPlan> plans = {MakePlan(content_bytes)};
  const TargetPlan& plan = plans[0];
  PartWork work = MakeWork(plans);
  work.parts = {
      {0, {kDigestBlockBytes, kDigestBlockBytes}},
      {0, {0, kDigestBlockBytes}},
      {0, {2 * kDigestBlockBytes, plan.size - 2 * kDigestBlockBytes}},
  };
  work.groups = {{0, 1}, {2}};
  const FolderSink sink = MakeSink(plans);
  const Status status = Write(work, sink, {.lanes = 3});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(IsRight("0", content_bytes));
  ASSERT_EQ(sink.records.size(), 3U);
  std::vector<std::string> blocks;
  Digest128 sum;
  for (const auto& [part, bytes] : sink.records) {
    const auto record = ParseBlockRecord(bytes, "record");
    ASSERT_TRUE(record.ok()) << record.status().message();
    ASSERT_EQ(record->blocks.size(), 1U);
    blocks.push_back(record->blocks[0]);
    ASSERT_EQ(record->values.size(), 1U);
    sum ^= *ParseHex(record->values[0].value.digest);
  }

  TargetDigest whole(plan);
  std::string bytes = ReadFile(Out() / "0");
  ChunkDigest sums;
  sums.Begin(plan, {0, bytes.size()});
  sums.AddTarget(0, std::as_bytes(std::span(bytes)));
  whole.AddChunk(std::as_writable_bytes(std::span(bytes)), sums);
  EXPECT_EQ(sum, whole.content(1));
  EXPECT_EQ(whole.blocks(), blocks);
}

// The lanes meet: each chunk is held until as many threads as there are lanes have written one.
TEST_F(PartWriterTest, OneFileUsesAllLanes) {
  constexpr size_t kLanes = 4;
  const std::vector<TargetPlan> plans = {MakePlan(2 * kLanes * kChunkBytes)};
  PartWork work = MakeWork(plans);
  std::mutex mutex;
  std::condition_variable met;
  std::set<std::thread::id> threads;
  work.progress = [&](uint64_t, bool) {
    std::unique_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
    met.notify_all();
    EXPECT_TRUE(
        met.wait_for(lock, std::chrono::seconds(60), [&] { return threads.size() == kLanes; }));
  };
  const Status status = Write(work, MakeSink(plans), {.lanes = kLanes, .writer_threads = false});
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(threads.size(), kLanes);
}

TEST_F(PartWriterTest, FilesOfAGroupAdvanceTogether) {
  const std::vector<TargetPlan> plans = {MakePlan(4 * kChunkBytes), MakePlan(8 * kChunkBytes),
                                         MakePlan(8 * kChunkBytes)};
  const PartWork work = MakeWork(plans);
  const FolderSink sink = MakeSink(plans);
  ChunkFeed feed(files_, work, sink, {.lanes = 1}, counts_);
  std::map<const TargetPart*, double> done;  // how much of each part was handed out
  double widest = 0;
  while (const auto chunk = feed.Take()) {
    const TargetPart& part = chunk->part();
    if (done.size() == plans.size()) {
      const auto [least, most] =
          std::minmax_element(done.begin(), done.end(),
                              [](const auto& a, const auto& b) { return a.second < b.second; });
      widest = std::max(widest, most->second - least->second);
    }
    done[&part] =
        static_cast<double>(chunk->range().end()) / static_cast<double>(part.range.length);
  }
  EXPECT_EQ(done.size(), plans.size());
  EXPECT_GT(widest, 0);
  EXPECT_LE(widest, 0.26);  // a chunk of the smallest
}

TEST_F(PartWriterTest, ChunksOfLargeGroupsShareTheWindows) {
  const std::vector<TargetPlan> plans = {MakePlan(3 << 20), MakePlan(3 << 20), MakePlan(3 << 20)};
  for (const auto& [window_bytes, largest] : std::map<uint64_t, uint64_t>{
           {12 << 20, 1 << 20}, {1 << 20, 256 << 10}, {uint64_t{64} << 20, kChunkBytes}}) {
    PartWork work = MakeWork(plans);
    uint64_t most = 0;
    work.progress = [&](uint64_t bytes, bool) { most = std::max(most, bytes); };
    const Status status = Write(
        work, MakeSink(plans), {.lanes = 1, .writer_threads = false, .window_bytes = window_bytes});
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(most, std::min(largest, plans[0].size));
    std::filesystem::remove_all(folder_.path() / "out");
  }
}

TEST_F(PartWriterTest, LeavesOutPartsThatAreThere) {
  const std::vector<TargetPlan> plans = {MakePlan(10), MakePlan(kChunkBytes), MakePlan(20)};
  PartWork work = MakeWork(plans);
  std::map<bool, uint64_t> progress;  // by whether it was kept
  std::mutex mutex;
  work.progress = [&](uint64_t bytes, bool kept) {
    const std::scoped_lock lock(mutex);
    progress[kept] += bytes;
  };
  work.groups = {{0}, {1, 2}};
  FolderSink sink = MakeSink(plans);
  sink.kept = {0, 2};
  const Status status = Write(work, sink, {});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(sink.records.size(), 1u);
  EXPECT_EQ(counts_.kept, 2U);
  EXPECT_EQ(counts_.content_bytes, kChunkBytes);
  EXPECT_EQ(counts_.gathered, plans[1].size);
  EXPECT_EQ(counts_.direct + counts_.buffered, 1U);
  EXPECT_EQ(progress[true], plans[0].size + plans[2].size);
  EXPECT_EQ(progress[false], plans[1].size);
  EXPECT_TRUE(IsRight("1", kChunkBytes));
}

TEST_F(PartWriterTest, EndsWhenTheSourceFails) {
  for (const uint64_t bytes : {uint64_t{1000}, 4 * kChunkBytes}) {
    std::vector<TargetPlan> plans = {MakePlan(bytes), MakePlan(bytes)};
    std::get<Content>(plans[1].segments[1]).copies[0].source_offset = 12;  // one byte too far
    for (const size_t lanes : std::initializer_list<size_t>{1, 4}) {
      const FolderSink sink = MakeSink(plans);
      const Status status = Write(MakeWork(plans), sink, {.lanes = lanes});
      EXPECT_EQ(status.code(), StatusCode::kCorrupt) << status.message();
      EXPECT_FALSE(sink.records.contains({1, 0}));
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
      const auto count = static_cast<int64_t>(content.target.length);
      const PlacedBox shard = {{{0}, {count}}, 11};
      content.geometry = {{count}, {{0}, {count}}, {shard, shard}};
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
        const Status status =
            Write(work, MakeSink(plans),
                  {.lanes = lanes, .writer_threads = lanes % 4 == 0, .chunk_bytes = chunk_bytes});
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
  work.digests = false;
  FolderSink sink = MakeSink(plans);
  sink.size_of_all = kChunkBytes + 1;  // takes no second chunk
  for (const bool writer_threads : {false, true}) {
    const Status status = Write(work, sink, {.lanes = 2, .writer_threads = writer_threads});
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    EXPECT_THAT(status.message(), HasSubstr("out/0: "));
    std::filesystem::remove_all(folder_.path() / "out");
  }
}

TEST_F(PartWriterTest, EndsWhenAPartCannotBeOpenedOrFinished) {
  const std::vector<TargetPlan> plans = {MakePlan(100), MakePlan(3 * kChunkBytes), MakePlan(0)};
  for (size_t bad = 0; bad < plans.size(); ++bad) {
    for (const bool at_open : {true, false}) {
      FolderSink sink = MakeSink(plans);
      (at_open ? sink.fails_to_open : sink.fails_to_finish) = bad;
      const Status status = Write(MakeWork(plans), sink, {.lanes = 3});
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
    work.progress = [&](uint64_t done, bool) {
      progress_ += done;
      stop.request_stop();
    };
    const FolderSink sink = MakeSink(plans);
    const Status status = WriteParts(files_, work, sink, {}, counts_, stop.get_token());
    EXPECT_EQ(status.code(), StatusCode::kCancelled);
    EXPECT_LT(progress_, plans[0].size);
    EXPECT_TRUE(sink.records.empty());
  }
}

}  // namespace
}  // namespace reshard::part_writer_test
