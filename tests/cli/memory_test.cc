// How much memory conversions and comparisons take, whatever the size of the tensors: the program
// itself, looked at from outside.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/checkpoint_bytes.h"
#include "tests/support/measured_program.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"

namespace reshard {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kRowBytes = 16384;  // 4096 columns of Float32

struct Tensors {
  uint64_t bytes;  // of each
  int count;
};

class MemoryTest : public testing::TestWithParam<Tensors> {
 protected:
  // Makes a checkpoint of two ranks that hold the halves of each tensor's rows, its content a hole,
  // and strategies that cut the rows, or the columns, in two.
  void MakeSource(const Tensors& tensors) {
    const auto rows = static_cast<int64_t>(tensors.bytes / kRowBytes);
    std::vector<NamedLayout> by_rows;
    std::vector<NamedLayout> by_columns;
    std::vector<std::string> headers;
    for (int i = 0; i < tensors.count; ++i) {
      const std::string name = "w" + std::to_string(i);
      by_rows.push_back({name, MakeLayout({2}, {{0, -1}})});
      by_columns.push_back({name, MakeLayout({2}, {{-1, 0}})});
      headers.push_back(TensorValueHeader(name, "Float32", {rows / 2, 4096}, tensors.bytes / 2));
    }
    folder_.Write("rows.ckpt", ProtobufStrategy(0, by_rows));
    folder_.Write("columns.ckpt", ProtobufStrategy(0, by_columns));
    uint64_t size = 0;
    for (const std::string& header : headers) size += header.size() + tensors.bytes / 2;
    for (const std::string file : {"src/rank_0/net-1_1.ckpt", "src/rank_1/net-1_1.ckpt"}) {
      uint64_t offset = 0;
      for (const std::string& header : headers) {
        folder_.WriteSparse(file, size, offset, header);
        offset += header.size() + tensors.bytes / 2;
      }
    }
  }

  Outcome Convert(uint64_t data_limit) {
    const std::string root = folder_.path().string();
    return RunReshard({"convert", root + "/src", root + "/dst", "--src-strategy",
                       root + "/rows.ckpt", "--dst-strategy", root + "/columns.ckpt", "-q"},
                      {.data = data_limit});
  }

  uint64_t OutputBytes() const {
    uint64_t bytes = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path() / "dst")) {
      if (entry.path().extension() == ".ckpt") bytes += entry.file_size();
    }
    return bytes;
  }

  TemporaryFolder folder_;
};

TEST_P(MemoryTest, DoesNotGrowWithTheTensor) {
  MakeSource(GetParam());
  const Outcome outcome = Convert(0);
  EXPECT_EQ(outcome.exit, 0);
  EXPECT_GT(outcome.peak, 0u);
  EXPECT_LE(outcome.peak, 64 * kMiB);
  EXPECT_GE(OutputBytes(), GetParam().bytes * static_cast<uint64_t>(GetParam().count));
  RecordProperty("rss_anon_peak", std::to_string(outcome.peak));
}

TEST_P(MemoryTest, NorDoComparisons) {
  MakeSource(GetParam());
  ASSERT_EQ(Convert(0).exit, 0);
  const std::string root = folder_.path().string();
  const std::string rows = root + "/rows.ckpt";
  const std::string columns = root + "/columns.ckpt";
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"digest", root + "/src", "--strategy", rows, "-q", "--json"},
           {"diff", root + "/src", root + "/dst", "--a-strategy", rows, "--b-strategy", columns,
            "--values", "-q"},
           {"verify", root + "/dst", "--against", root + "/src", "--src-strategy", rows,
            "--dst-strategy", columns, "-q"}}) {
    const Outcome outcome = RunReshard(arguments);
    EXPECT_EQ(outcome.exit, 0) << arguments[0];
    EXPECT_LE(outcome.peak, 64 * kMiB) << arguments[0];
    RecordProperty("rss_anon_peak_of_" + arguments[0], std::to_string(outcome.peak));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, MemoryTest,
                         testing::Values(Tensors{kMiB, 64}, Tensors{64 * kMiB, 4},
                                         Tensors{1024 * kMiB, 1}),
                         [](const auto& row) {
                           return std::to_string(row.param.bytes / kMiB) + "MiB";
                         });

using MemoryLimitTest = MemoryTest;

// RLIMIT_DATA counts anonymous and private writable memory, stacks of threads included, but no file
// maps.
TEST_P(MemoryLimitTest, ConvertsUnderALimitOfDataThatTheTensorExceeds) {
  MakeSource(GetParam());
  const Outcome outcome = Convert(96 * kMiB);
  EXPECT_EQ(outcome.exit, 0);
  EXPECT_GE(OutputBytes(), GetParam().bytes);
}

TEST_P(MemoryLimitTest, SaysThatMemoryIsShort) {
  MakeSource(GetParam());
  for (const uint64_t limit : {6 * kMiB, 14 * kMiB}) {  // no thread; no staging buffers
    const Outcome outcome = Convert(limit);
    EXPECT_EQ(outcome.exit, 5) << limit;
    EXPECT_FALSE(fs::exists(folder_.path() / "dst")) << limit;
  }
}

INSTANTIATE_TEST_SUITE_P(Limits, MemoryLimitTest, testing::Values(Tensors{256 * kMiB, 1}),
                         [](const auto&) { return "256MiB"; });

}  // namespace
}  // namespace reshard
