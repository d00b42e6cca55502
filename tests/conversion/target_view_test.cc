// TargetView: what it refuses, how it is read by many threads, and what it tells of its sources.
// That its bytes are those of Convert, ExpectViewHasFiles holds in the tests of conversions.

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "reshard/convert.h"
#include "reshard/encryption.h"
#include "reshard/target_view.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/view_check.h"

namespace reshard::target_view_test {
namespace {

using testing::HasSubstr;

const std::vector<NamedLayout> kRows = {{"w", MakeLayout({4}, {{0, -1}})}};
const std::vector<NamedLayout> kColumns = {{"w", MakeLayout({4}, {{-1, 0}})}};

// Four ranks of a matrix of so many rows, to be cut the other way.
class SampleFolder : public ConversionFolder {
 public:
  explicit SampleFolder(int64_t rows = 64) : ConversionFolder(kRows, kColumns) {
    WriteStage(
        {MakeTensor("w", DType::kFloat32, {rows, 256}), MakeTensor("step", DType::kInt64, {})},
        kRows, 4);
  }
};

TargetView Open(const ConversionFolder& folder, bool keep_pages = false) {
  auto view = TargetView::Open(folder.options(), keep_pages);
  EXPECT_TRUE(view.ok()) << view.status().message();
  return *std::move(view);
}

std::string ReadWhole(const TargetView& view, size_t file) {
  std::string bytes(view.files()[file].size, '\0');
  const Status status = view.Read(file, 0, std::as_writable_bytes(std::span(bytes)));
  EXPECT_TRUE(status.ok()) << status.message();
  return bytes;
}

TEST(TargetViewTest, WritesNothingAndTellsWhatPlanTells) {
  SampleFolder folder;
  const TargetView view = Open(folder);
  EXPECT_FALSE(std::filesystem::exists(folder.options().target.folder));
  const auto plan = Plan(folder.options());
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_EQ(view.files().size(), plan->targets.size());
  for (size_t i = 0; i < plan->targets.size(); ++i) {
    EXPECT_EQ(view.files()[i].path, plan->targets[i].path);
    EXPECT_EQ(view.files()[i].size, plan->targets[i].size);
    EXPECT_EQ(view.files()[i].source_ranks, plan->targets[i].source_ranks);
  }
  EXPECT_EQ(view.findings().parameters, plan->parameters);
  EXPECT_EQ(view.findings().warnings.size(), plan->warnings.size());
}

TEST(TargetViewTest, NeedsNoTargetFolder) {
  SampleFolder folder;
  ASSERT_TRUE(Convert(folder.options()).ok());
  const std::string expected = ReadFile(folder.options().target.folder + "/" + RankPath(1));
  folder.options().target.folder.clear();
  EXPECT_EQ(ReadWhole(Open(folder), 1).size(), expected.size());
}

TEST(TargetViewTest, ThreadsReadAtTheSameTimeWithFewPlansInMemory) {
  SampleFolder folder(4096);
  ASSERT_TRUE(Convert(folder.options()).ok());
  std::vector<std::string> expected;
  for (int64_t rank = 0; rank < 4; ++rank) {
    expected.push_back(ReadFile(folder.options().target.folder + "/" + RankPath(rank)));
  }
  folder.options().target.states_crc = true;  // found by whichever thread comes first
  folder.options().memory_limit = uint64_t{32} << 20;
  const TargetView view = Open(folder);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 40; ++i) {
        const size_t file = (t + i) % expected.size();
        const size_t offset = (t * 7919 + i * 104729) % expected[file].size();
        const size_t length = std::min<size_t>(70'001, expected[file].size() - offset);
        if (!view.Prefetch(file, {offset, length}).ok()) ++wrong;
        std::string piece(length, '\0');
        if (!view.Read(file, offset, std::as_writable_bytes(std::span(piece))).ok() ||
            piece != expected[file].substr(offset, length)) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// A limit is for the view alone: its process may hold more.
TEST(TargetViewTest, ReadsWhateverMemoryTheProcessHolds) {
  // So many that planning asks for memory on the way.
  std::vector<NamedLayout> rows;
  std::vector<TestTensor> tensors;
  for (int i = 0; i < 1500; ++i) {
    const std::string name = "w" + std::to_string(i);
    rows.push_back({name, MakeLayout({4}, {{0, -1}})});
    tensors.push_back(MakeTensor(name, DType::kFloat32, {8, 8}));
  }
  ConversionFolder folder(rows, rows);
  folder.WriteStage(tensors, rows, 4);
  folder.options().memory_limit = uint64_t{32} << 20;
  const TargetView view = Open(folder);
  const std::vector<char> held(size_t{64} << 20, 'x');
  for (size_t file = 0; file < 4; ++file) EXPECT_FALSE(ReadWhole(view, file).empty());
  EXPECT_EQ(held.back(), 'x');
}

TEST(TargetViewTest, RefusesBytesThatTheFileHasNot) {
  SampleFolder folder;
  const TargetView view = Open(folder);
  const uint64_t size = view.files()[0].size;
  std::vector<std::byte> out(16);
  EXPECT_EQ(view.Read(0, size - 15, out).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(view.Read(0, UINT64_MAX, out).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(view.Read(4, 0, out).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(view.Prefetch(0, {1, UINT64_MAX}).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(view.Read(0, size - 16, out).ok());
  EXPECT_TRUE(view.Read(0, size, {}).ok());
}

TEST(TargetViewTest, HasNoEncryptedBytes) {
  SampleFolder folder;
  const std::string key = "0123456789abcdef";
  folder.options().target.encryption = TargetSpec::EncryptionMode::kAesGcm;
  folder.options().target.encryption_key = *EncryptionKey::FromBytes(std::as_bytes(std::span(key)));
  const auto view = TargetView::Open(folder.options());
  EXPECT_EQ(view.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(view.status().message(), HasSubstr("`encryption`"));
}

TEST(TargetViewTest, TellsThatASourceHasChanged) {
  SampleFolder folder;
  const TargetView view = Open(folder);
  EXPECT_TRUE(view.VerifyUnchanged().ok());
  std::ofstream(folder.options().source.path + "/" + RankPath(2), std::ios::app) << "more";
  EXPECT_EQ(view.VerifyUnchanged().code(), StatusCode::kChanged);
  EXPECT_EQ(view.VerifyUnchanged(3).code(), StatusCode::kChanged);
  EXPECT_EQ(view.VerifyUnchanged(4).code(), StatusCode::kInvalidArgument);
}

// What a stream passes on, in how many pieces, and how it ended.
struct Streamed {
  std::string bytes;
  int pieces = 0;
  Status status;
};

Streamed StreamOf(
    const TargetView& view, size_t file, ByteRange range,
    const std::function<Status()>& at_each = [] { return Status(); }) {
  Streamed streamed;
  const auto done = view.Stream(file, range, [&](std::span<const std::byte> bytes) -> Status {
    streamed.bytes.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    ++streamed.pieces;
    return at_each();
  });
  streamed.status = done.status();
  return streamed;
}

ByteRange Whole(const TargetView& view, size_t file) { return {0, view.files()[file].size}; }

// In as small chunks as there are.
TargetView OpenSmall(ConversionFolder& folder, int jobs = 2) {
  folder.options().run.jobs = jobs;
  folder.options().memory_limit = uint64_t{28} << 20;
  return Open(folder);
}

// Files of some chunks.
constexpr int64_t kStreamedRows = 16384;

TEST(TargetViewTest, StreamsComeInOrderWhateverTheThreads) {
  SampleFolder folder(kStreamedRows);
  for (const int jobs : {1, 4}) {
    const TargetView view = OpenSmall(folder, jobs);
    const std::string whole = ReadWhole(view, 3);
    const Streamed all = StreamOf(view, 3, Whole(view, 3));
    EXPECT_TRUE(all.status.ok()) << all.status.message();
    EXPECT_TRUE(all.bytes == whole);
    EXPECT_GT(all.pieces, 2);
    for (const ByteRange range : {ByteRange{500'001, 1'000'003}, ByteRange{whole.size(), 0}}) {
      const Streamed some = StreamOf(view, 3, range);
      EXPECT_TRUE(some.status.ok()) << some.status.message();
      EXPECT_TRUE(some.bytes == whole.substr(range.offset, range.length)) << range.offset;
    }
    EXPECT_EQ(StreamOf(view, 3, {1, whole.size()}).status.code(), StatusCode::kInvalidArgument);
  }
}

TEST(TargetViewTest, AStreamEndsWithWhatItsTakerReturns) {
  SampleFolder folder(kStreamedRows);
  const TargetView view = OpenSmall(folder);
  int calls = 0;
  const Streamed streamed = StreamOf(view, 0, Whole(view, 0), [&] {
    ++calls;
    return calls == 2 ? IoError("no more") : Status();
  });
  EXPECT_EQ(streamed.status.message(), "no more");
  EXPECT_EQ(streamed.pieces, 2);
}

TEST(TargetViewTest, AStreamOfSourcesThatChangeIsRefused) {
  for (const bool whole : {true, false}) {
    SampleFolder folder;
    const TargetView view = Open(folder);
    const Streamed streamed =
        StreamOf(view, 0, whole ? Whole(view, 0) : ByteRange{16, 16}, [&]() -> Status {
          std::ofstream(folder.options().source.path + "/" + RankPath(2), std::ios::app) << "more";
          return {};
        });
    EXPECT_EQ(streamed.status.code(), StatusCode::kChanged) << whole;
  }
}

TEST(TargetViewTest, AStopRequestEndsAStream) {
  SampleFolder folder(kStreamedRows);
  std::stop_source stop;
  folder.options().run.stop = stop.get_token();
  const TargetView view = OpenSmall(folder);
  const Streamed streamed = StreamOf(view, 0, Whole(view, 0), [&]() -> Status {
    stop.request_stop();
    return {};
  });
  EXPECT_EQ(streamed.status.code(), StatusCode::kCancelled);
  EXPECT_EQ(streamed.pieces, 1);
}

TEST(TargetViewTest, OnlyFilesOfChangedSourcesHaveChanged) {
  ConversionFolder folder(kRows, kRows);
  folder.WriteStage({MakeTensor("w", DType::kFloat32, {64, 256})}, kRows, 4);
  const TargetView view = Open(folder, /*keep_pages=*/true);
  std::ofstream(folder.options().source.path + "/" + RankPath(2), std::ios::app) << "more";
  for (size_t file = 0; file < 4; ++file) {
    const bool reads_it = view.files()[file].source_ranks == std::vector<int64_t>{2};
    EXPECT_EQ(view.VerifyUnchanged(file).ok(), !reads_it) << file;
    EXPECT_EQ(reads_it, file == 2);
  }
}

TEST(TargetViewTest, AStopRequestEndsReads) {
  SampleFolder folder;
  std::stop_source stop;
  folder.options().run.stop = stop.get_token();
  const TargetView view = Open(folder);
  stop.request_stop();
  std::vector<std::byte> out(16);
  EXPECT_EQ(view.Read(0, 0, out).code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace reshard::target_view_test
