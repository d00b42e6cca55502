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

// As MindSpore's JSON strategies have it: flat, or nested as above.
nlohmann::ordered_json TensorMapJson(const std::vector<std::vector<int64_t>>& tensor_map) {
  if (tensor_map.size() == 1) return tensor_map[0];
  return tensor_map;
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

nlohmann::ordered_json StrategyAsJson(const Strategy& strategy, const NameFilter& filter) {
  nlohmann::ordered_json parameters = nlohmann::ordered_json::array();
  for (const StrategyParameter& parameter : strategy.parameters) {
    if (!filter.Takes(parameter.name)) continue;
    nlohmann::ordered_json entry = {{"stage", parameter.stage},
                                    {"name", parameter.name},
                                    {"device_matrix", parameter.device_matrix},
                                    {"tensor_map", TensorMapJson(parameter.tensor_map)},
                                    {"opt_weight_shard_step", parameter.opt_weight_shard_step},
                                    {"opt_weight_shard_size", parameter.opt_weight_shard_size},
                                    {"tensor_shape", nullptr}};
    if (parameter.tensor_shape) entry["tensor_shape"] = *parameter.tensor_shape;
    parameters.push_back(std::move(entry));
  }
  return {{"path", strategy.path},
          {"is_pipeline", strategy.is_pipeline},
          {"stages", strategy.stages},
          {"devices_per_stage", strategy.devices_per_stage},
          {"meaning", StrategyInWords(strategy)},
          {"parameters", std::move(parameters)},
          {"notes", AsTyped(strategy.notes)}};
}

}  // namespace reshard
