// Gathering: chosen block copies and plans against bytes written down beside them.
#include "src/write/gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "src/os/file_pages.h"
#include "tests/support/memory_pages.h"
#include "tests/support/says.h"
#include "tests/support/temporary_folder.h"

namespace reshard::gather_test {
namespace {

// `size` bytes without a short period.
std::string Noise(size_t size, uint32_t seed) {
  std::string bytes(size, '\0');
  uint32_t state = seed;
  for (char& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

// The runs of a copy, one after the other, as offsets in source and target.
std::vector<Run> NaiveRuns(const BlockCopy& copy) {
  std::vector<Run> runs = {{copy.source_offset, copy.target_offset, copy.run_length}};
  for (const CopyDim& dim : copy.dims) {
    std::vector<Run> repeated;
    for (const Run& run : runs) {
      for (uint64_t i = 0; i < dim.count; ++i) {
        repeated.push_back({run.source_offset + i * dim.source_stride,
                            run.target_offset + i * dim.target_stride, run.length});
      }
    }
    runs = repeated;
  }
  return runs;
}

Result<std::string> GatherString(SourceFiles& files, const std::vector<BlockCopy>& copies,
                                 uint64_t offset, size_t size) {
  std::string out(size, '#');
  const Status status = Gather(files, copies, offset, std::as_writable_bytes(std::span(out)));
  if (!status.ok()) return status;
  return out;
}

class GatherTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  SourceFiles files_{4};
};

TEST_F(GatherTest, CopiesRunsOfEveryLength) {
  const std::string source = Noise(1 << 20, 1);
  const FileId file = files_.Add(folder_.Write("source", source));
  for (const uint64_t length :
       std::vector<uint64_t>{1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 64, 65, 100, 4096}) {
    // Two copies whose runs alternate in the target, three loops deep.
    const std::vector<CopyDim> dims = {
        {3, 40 * length, 20 * length}, {5, 7 * length, 4 * length}, {2, 3 * length, 2 * length}};
    const std::vector<BlockCopy> copies = {{file, 11, 1000, length, dims},
                                           {file, 500000, 1000 + length, length, dims}};
    std::string expected(60 * length, '#');
    for (const BlockCopy& copy : copies) {
      for (const auto& run : NaiveRuns(copy)) {
        expected.replace(run.target_offset - 1000, run.length, source, run.source_offset,
                         run.length);
      }
    }
    const auto whole = GatherString(files_, copies, 1000, expected.size());
    ASSERT_TRUE(whole.ok()) << length << ": " << whole.status().message();
    EXPECT_TRUE(*whole == expected) << length;
    for (const size_t chunk : {size_t{1}, size_t{3}, length, length + 1, 13 * length + 5}) {
      std::string joined;
      while (joined.size() < expected.size() && (chunk > 1 || length < 65)) {
        const size_t size = std::min<size_t>(chunk, expected.size() - joined.size());
        const auto part = GatherString(files_, copies, 1000 + joined.size(), size);
        ASSERT_TRUE(part.ok()) << part.status().message();
        joined += *part;
      }
      EXPECT_TRUE(joined.empty() || joined == expected) << length << " in chunks of " << chunk;
    }
  }
}

TEST_F(GatherTest, CutsRunsThatAreLongerThanAWindow) {
  const std::string source = Noise(2 * kWindowBytes + 12345, 2);
  const FileId file = files_.Add(folder_.Write("source", source));
  const std::vector<BlockCopy> copies = {{file, 100, 0, source.size() - 100, {}}};
  const auto whole = GatherString(files_, copies, 0, source.size() - 100);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_TRUE(*whole == source.substr(100));
  const auto part = GatherString(files_, copies, 7, kWindowBytes + 1);
  ASSERT_TRUE(part.ok()) << part.status().message();
  EXPECT_TRUE(*part == source.substr(107, kWindowBytes + 1));
}

TEST_F(GatherTest, RepeatsRunsThatAreLongerThanAWindow) {
  const std::string source = Noise(3 * kWindowBytes, 3);
  const FileId file = files_.Add(folder_.Write("source", source));
  const uint64_t length = kWindowBytes + 5;
  const std::vector<BlockCopy> copies = {{file, 1, 0, length, {{2, length + 9, length}}}};
  const auto whole = GatherString(files_, copies, 0, 2 * length);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_TRUE(*whole == source.substr(1, length) + source.substr(1 + length + 9, length));
}

TEST_F(GatherTest, OpensSeveralWindowsForDistantRuns) {
  const std::string source = Noise(6 << 20, 4);
  const FileId file = files_.Add(folder_.Write("source", source));
  for (const uint64_t stride :
       std::vector<uint64_t>{100 << 10, 64 << 10, (64 << 10) + 8, (64 << 10) + 9}) {
    const std::vector<BlockCopy> copies = {{file, 3, 0, 8, {{60, stride, 8}}}};
    std::string expected;
    for (uint64_t i = 0; i < 60; ++i) expected += source.substr(3 + i * stride, 8);
    const auto whole = GatherString(files_, copies, 0, expected.size());
    ASSERT_TRUE(whole.ok()) << whole.status().message();
    EXPECT_TRUE(*whole == expected) << stride;
  }
}

TEST_F(GatherTest, ReadsBeyond4GiB) {
  const uint64_t far = (uint64_t{5} << 30) + 77;
  const std::string bytes = Noise(64, 5);
  const std::string path = folder_.WriteSparse("source", far + 64, far, bytes);
  const FileId file = files_.Add(path);
  // Rows of 6 GiB in the source; the target, too, begins beyond 4 GiB.
  const uint64_t target = uint64_t{9} << 30;
  const std::vector<BlockCopy> copies = {{file, 1, target, 4, {{2, far - 1, 4}}}};
  const auto whole = GatherString(files_, copies, target, 8);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(*whole, std::string(4, '\0') + bytes.substr(0, 4));
  const auto last = GatherString(files_, copies, target + 5, 3);
  ASSERT_TRUE(last.ok()) << last.status().message();
  EXPECT_EQ(*last, bytes.substr(1, 3));
}

TEST_F(GatherTest, RefusesGaps) {
  const FileId file = files_.Add(folder_.Write("source", "0123456789"));
  const std::vector<BlockCopy> copies = {{file, 0, 0, 4, {}}, {file, 4, 5, 4, {}}};
  EXPECT_TRUE(GatherString(files_, copies, 5, 4).ok());
  const auto gap = GatherString(files_, copies, 0, 9);
  EXPECT_EQ(gap.status().code(), StatusCode::kInternal);
  EXPECT_THAT(gap.status().message(), Naming("8 of the 9 ", "offset 0"));
}

TEST_F(GatherTest, ReportsASourceThatIsTooShort) {
  const FileId file = files_.Add(folder_.Write("source", "0123456789"));
  const auto beyond = GatherString(files_, {{file, 7, 0, 4, {}}}, 0, 4);
  EXPECT_EQ(beyond.status().code(), StatusCode::kCorrupt);
  const auto missing =
      GatherString(files_, {{files_.Add((folder_.path() / "no").string()), 0, 0, 4, {}}}, 0, 4);
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
}

// A plan of literals and contents, one of them empty, and the bytes that it stands for.
class FillTargetTest : public GatherTest {
 protected:
  void SetUp() override {
    const std::string source = Noise(1000, 6);
    const FileId file = files_.Add(folder_.Write("source", source));
    const auto add_literal = [&](const std::string& bytes) {
      plan_.segments.emplace_back(Literal{expected_.size(), bytes});
      expected_ += bytes;
    };
    const auto add_content = [&](uint64_t source_offset, uint64_t length) {
      Content content;
      content.target = {expected_.size(), length};
      if (length > 0) {
        content.copies = {
            {file, source_offset, expected_.size(), length / 2, {}},
            {file, source_offset + 300, expected_.size() + length / 2, length - length / 2, {}}};
      }
      plan_.segments.emplace_back(content);
      expected_ += source.substr(source_offset, length / 2) +
                   source.substr(source_offset + 300, length - length / 2);
    };
    add_literal("header one");
    add_content(5, 101);
    add_literal("2");
    add_content(0, 0);
    add_literal("header three");
    add_content(200, 64);
    plan_.path = "rank_0/a.ckpt";
    plan_.size = expected_.size();
  }

  TargetPlan plan_;
  std::string expected_;
};

TEST_F(FillTargetTest, FillsAnyChunk) {
  for (size_t begin = 0; begin <= expected_.size(); ++begin) {
    for (size_t end = begin; end <= expected_.size(); ++end) {
      std::string out(end - begin, '#');
      const Status status = FillTarget(files_, plan_, begin, std::as_writable_bytes(std::span(out)),
                                       nullptr, nullptr);
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_EQ(out, expected_.substr(begin, end - begin)) << begin << " to " << end;
    }
  }
}

TEST_F(FillTargetTest, RefusesBytesThatThePlanDoesNotHave) {
  std::string out(2, '#');
  const Status status = FillTarget(files_, plan_, expected_.size() - 1,
                                   std::as_writable_bytes(std::span(out)), nullptr, nullptr);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), Naming("rank_0/a.ckpt", "offset "));
}

// Two files of which a target takes 512 KiB by turns.
class PrefetchTest : public testing::Test {
 protected:
  static constexpr uint64_t kPiece = uint64_t{512} << 10;

  PrefetchTest() {
    for (const char* const name : {"a", "b"}) {
      paths_.push_back(folder_.Write(name, Noise(2 * kLargePageBytes, 1)));
      ids_.push_back(files_.Add(paths_.back()));
      DropPages(paths_.back());
    }
    for (uint64_t offset = 0; offset < 2 * kLargePageBytes; offset += kPiece) {
      for (const FileId file : ids_) {
        Content content;
        content.dtype = DType::kInt8;
        content.target = {plan_.size, kPiece};
        content.copies.push_back({.source = file,
                                  .source_offset = offset,
                                  .target_offset = plan_.size,
                                  .run_length = kPiece,
                                  .dims = {}});
        plan_.segments.emplace_back(content);
        plan_.size += kPiece;
      }
    }
  }

  // Returns the bytes of a file in the page cache when there are so many, or after a while.
  static uint64_t Cached(const std::string& path, uint64_t expected) {
    uint64_t cached = 0;
    for (int i = 0; i < 1000 && cached < expected; ++i) {
      if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      cached = CachedPages(path) * PageSize();
    }
    return cached;
  }

  // In the build folder, because the folder for temporary files may lie in memory.
  const TemporaryFolder folder_{std::filesystem::path(RESHARD_BIN_DIR).parent_path()};
  SourceFiles files_{4};
  std::vector<std::string> paths_;
  std::vector<FileId> ids_;
  TargetPlan plan_;
};

// Pages are read whole where what is filled behind the bytes goes on in them, in other parameters,
// too, and behind those of other files.
TEST_F(PrefetchTest, LargePagesAreReadWholeWhereAllOfThemIsFilled) {
  ASSERT_EQ(CachedPages(paths_[0]), 0U)
      << "the build folder lies in memory; this test needs a disk";
  const TargetBytes only{&plan_, {0, 2 * kPiece}, 2 * kPiece};
  ASSERT_TRUE(PrefetchTargets(files_, {&only, 1}).ok());
  for (const std::string& path : paths_) EXPECT_EQ(Cached(path, kPiece), kPiece);
  const TargetBytes more{&plan_, {2 * kPiece, 2 * kPiece}, plan_.size};
  ASSERT_TRUE(PrefetchTargets(files_, {&more, 1}).ok());
  for (const std::string& path : paths_) EXPECT_EQ(Cached(path, kLargePageBytes), kLargePageBytes);
}

// Of large pages of so many files there is no room for one each.
TEST_F(PrefetchTest, WhatThereIsNoRoomForIsNotRead) {
  files_.SetWindowBudget(kWindowBytes, 0);
  const TargetBytes bytes{&plan_, {0, 2 * kPiece}, plan_.size};
  ASSERT_TRUE(PrefetchTargets(files_, {&bytes, 1}).ok());
  // What lies behind them within 2 MiB of the target is not all of the pages.
  for (const std::string& path : paths_) EXPECT_EQ(Cached(path, kPiece), kPiece);
}

// What one target skips another one takes.
TEST_F(PrefetchTest, TargetsOfTheSameSourcesAreReadTogether) {
  const std::array<TargetBytes, 2> both = {
      {{&plan_, {2 * kPiece, 2 * kPiece}, 4 * kPiece}, {&plan_, {0, 2 * kPiece}, 2 * kPiece}}};
  ASSERT_TRUE(PrefetchTargets(files_, both).ok());
  for (const std::string& path : paths_) EXPECT_EQ(Cached(path, 2 * kPiece), 2 * kPiece);
}

}  // namespace
}  // namespace reshard::gather_test
