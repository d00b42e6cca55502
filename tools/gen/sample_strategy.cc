#include "tools/gen/sample_strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

namespace reshard {
namespace {

// MindSpore stores how operators are cut too. One is enough here: conversions take the number of
// the stage from it.
constexpr std::string_view kNodeName = "MatMul-op0";

void AppendVarint(uint64_t number, std::string& out) {
  for (; number >= 0x80; number >>= 7) out.push_back(static_cast<char>(number | 0x80));
  out.push_back(static_cast<char>(number));
}

void AppendNumber(int field, int64_t number, std::string& out) {
  out.push_back(static_cast<char>(field << 3));
  AppendVarint(static_cast<uint64_t>(number), out);
}

void AppendBytes(int field, std::string_view bytes, std::string& out) {
  out.push_back(static_cast<char>(field << 3 | 2));
  AppendVarint(bytes.size(), out);
  out += bytes;
}

// A message whose only field is `repeated dim = 1`.
std::string Dims(const std::vector<int64_t>& dims) {
  std::string out;
  for (const int64_t dim : dims) AppendNumber(1, dim, out);
  return out;
}

std::string StrategyItem(int64_t stage) {
  std::string strategys;
  AppendNumber(1, stage, strategys);
  AppendBytes(2, Dims({1, 1}), strategys);
  std::string item;
  AppendBytes(1, kNodeName, item);
  AppendBytes(2, strategys, item);
  return item;
}

std::string LayoutItem(const std::string& name, const ParameterLayout& layout) {
  std::string layouts;
  AppendBytes(1, Dims(layout.device_matrix), layouts);
  for (const auto& map : layout.tensor_map) AppendBytes(2, Dims(map), layouts);
  AppendBytes(3, "", layouts);  // param_split_shape and indices_offset
  AppendBytes(4, "", layouts);
  AppendNumber(5, layout.field, layouts);
  AppendNumber(6, layout.opt_weight_shard_step, layouts);
  AppendNumber(7, layout.opt_weight_shard_size, layouts);
  std::string item;
  AppendBytes(1, name, item);
  AppendBytes(2, layouts, item);
  return item;
}

}  // namespace

std::string EncodeStrategy(const std::vector<SampleParameter>& parameters, int64_t stage) {
  std::string out;
  AppendNumber(1, stage, out);
  AppendBytes(2, StrategyItem(stage), out);
  for (const SampleParameter& parameter : parameters) {
    if (parameter.layout) AppendBytes(3, LayoutItem(parameter.name, *parameter.layout), out);
  }
  return out;
}

std::string EncodeStrategyJson(const std::vector<SampleParameter>& parameters, int64_t stage) {
  std::vector<std::string> items;
  for (const auto& [name, dtype, full_shape, layout, constant] : parameters) {
    if (!layout) continue;
    items.push_back(fmt::format(
        R"("{}": {{"dev_matrix": {}, "tensor_map": {}, "tensor_shape": {}, "field": {}, )"
        R"("opt_weight_shard_step": {}, "opt_weight_shard_size": {}}})",
        name, layout->device_matrix, layout->tensor_map[0], full_shape, layout->field,
        layout->opt_weight_shard_step, layout->opt_weight_shard_size));
  }
  return fmt::format(
      R"({{"current_stage": {0}, "parallel_strategy_item": {{"{1}": {{"stage": {0}, )"
      R"("parallel_strategy": [[1, 1]]}}}}, "parallel_layout_item": {{{2}}}}})",
      stage, kNodeName, fmt::join(items, ", "));
}

}  // namespace reshard
