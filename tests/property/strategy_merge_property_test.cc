// Random pipelines: files of stages, in any order and encoding, say what their merged file says.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/mindspore/strategy_codec.h"
#include "src/mindspore/strategy_loader.h"
#include "tests/support/pick.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::strategy_merge_property_test {
namespace {

std::vector<int64_t> Numbers(size_t count, int64_t begin, int64_t end) {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < count; ++i) numbers.push_back(Pick(begin, end));
  return numbers;
}

// Layouts are read and written here, not placed, so the tensor map need not fit anything.
ParameterLayout PickLayout(const std::vector<int64_t>& device_matrix) {
  ParameterLayout layout;
  layout.device_matrix = device_matrix;
  if (PickBool()) std::reverse(layout.device_matrix.begin(), layout.device_matrix.end());
  if (PickBool()) {
    layout.tensor_map = {Numbers(Pick<size_t>(0, 4), -1, 3)};
  } else {
    const auto dims = Pick<size_t>(2, 4);
    for (size_t d = 0; d < dims; ++d) {
      layout.tensor_map.push_back(Numbers(Pick<size_t>(1, 4), -1, 3));
    }
  }
  layout.opt_weight_shard_step = Pick<int64_t>(-1, 1 << 20);
  layout.opt_weight_shard_size = Pick<int64_t>(-1, 9);
  layout.field = Pick<int64_t>(0, 3);
  if (PickBool()) {
    layout.param_split_shape = {Numbers(Pick<size_t>(1, 4), 0, int64_t{1} << 40)};
    layout.indices_offset = {Numbers(Pick<size_t>(1, 4), 0, int64_t{1} << 40)};
  }
  return layout;
}

template <typename Table>
bool AreEqual(const Table& table, const std::vector<NamedLayout>& layouts) {
  return std::equal(table.begin(), table.end(), layouts.begin(), layouts.end());
}

std::vector<std::vector<NamedLayout>> PickPipeline() {
  const std::vector<int64_t> device_matrix = Numbers(Pick<size_t>(0, 4), 1, 5);
  std::vector<std::vector<NamedLayout>> stages(Pick<size_t>(1, 13));
  for (auto& layouts : stages) {
    const auto count = Pick<size_t>(1, 6);
    for (size_t i = 0; i < count; ++i) {
      // Names with dashes and of several stages; never such that a file looks merged.
      const std::string name = "layer-" + std::to_string(Pick(0, 4)) + ".w" + std::to_string(i);
      layouts.push_back({name, PickLayout(device_matrix)});
    }
  }
  return stages;
}

RC_GTEST_PROP(StrategyMergePropertyTest, StageFilesSayWhatTheirMergedFileSays, ()) {
  const auto stages = PickPipeline();
  const bool json = PickBool();
  std::vector<StageFile> files;
  for (size_t s = 0; s < stages.size(); ++s) {
    const auto stage = static_cast<int64_t>(s);
    files.push_back({"s" + std::to_string(s),
                     json ? JsonStrategy(stage, stages[s]) : ProtobufStrategy(stage, stages[s]),
                     {}});
  }
  const auto in_order = MergeStageFiles("folder", files);
  RC_ASSERT(in_order.ok());
  for (size_t i = files.size(); i > 1; --i) std::swap(files[i - 1], files[Pick<size_t>(0, i)]);
  const auto merged = MergeStageFiles("folder", files);
  RC_ASSERT(merged.ok());
  RC_ASSERT(merged->bytes == in_order->bytes);

  auto parsed = ParseStageFiles(files);
  RC_ASSERT(parsed.ok());
  const auto joined = StrategyTables::FromStageFiles("folder", std::move(parsed).value());
  RC_ASSERT(joined.ok());
  auto file = ParseStrategy("merged", merged->bytes);
  RC_ASSERT(file.ok());
  const auto whole = StrategyTables::FromFile(std::move(file).value());
  RC_ASSERT(whole.ok());
  RC_ASSERT(joined->is_pipeline());
  RC_ASSERT(whole->is_pipeline());
  RC_ASSERT(joined->devices_per_stage() == whole->devices_per_stage());
  RC_ASSERT(joined->stages().size() == stages.size());
  RC_ASSERT(whole->stages().size() == stages.size());
  for (size_t s = 0; s < stages.size(); ++s) {
    RC_ASSERT(AreEqual(joined->stages()[s], stages[s]));
    RC_ASSERT(AreEqual(whole->stages()[s], stages[s]));
  }
}

RC_GTEST_PROP(StrategyMergePropertyTest, BothEncodingsSayTheSame, ()) {
  const auto stages = PickPipeline();
  const auto protobuf = ParseStrategy("s", ProtobufStrategy(3, stages[0]));
  const auto json = ParseStrategy("s", JsonStrategy(3, stages[0]));
  RC_ASSERT(protobuf.ok());
  RC_ASSERT(json.ok());
  RC_ASSERT(AreEqual(protobuf->layouts, stages[0]));
  RC_ASSERT(AreEqual(json->layouts, stages[0]));
  RC_ASSERT(protobuf->first_item_stage == json->first_item_stage);
}

}  // namespace
}  // namespace reshard::strategy_merge_property_test
