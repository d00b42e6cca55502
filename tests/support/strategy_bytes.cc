#include "tests/support/strategy_bytes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "tests/support/checkpoint_bytes.h"

namespace reshard {
namespace {

// A message whose field 1 is a list of numbers, such as DevMatrix.
std::string NumbersField(uint32_t field, const std::vector<int64_t>& numbers) {
  std::string bytes;
  for (const int64_t number : numbers) bytes += NumberField(1, static_cast<uint64_t>(number));
  return BlockField(field, bytes);
}

// MindSpore writes one empty message where there is no list.
std::string ListsField(uint32_t field, const std::vector<std::vector<int64_t>>& lists) {
  if (lists.empty()) return BlockField(field, "");
  std::string bytes;
  for (const auto& list : lists) bytes += NumbersField(field, list);
  return bytes;
}

// One list flat, several nested.
std::string JsonLists(const std::vector<std::vector<int64_t>>& lists) {
  return lists.size() == 1 ? fmt::format("{}", lists[0]) : fmt::format("{}", lists);
}

}  // namespace

ParameterLayout MakeLayout(std::vector<int64_t> device_matrix,
                           std::vector<std::vector<int64_t>> tensor_map) {
  ParameterLayout layout;
  layout.device_matrix = std::move(device_matrix);
  layout.tensor_map = std::move(tensor_map);
  return layout;
}

std::string StrategyItemField(std::string_view node, int64_t stage) {
  const std::string strategys =
      NumberField(1, static_cast<uint64_t>(stage)) + NumbersField(2, {2, 1});
  return BlockField(2, BlockField(1, node) + BlockField(2, strategys));
}

std::string LayoutItemField(std::string_view name, const ParameterLayout& layout) {
  std::string layouts = NumbersField(1, layout.device_matrix);
  layouts += ListsField(2, layout.tensor_map);
  layouts += ListsField(3, layout.param_split_shape);
  layouts += ListsField(4, layout.indices_offset);
  layouts += NumberField(5, static_cast<uint64_t>(layout.field));
  layouts += NumberField(6, static_cast<uint64_t>(layout.opt_weight_shard_step));
  layouts += NumberField(7, static_cast<uint64_t>(layout.opt_weight_shard_size));
  return BlockField(3, BlockField(1, name) + BlockField(2, layouts));
}

std::string ProtobufStrategy(int64_t stage, const std::vector<NamedLayout>& layouts) {
  std::string bytes = NumberField(1, static_cast<uint64_t>(stage)) +
                      StrategyItemField(fmt::format("MatMul-op{}", stage), stage);
  for (const auto& [name, layout] : layouts) bytes += LayoutItemField(name, layout);
  return bytes;
}

std::string JsonStrategy(int64_t stage, const std::vector<NamedLayout>& layouts) {
  std::string items;
  for (const auto& [name, layout] : layouts) {
    items += fmt::format(
        "{}\"{}\":{{\"dev_matrix\":{},\"field\":{},\"opt_weight_shard_size\":{},"
        "\"opt_weight_shard_step\":{},\"tensor_map\":{}",
        items.empty() ? "" : ",", name, layout.device_matrix, layout.field,
        layout.opt_weight_shard_size, layout.opt_weight_shard_step, JsonLists(layout.tensor_map));
    if (!layout.param_split_shape.empty()) {
      items += fmt::format(",\"param_split_shape\":{}", JsonLists(layout.param_split_shape));
    }
    if (!layout.indices_offset.empty()) {
      items += fmt::format(",\"indices_offset\":{}", JsonLists(layout.indices_offset));
    }
    if (layout.tensor_shape) items += fmt::format(",\"tensor_shape\":{}", *layout.tensor_shape);
    items += "}";
  }
  return fmt::format(
      "{{\"current_stage\":{0},\"parallel_layout_item\":{{{1}}},\"parallel_strategy_item\":"
      "{{\"MatMul-op{0}\":{{\"parallel_strategy\":[[2,1]],\"stage\":{0}}}}}}}",
      stage, items);
}

StrategyFile ParsedStrategy(std::string path, int64_t stage,
                            const std::vector<NamedLayout>& layouts) {
  StrategyFile file;
  file.path = std::move(path);
  file.first_item_stage = stage;
  for (const NamedLayout& named : layouts) file.layouts.push_back(named);
  return file;
}

}  // namespace reshard
