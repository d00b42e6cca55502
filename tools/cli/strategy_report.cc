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
#include "tools/page/strategy_words.h"
#include "tools/page/text_format.h"

namespace reshard {
namespace {

// "[1, -1]", or "[[1, 0], [-1]]" where a dimension is cut over several device axes.
std::string TensorMapText(const std::vector<std::vector<int64_t>>& tensor_map) {
  if (tensor_map.size() == 1) return FormatList(tensor_map[0]);
  std::vector<std::string> dims;
  dims.reserve(tensor_map.size());
  for (const std::vector<int64_t>& axes : tensor_map) dims.push_back(FormatList(axes));
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

std::string OptimizerSharding(const StrategyParameter& parameter) {
  if (parameter.opt_weight_shard_step == 0 || parameter.opt_weight_shard_size == 0) return "-";
  if (parameter.opt_weight_shard_size == -1) return "all replicas";
  return fmt::format("{} parts", parameter.opt_weight_shard_size);
}

}  // namespace

bool AnyLayoutMatches(const Strategy& strategy, const NameFilter& filter) {
  const auto matches = [&filter](const StrategyParameter& parameter) {
    return filter.Takes(parameter.name);
  };
  return std::any_of(strategy.parameters.begin(), strategy.parameters.end(), matches);
}

std::string StrategyAsText(const Strategy& strategy, const NameFilter& filter,
                           const StrategyDetail& detail) {
  std::vector<Table::Column> columns = {{"DEVICE MATRIX"}, {"TENSOR MAP"}, {"OPTIMIZER SHARDING"}};
  if (detail.every_field) {
    columns.push_back({"STEP", Align::kRight});
    columns.push_back({"SIZE", Align::kRight});
    columns.push_back({"TENSOR SHAPE"});
  }
  ParameterTable table(std::move(columns));
  table.FoldCopies({});
  for (const StrategyParameter& parameter : strategy.parameters) {
    if (!filter.Takes(parameter.name)) continue;
    std::vector<std::string> cells = {FormatList(parameter.device_matrix),
                                      TensorMapText(parameter.tensor_map),
                                      OptimizerSharding(parameter)};
    if (detail.every_field) {
      cells.push_back(fmt::format("{}", parameter.opt_weight_shard_step));
      cells.push_back(fmt::format("{}", parameter.opt_weight_shard_size));
      cells.push_back(parameter.tensor_shape ? FormatList(*parameter.tensor_shape) : "-");
    }
    table.Add(parameter.name, std::move(cells), parameter.stage);
  }
  return fmt::format("{}: strategy, {} of {}, {}\n{}\n\n{}", PrintableName(strategy.path),
                     FormatCount(static_cast<uint64_t>(strategy.stages), "stage"),
                     FormatCount(static_cast<uint64_t>(strategy.devices_per_stage), "device"),
                     FormatCount(strategy.parameters.size(), "parameter"),
                     StrategyInWords(strategy), table.ToText(detail.every_parameter));
}

ShownStrategy ShownOf(Strategy strategy, const NameFilter& filter) {
  std::string meaning = StrategyInWords(strategy);
  std::erase_if(strategy.parameters, [&filter](const StrategyParameter& parameter) {
    return !filter.Takes(parameter.name);
  });
  return {std::move(strategy), std::move(meaning)};
}

}  // namespace reshard
