// A sample made under one layout and converted to another is, byte for byte, the sample made under
// the other one.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "tests/support/temporary_folder.h"
#include "tools/gen/sample_files.h"

namespace reshard::gen_roundtrip_test {
namespace {

namespace fs = std::filesystem;

struct Cut {
  int64_t tp = 1;
  int64_t dp = 1;
  int64_t pp = 1;
  bool optimizer_sharding = false;
  MatrixCut cut = MatrixCut::kMixed;
};

struct RoundTrip {
  const char* name;
  Cut source;
  Cut target;
  bool with_source_strategy = true;
  bool with_target_strategy = true;
  DType dtype = DType::kBFloat16;
};

SampleOptions Options(const fs::path& folder, const Cut& cut, DType dtype) {
  SampleOptions options;
  options.folder = folder;
  options.model.layers = 6;
  options.model.hidden = 48;
  options.model.ffn = 96;
  options.model.vocab = 144;
  options.model.dtype = dtype;
  options.model.tp = cut.tp;
  options.model.dp = cut.dp;
  options.model.pp = cut.pp;
  options.model.optimizer_sharding = cut.optimizer_sharding;
  options.model.cut = cut.cut;
  return options;
}

class GenRoundTripTest : public testing::TestWithParam<RoundTrip> {};

TEST_P(GenRoundTripTest, ConvertedEqualsMade) {
  const RoundTrip& row = GetParam();
  const TemporaryFolder folder;
  const fs::path source = folder.path() / "source";
  const fs::path made = folder.path() / "made";
  const fs::path converted = folder.path() / "converted";
  SampleOptions made_options = Options(made, row.target, row.dtype);
  made_options.json = true;  // so that both forms of strategy files are read
  for (const SampleOptions& options : {Options(source, row.source, row.dtype), made_options}) {
    const auto bytes = WriteSample(options);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  }

  ConvertOptions options;
  options.source.path = source;
  options.target.folder = converted;
  if (row.with_source_strategy) options.source.strategy = source / "strategy";
  if (row.with_target_strategy) options.target.strategy = made / "strategy";
  const auto report = Convert(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->warnings.size(), 0U);

  const int64_t ranks = row.target.tp * row.target.dp * row.target.pp;
  EXPECT_EQ(report->files.size(), static_cast<size_t>(ranks));
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const std::string rank_folder = "rank_" + std::to_string(rank);
    const fs::path file =
        converted / rank_folder / ("checkpoint_" + std::to_string(rank) + ".ckpt");
    EXPECT_TRUE(ReadFile(file) == ReadFile(made / rank_folder / "llama-1_100.ckpt")) << file;
  }
}

constexpr Cut kFull{};
constexpr Cut kTensorParallel{.tp = 4, .dp = 2};

INSTANTIATE_TEST_SUITE_P(
    Rows, GenRoundTripTest,
    testing::Values(
        RoundTrip{"fewer_ranks", kTensorParallel, {.tp = 2, .dp = 2}},
        RoundTrip{"more_ranks", {.tp = 2}, {.tp = 8, .dp = 2}},
        RoundTrip{"the_same_layout", kTensorParallel, kTensorParallel},
        RoundTrip{"six_ranks_to_four", {.tp = 6}, {.tp = 4}},
        RoundTrip{"rows_to_columns",
                  {.tp = 4, .cut = MatrixCut::kRows},
                  {.tp = 6, .cut = MatrixCut::kColumns}},
        RoundTrip{"columns_to_rows_in_float16",
                  {.tp = 4, .cut = MatrixCut::kColumns},
                  {.tp = 3, .cut = MatrixCut::kRows},
                  true,
                  true,
                  DType::kFloat16},
        RoundTrip{"optimizer_sharding_off",
                  {.tp = 2, .dp = 4, .optimizer_sharding = true},
                  kTensorParallel},
        RoundTrip{"optimizer_sharding_on",
                  kTensorParallel,
                  {.tp = 2, .dp = 3, .optimizer_sharding = true}},
        RoundTrip{"stages_joined", {.tp = 2, .pp = 3}, kTensorParallel},
        RoundTrip{"stages_made", kTensorParallel, {.tp = 2, .dp = 2, .pp = 2}},
        RoundTrip{"two_stages_to_three",
                  {.tp = 4, .dp = 2, .pp = 2, .optimizer_sharding = true},
                  {.tp = 2, .dp = 4, .pp = 3, .optimizer_sharding = true}},
        RoundTrip{"six_stages_to_four_of_one_device", {.pp = 6}, {.pp = 4}},
        RoundTrip{
            "from_full_tensors", kFull, {.tp = 4, .dp = 2, .optimizer_sharding = true}, false},
        RoundTrip{"from_full_tensors_to_stages", kFull, {.tp = 2, .pp = 3}, false},
        RoundTrip{"to_full_tensors", kTensorParallel, kFull, true, false, DType::kFloat32},
        RoundTrip{"stages_to_full_tensors",
                  {.tp = 2, .dp = 2, .pp = 3, .optimizer_sharding = true},
                  kFull,
                  true,
                  false}),
    [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace reshard::gen_roundtrip_test
