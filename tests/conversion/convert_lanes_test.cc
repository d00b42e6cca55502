// Conversions on any number of lanes: the same files, and sources that many targets share are read
// once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "tests/support/bytes_read.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"

namespace reshard::convert_lanes_test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRows = 1536;
constexpr int64_t kColumns = 4096;
constexpr uint64_t kBytes = kRows * kColumns * 4;
constexpr int kRanks = 8;

class ConvertLanesTest : public testing::Test {
 protected:
  // One full tensor, to be cut by columns.
  ConvertLanesTest() {
    std::string content(kBytes, '\0');
    for (size_t i = 0; i < content.size(); i += 8) {
      const uint64_t word = i * 0x9E3779B97F4A7C15;
      content.replace(i, 8, reinterpret_cast<const char*>(&word), 8);
    }
    source_ = folder_.Write("full.ckpt",
                            TensorValueHeader("w", "Float32", {kRows, kColumns}, kBytes) + content);
    strategy_ = folder_.Write("columns.ckpt",
                              ProtobufStrategy(0, {{"w", MakeLayout({kRanks}, {{-1, 0}})}}));
  }

  ConvertOptions Options(const std::string& target) const {
    ConvertOptions options;
    options.source.path = source_;
    options.target.folder = (folder_.path() / target).string();
    options.target.strategy = strategy_;
    return options;
  }

  std::map<std::string, std::string> Written(const std::string& target) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path() / target)) {
      if (entry.is_regular_file()) {
        files[fs::relative(entry.path(), folder_.path() / target).string()] =
            ReadFile(entry.path());
      }
    }
    return files;
  }

  const TemporaryFolder folder_;
  std::string source_;
  std::string strategy_;
};

TEST_F(ConvertLanesTest, WritesTheSameForAnyJobsAndLimits) {
  std::map<std::string, std::string> expected;
  for (const int jobs : {1, 2, 3, 8}) {
    for (const uint64_t limit : {uint64_t{0}, uint64_t{32} << 20}) {
      ConvertOptions options = Options("out");
      options.run.jobs = jobs;
      options.memory_limit = limit;
      const auto report = Convert(options);
      ASSERT_TRUE(report.ok()) << report.status().message();
      EXPECT_LE(report->memory_planned, limit == 0 ? uint64_t{256} << 20 : limit);
      if (expected.empty()) expected = Written("out");
      EXPECT_EQ(expected.size(), 2u * kRanks + 3u);
      EXPECT_TRUE(Written("out") == expected) << jobs << " jobs, limit " << limit;
      fs::remove_all(folder_.path() / "out");
    }
  }
}

TEST_F(ConvertLanesTest, ReadsSharedSourcesOnce) {
  for (const uint64_t limit : {uint64_t{0}, uint64_t{40} << 20}) {
    ConvertOptions options = Options("out");
    options.io.source = IoChoice::Source::kPread;
    options.memory_limit = limit;
    const uint64_t before = BytesRead();
    const auto report = Convert(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_LE(BytesRead() - before, kBytes + kBytes / 4) << "limit " << limit;
    EXPECT_EQ(report->io.sources_read, 1u);
    EXPECT_EQ(report->io.sources_mapped, 0u);
    fs::remove_all(folder_.path() / "out");
  }
}

// So many parameters that plans take a good part of the memory, and cut so that each target takes
// some bytes in every window of the source.
TEST_F(ConvertLanesTest, ReadsSmallSharedParametersOnce) {
  constexpr int kParameters = 1500;
  std::string bytes;
  std::vector<NamedLayout> layouts;
  for (int i = 0; i < kParameters; ++i) {
    const std::string name = "layer." + std::to_string(i);
    bytes += TensorValue(name, "Float32", {128, 64},
                         std::string(size_t{128} * 64 * 4, static_cast<char>(i)));
    layouts.push_back({name, MakeLayout({kRanks}, {{0, -1}})});
  }
  for (const IoChoice::Source access : {IoChoice::Source::kAuto, IoChoice::Source::kPread}) {
    ConvertOptions options = Options("out");
    options.source.path = folder_.Write("small.ckpt", bytes);
    options.target.strategy = folder_.Write("rows.ckpt", ProtobufStrategy(0, layouts));
    options.io.source = access;
    options.memory_limit = uint64_t{40} << 20;
    options.record_timeline = true;
    const auto report = Convert(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->files.size(), size_t{kRanks});
    const uint64_t read = report->timeline->samples.back().bytes_read;
    EXPECT_GE(read, bytes.size());
    EXPECT_LE(read, bytes.size() + bytes.size() / 4);
    fs::remove_all(folder_.path() / "out");
  }
}

}  // namespace
}  // namespace reshard::convert_lanes_test
