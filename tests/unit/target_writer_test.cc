// Target files, written whole through both buffers, by several writers at once.
#include "src/exec/target_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>

#include "src/os/worker_pool.h"
#include "tests/support/temporary_folder.h"

namespace reshard {
namespace {

// The byte at `offset` of the source.
char ByteAt(uint64_t offset) { return static_cast<char>(offset * 7 + offset / 251); }

class TargetWriterTest : public testing::Test {
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
    content.target = {header.size(), content_bytes};
    content.copies = {{file, 11, header.size(), content_bytes, {}}};
    plan.segments = {Literal{0, header}, content};
    return plan;
  }

  StagedFile MakeFile(const std::string& name, uint64_t size) {
    std::vector<std::string> made;
    auto folder = OutputDirectory::Create((folder_.path() / "out").string(), made);
    EXPECT_TRUE(folder.ok());
    auto file = StagedFile::Create(*folder, name, size);
    EXPECT_TRUE(file.ok()) << file.status().message();
    return std::move(*file);
  }

  // Whether the file is what a plan of MakePlan stands for.
  bool IsRight(const std::string& name, uint64_t content_bytes) const {
    const std::string bytes = ReadFile(folder_.path() / "out" / name);
    if (bytes.size() != content_bytes + 6 || !bytes.starts_with("header")) return false;
    for (size_t i = 6; i < bytes.size(); ++i) {
      if (bytes[i] != ByteAt(i - 6 + 11)) return false;
    }
    return true;
  }

  const TemporaryFolder folder_;
  SourceFiles files_{2};
};

TEST_F(TargetWriterTest, WritesFilesOfAnySize) {
  for (const uint64_t bytes :
       {uint64_t{0}, uint64_t{1}, kChunkBytes - 7, kChunkBytes - 6, kChunkBytes - 5,
        2 * kChunkBytes, 3 * kChunkBytes + 4097, 6 * kChunkBytes + 1}) {
    const TargetPlan plan = MakePlan(bytes);
    const std::string name = std::to_string(bytes);
    StagedFile file = MakeFile(name, plan.size);
    std::atomic<uint64_t> progress = 0;
    const Status status =
        WriteTarget(files_, plan, file, nullptr, [&](uint64_t done) { progress += done; }, {});
    ASSERT_TRUE(status.ok()) << status.message();
    const Status finished = file.Finish();
    ASSERT_TRUE(finished.ok()) << finished.message();
    EXPECT_EQ(progress, plan.size);
    EXPECT_TRUE(IsRight(name, bytes)) << bytes;
  }
}

TEST_F(TargetWriterTest, WritesSeveralFilesAtATime) {
  const uint64_t bytes = 3 * kChunkBytes + 17;
  const TargetPlan plan = MakePlan(bytes);
  const Status status = RunWorkers(3, 6,
                                   [&](size_t task, const std::stop_token& stop) {
                                     StagedFile file = MakeFile(std::to_string(task), plan.size);
                                     const Status written =
                                         WriteTarget(files_, plan, file, nullptr, {}, stop);
                                     return written.ok() ? file.Finish() : written;
                                   },
                                   {});
  ASSERT_TRUE(status.ok()) << status.message();
  for (size_t task = 0; task < 6; ++task) EXPECT_TRUE(IsRight(std::to_string(task), bytes));
}

TEST_F(TargetWriterTest, EndsWhenTheSourceFails) {
  for (const uint64_t bytes : {uint64_t{1000}, 4 * kChunkBytes}) {
    TargetPlan plan = MakePlan(bytes);
    std::get<Content>(plan.segments[1]).copies[0].source_offset = 12;  // one byte too far
    StagedFile file = MakeFile(std::to_string(bytes), plan.size);
    const Status status = WriteTarget(files_, plan, file, nullptr, {}, {});
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << status.message();
    EXPECT_EQ(file.Finish().code(), StatusCode::kInternal);
  }
}

TEST_F(TargetWriterTest, EndsWhenTheTargetFails) {
  const TargetPlan plan = MakePlan(4 * kChunkBytes);
  StagedFile file = MakeFile("small", kChunkBytes + 1);  // takes no second chunk
  const Status status = WriteTarget(files_, plan, file, nullptr, {}, {});
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), testing::HasSubstr("out/small: "));
}

TEST_F(TargetWriterTest, StopsBetweenChunks) {
  for (const uint64_t bytes : {uint64_t{1000}, 6 * kChunkBytes}) {
    const TargetPlan plan = MakePlan(bytes);
    StagedFile file = MakeFile(std::to_string(bytes), plan.size);
    std::stop_source stop;
    if (bytes == 1000) stop.request_stop();
    const Status status = WriteTarget(
        files_, plan, file, nullptr, [&](uint64_t) { stop.request_stop(); }, stop.get_token());
    EXPECT_EQ(status.code(), StatusCode::kCancelled);
    EXPECT_LT(file.written(), plan.size);
  }
}

}  // namespace
}  // namespace reshard
