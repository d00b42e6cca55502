// Parameters so small that their headers lie everywhere: a file is read from the disk once,
// although it is indexed first.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "reshard/compare.h"
#include "reshard/convert.h"
#include "tests/support/bytes_read.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/memory_pages.h"
#include "tests/support/temporary_folder.h"

namespace reshard::dense_headers_test {
namespace {

// Together more than the windows of a conversion hold.
constexpr size_t kParameters = 24'000;
constexpr size_t kBytesOfEach = 4096;

class DenseHeadersTest : public testing::Test {
 protected:
  DenseHeadersTest() {
    std::string bytes;
    for (size_t i = 0; i < kParameters; ++i) {
      bytes += TensorValue("layer." + std::to_string(i), "UInt8", {int64_t{kBytesOfEach}},
                           std::string(kBytesOfEach, static_cast<char>(i)));
    }
    size_ = bytes.size();
    path_ = folder_.Write("full.ckpt", bytes);
  }

  // Returns the fewest bytes that the disk was asked for in three runs with nothing in memory: the
  // kernel may take pages away at any time, but not each time.
  uint64_t LeastFromDisk(const std::function<void()>& run) const {
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 3; ++i) {
      DropPages(path_);
      EXPECT_EQ(CachedPages(path_), 0U) << "the build folder lies in memory";
      const uint64_t before = BytesFromDisk();
      run();
      least = std::min(least, BytesFromDisk() - before);
    }
    return least;
  }

  // In the build folder, because the folder for temporary files may lie in memory.
  const TemporaryFolder folder_{std::filesystem::path(RESHARD_BIN_DIR).parent_path()};
  std::string path_;
  uint64_t size_ = 0;
};

TEST_F(DenseHeadersTest, ADigestReadsThemOnce) {
  ContentOptions options;
  options.source.path = path_;
  const uint64_t read = LeastFromDisk([&] {
    const auto report = DigestCheckpoint(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->bytes_read, size_);
    EXPECT_EQ(report->parameters.size(), kParameters);
  });
  EXPECT_GE(read, size_);
  EXPECT_LE(read, size_ + size_ / 8);
  // Nothing stays in the page cache.
  EXPECT_LE(CachedPages(path_), 16U);
}

TEST_F(DenseHeadersTest, ADifferenceReadsThemOnce) {
  DiffOptions options;
  options.source.path = options.b.path = path_;
  const uint64_t read = LeastFromDisk([&] {
    const auto report = Diff(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_TRUE(report->equal());
  });
  EXPECT_GE(read, size_);
  EXPECT_LE(read, size_ + size_ / 8);
}

TEST_F(DenseHeadersTest, AConversionReadsThemOnce) {
  ConvertOptions options;
  options.source.path = path_;
  options.target.folder = folder_.path() / "converted";
  options.target.format = TargetFormat::kHuggingFace;
  options.force = true;
  const auto convert = [&] {
    const auto report = Convert(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_LE(report->memory_peak, report->memory_limit);
  };
  const uint64_t read = LeastFromDisk(convert);
  EXPECT_GE(read, size_);
  EXPECT_LE(read, size_ + size_ / 8);
  EXPECT_LE(CachedPages(path_), 16U);

  // Nothing stays beside the windows where memory is short.
  options.memory_limit = uint64_t{64} << 20;
  EXPECT_GE(LeastFromDisk(convert), size_ + size_ / 2);
  EXPECT_LE(CachedPages(path_), 16U);
}

}  // namespace
}  // namespace reshard::dense_headers_test
