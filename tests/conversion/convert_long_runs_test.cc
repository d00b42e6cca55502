// Runs and rows of runs that are longer than what is copied and digested at a time.

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "reshard/convert.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::convert_long_runs_test {
namespace {

struct Row {
  std::string name;
  Shape shape;  // of Int8
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class ConvertLongRunsTest : public testing::TestWithParam<Row> {};

// Convert fails where the two sides of a digest differ.
TEST_P(ConvertLongRunsTest, AreCopiedAndDigested) {
  const std::vector<NamedLayout> rows = {{"w", MakeLayout({2}, {{0, -1}})}};
  const std::vector<NamedLayout> columns = {{"w", MakeLayout({2}, {{-1, 0}})}};
  const TestTensor full = MakeTensor("w", DType::kInt8, GetParam().shape);
  for (const auto& [source, target] : {std::pair(rows, columns), std::pair(columns, rows)}) {
    ConversionFolder folder(source, target);
    folder.WriteStage({full}, source, 2);
    const auto report = Convert(folder.options());
    ASSERT_TRUE(report.ok()) << report.status().message();
    for (const int64_t rank : {0, 1}) {
      EXPECT_TRUE(folder.Target(rank) == std::vector{NaiveShard(full, target.front().layout, rank)})
          << rank;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, ConvertLongRunsTest,
                         testing::Values(Row{"LongRuns", {2, 1'800'002}},
                                         Row{"SomeRunsInAPiece", {26, 202'222}},
                                         Row{"OneRunInAPiece", {6, 600'006}},
                                         Row{"ManyRunsInAPiece", {4'000, 1'026}},
                                         Row{"ShortRuns", {400'002, 8}}),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace reshard::convert_long_runs_test
