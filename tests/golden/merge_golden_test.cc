// Slices that MindSpore's merge_sliced_parameter joined, and segments that it saved.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reshard/merge.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_tensor.h"

namespace reshard::merge_golden_test {
namespace {

namespace fs = std::filesystem;

const fs::path kData = fs::path(RESHARD_TESTS_DIR) / "golden" / "data" / "apis";

// Reads a .npy file of Float32 in row-major order, as all are here.
TestTensor ReadNumpy(const fs::path& path) {
  const std::string bytes = ReadFile(path);
  constexpr size_t kHead = 10;
  const size_t length = static_cast<unsigned char>(bytes[8]) +
                        256 * static_cast<size_t>(static_cast<unsigned char>(bytes[9]));
  const std::string header = bytes.substr(kHead, length);
  EXPECT_NE(header.find("'<f4'"), std::string::npos) << header;
  EXPECT_NE(header.find("'fortran_order': False"), std::string::npos) << header;
  TestTensor tensor{"w", DType::kFloat32, {}, bytes.substr(kHead + length)};
  std::stringstream numbers(header.substr(header.find('(') + 1));
  for (int64_t size = 0; numbers >> size;) {
    tensor.shape.push_back(size);
    numbers.ignore(1);  // the comma
  }
  return tensor;
}

class MergeGoldenTest : public testing::TestWithParam<nlohmann::json> {};

TEST_P(MergeGoldenTest, GivesMindSporesTensor) {
  const auto name = GetParam()["name"].get<std::string>();
  const fs::path data = kData / "merge_sliced";
  const TemporaryFolder folder;
  MergeOptions options;
  for (int i = 0; i < GetParam()["slices"].get<int>(); ++i) {
    const std::string rank = std::to_string(i);
    const TestTensor slice = ReadNumpy(data / (name + "_slice" + rank + ".npy"));
    options.files.push_back(folder.Write("rank_" + rank + "/w.ckpt", EncodeCheckpoint({slice})));
  }
  if (GetParam()["strategy"].is_string()) {
    options.source.strategy = data / GetParam()["strategy"].get<std::string>();
  }
  options.output = folder.path() / "merged.ckpt";
  const auto report = Merge(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(ReadFile(options.output),
            EncodeCheckpoint({ReadNumpy(data / (name + "_expected.npy"))}));
}

std::vector<nlohmann::json> Cases() {
  std::ifstream file(kData / "merge_sliced" / "cases.json");
  return nlohmann::json::parse(file).get<std::vector<nlohmann::json>>();
}

INSTANTIATE_TEST_SUITE_P(MergeSliced, MergeGoldenTest, testing::ValuesIn(Cases()),
                         [](const auto& test) {
                           return test.param["name"].template get<std::string>();
                         });

TEST(MergeSegmentsGoldenTest, SegmentsBecomeOneFile) {
  const TemporaryFolder folder;
  MergeOptions options;
  options.segments = true;
  options.files = {kData / "segmented"};
  options.output = folder.path() / "whole.ckpt";
  const auto report = Merge(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(ReadFile(options.output), ReadFile(kData / "segmented" / "net_part0.ckpt") +
                                          ReadFile(kData / "segmented" / "net_part1.ckpt"));
}

}  // namespace
}  // namespace reshard::merge_golden_test
