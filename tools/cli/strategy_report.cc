#include "tools/cli/strategy_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reshard/parameters.h"
#include "tools/page/parameter_table.h"
#include "tools/page/text_format.h"

namespace reshard {
namespace {

// "[1, -1]", or "[[1, 0], [-1]]" if a dimension is cut over several device axes.
std::string TensorMapText(const std::vector<std::vector<int64_t>>& tensor_map) {
  if (tensor_map.size() == 1) return FormatList(tensor_map[0]);
  std::vector<std::string> dims;
  dims.reserve(tensor_map.size());
  for (const std::vector<int64_t>& axes : tensor_map) dims.push_back(FormatList(axes));
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

std::string OptimizerSharding(const ParameterLayout& layout) {
  if (layout.opt_weight_shard_step == 0 || layout.opt_weight_shard_size == 0) return "-";
  if (layout.opt_weight_shard_size == -1) return "all replicas";
  return fmt::format("{} parts", layout.opt_weight_shard_size);
}

}  // namespace

std::string StrategyAsText(const ShownStrategy& shown, const StrategyDetail& detail) {
  std::vector<Table::Column> columns = {{"DEVICE MATRIX"}, {"TENSOR MAP"}, {"OPTIMIZER SHARDING"}};
  if (detail.every_field) {
    columns.push_back({"STEP", Align::kRight});
    columns.push_back({"SIZE", Align::kRight});
    columns.push_back({"TENSOR SHAPE"});
  }
  ParameterTable table(std::move(columns));
  table.FoldCopies({});
  for (const auto& [stage, name, layout] : shown.parameters) {
    std::vector<std::string> cells = {FormatList(layout->device_matrix),
                                      TensorMapText(layout->tensor_map),
                                      OptimizerSharding(*layout)};
    if (detail.every_field) {
      cells.push_back(fmt::format("{}", layout->opt_weight_shard_step));
      cells.push_back(fmt::format("{}", layout->opt_weight_shard_size));
      cells.push_back(layout->tensor_shape ? FormatList(*layout->tensor_shape) : "-");
    }
    table.Add(std::string(name), std::move(cells), stage);
  }
  const Strategy& strategy = *shown.strategy;
  return fmt::format("{}: strategy, {} of {}, {}\n{}\n\n{}", PrintableName(strategy.path()),
                     FormatCount(strategy.stages().size(), "stage"),
                     FormatCount(static_cast<uint64_t>(strategy.devices_per_stage()), "device"),
                     FormatCount(strategy.layouts(), "parameter"), shown.meaning,
                     table.ToText(detail.every_parameter));
}

std::string WrittenStrategyText(const std::string& output, const StrategyReport& report) {
  return fmt::format("{}: {} of {}, {}, {}", output,
                     FormatCount(static_cast<uint64_t>(report.stages), "stage"),
                     FormatCount(static_cast<uint64_t>(report.devices_per_stage), "device"),
                     FormatCount(report.layouts, "layout"), FormatBytes(report.bytes));
}

}  // namespace reshard
