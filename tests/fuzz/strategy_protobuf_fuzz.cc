// Strategies in protobuf against libprotobuf's answer for the whole file.

#include <algorithm>
#include <string>
#include <vector>

#include "src/mindspore/strategy_codec.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/strategy_checks.h"
#include "tests/fuzz/strategy_oracle.pb.h"

namespace reshard {
namespace {

template <typename Messages>
std::vector<std::vector<int64_t>> ListsWithEntries(const Messages& messages) {
  std::vector<std::vector<int64_t>> lists;
  for (const auto& message : messages) {
    lists.emplace_back(message.dim().begin(), message.dim().end());
  }
  lists.erase(std::remove(lists.begin(), lists.end(), std::vector<int64_t>()), lists.end());
  return lists;
}

ParameterLayout Expected(const oracle::Layouts& layouts) {
  ParameterLayout layout;
  const auto& axes = layouts.dev_matrix(0).dim();
  layout.device_matrix = std::vector<int64_t>(axes.begin(), axes.end());
  layout.tensor_map = ListsWithEntries(layouts.tensor_map());
  if (layout.tensor_map.empty()) layout.tensor_map = {{}};
  layout.param_split_shape = ListsWithEntries(layouts.param_split_shape());
  layout.indices_offset = ListsWithEntries(layouts.indices_offset());
  layout.field = layouts.field();
  layout.opt_weight_shard_step = layouts.opt_weight_shard_step();
  layout.opt_weight_shard_size = layouts.opt_weight_shard_size();
  return layout;
}

std::string ProtobufDifference(const oracle::StrategyMap& expected, const StrategyFile& found) {
  if (found.layouts.size() != static_cast<size_t>(expected.parallel_layout_item_size())) {
    return "another count of layouts";
  }
  for (int i = 0; i < expected.parallel_layout_item_size(); ++i) {
    const oracle::LayoutItem& item = expected.parallel_layout_item(i);
    const NamedLayout& named = found.layouts[static_cast<size_t>(i)];
    if (named.name != item.param_name()) return "another name";
    if (item.parallel_layouts().dev_matrix_size() == 0) return "a layout without a device matrix";
    if (named.layout != Expected(item.parallel_layouts())) return "another layout";
  }
  if (found.first_item_stage.has_value() != (expected.parallel_strategy_item_size() > 0)) {
    return "a stage from nowhere";
  }
  return !found.first_item_stage ||
                 *found.first_item_stage ==
                     expected.parallel_strategy_item(0).parallel_strategys().stage()
             ? ""
             : "another stage";
}

}  // namespace

std::string FuzzStrategyProtobuf(std::string_view bytes) {
  if (StrategyEncodingOf(bytes) != StrategyEncoding::kProtobuf) return "";
  const auto file = ParseStrategy("s.ckpt", bytes);
  if (!file.ok()) return RefusalFault(file.status());
  oracle::StrategyMap expected;
  // libprotobuf's messages refuse keys and lengths in more bytes than they need, its streams, by
  // which items are found here, do not.
  const bool is_message =
      expected.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size()));
  const std::string difference = is_message ? ProtobufDifference(expected, *file) : "";
  return difference.empty() ? StrategyFault(*file, bytes) : difference;
}

}  // namespace reshard
