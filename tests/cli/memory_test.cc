// How much memory conversions and comparisons take, whatever the size of the tensors: the program
// itself, looked at from outside.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/checkpoint_bytes.h"
#include "tests/support/measured_program.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"

namespace reshard::memory_test {
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

// Many small things: parameters, layouts, ranks. What is held of them counts, and no more than the
// limit is.
class ManySmallTest : public testing::Test {
 protected:
  // Expects that the run ends well within `limit`, and that it knows what it took.
  void ExpectWithin(uint64_t limit, const std::string& source_strategy) {
    const std::string root = folder_.path().string();
    std::vector<std::string> arguments = {"convert",
                                          root + "/src",
                                          root + "/dst",
                                          "--dst-strategy",
                                          root + "/dst.ckpt",
                                          "--memory-limit",
                                          std::to_string(limit >> 20) + "M",
                                          "--json"};
    if (!source_strategy.empty()) {
      arguments.insert(arguments.end(), {"--src-strategy", source_strategy});
    }
    const Outcome outcome = RunReshard(arguments);
    EXPECT_EQ(outcome.exit, 0) << outcome.error;
    EXPECT_LE(outcome.peak, limit);
    const auto found = nlohmann::json::parse(outcome.output);
    const auto anonymous = found["anonymous_peak"].get<double>();
    // The report is printed behind the call.
    EXPECT_GE(anonymous, 0.9 * static_cast<double>(outcome.peak) - static_cast<double>(kMiB));
    EXPECT_LE(anonymous, 1.1 * static_cast<double>(outcome.peak));
    EXPECT_GE(found["memory_peak"].get<double>(), 0.9 * anonymous);
    EXPECT_LE(found["memory_peak"].get<uint64_t>(), limit);
    EXPECT_LE(found["memory_planned"].get<uint64_t>(), limit);
    RecordProperty("rss_anon_peak", std::to_string(outcome.peak));
  }

  const TemporaryFolder folder_;
};

TEST_F(ManySmallTest, Parameters) {
  std::string bytes;
  std::vector<NamedLayout> layouts;
  for (int i = 0; i < 24'000; ++i) {
    const std::string name = "model.layers.1.feed_forward.experts." + std::to_string(i) + ".weight";
    bytes += TensorValue(name, "Int8", {2, 2}, "abcd");
    layouts.push_back({name, MakeLayout({2}, {{0, -1}})});
  }
  folder_.Write("src/rank_0/net-1_1.ckpt", bytes);
  folder_.Write("dst.ckpt", ProtobufStrategy(0, layouts));
  ExpectWithin(64 * kMiB, "");
}

TEST_F(ManySmallTest, Layouts) {
  std::vector<NamedLayout> layouts;
  for (int i = 0; i < 300'000; ++i) {
    layouts.push_back({"layer." + std::to_string(i), MakeLayout({2}, {{0, -1}})});
  }
  folder_.Write("src/rank_0/net-1_1.ckpt", TensorValue("layer.1", "Int8", {2, 2}, "abcd"));
  folder_.Write("dst.ckpt", ProtobufStrategy(0, layouts));
  ExpectWithin(28 * kMiB, "");
}

TEST_F(ManySmallTest, Ranks) {
  constexpr int64_t kRanks = 400;
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    folder_.Write("src/rank_" + std::to_string(rank) + "/net-1_1.ckpt",
                  TensorValue("w", "Int8", {1, 4}, "abcd"));
  }
  const std::string source =
      folder_.Write("src.ckpt", ProtobufStrategy(0, {{"w", MakeLayout({kRanks}, {{0, -1}})}}));
  folder_.Write("dst.ckpt", ProtobufStrategy(0, {{"w", MakeLayout({4, kRanks / 4}, {{0, -1}})}}));
  ExpectWithin(28 * kMiB, source);
}

TEST_F(ManySmallTest, RefusesBeforeItTakesMore) {
  std::string bytes;
  std::vector<NamedLayout> layouts;
  for (int i = 0; i < 80'000; ++i) {
    const std::string name = "layer." + std::to_string(i);
    bytes += TensorValue(name, "Int8", {2, 2}, "abcd");
    layouts.push_back({name, MakeLayout({2}, {{0, -1}})});
  }
  const std::string root = folder_.path().string();
  folder_.Write("src/rank_0/net-1_1.ckpt", bytes);
  folder_.Write("dst.ckpt", ProtobufStrategy(0, layouts));
  for (const std::string command : {"plan", "convert"}) {
    const Outcome outcome = RunReshard({command, root + "/src", root + "/dst", "--dst-strategy",
                                        root + "/dst.ckpt", "--memory-limit", "40M"});
    EXPECT_EQ(outcome.exit, 5) << outcome.error;
    EXPECT_LE(outcome.peak, 40 * kMiB);
    EXPECT_FALSE(fs::exists(folder_.path() / "dst"));
  }
}

}  // namespace
}  // namespace reshard::memory_test
