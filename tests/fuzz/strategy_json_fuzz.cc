// Strategies in JSON against a tree of the whole file.

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/mindspore/strategy_codec.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/strategy_checks.h"

namespace reshard {
namespace {

using Json = nlohmann::json;
using Numbers = std::vector<int64_t>;

// The lists of [0, [1, 2], -1], or the one list of [0, 1].
std::vector<Numbers> Lists(const Json& item, const char* key) {
  std::vector<Numbers> lists;
  const Json& value = item.value(key, Json::array());
  if (std::none_of(value.begin(), value.end(), [](const Json& e) { return e.is_array(); })) {
    lists.push_back(value.get<Numbers>());
  } else {
    for (const Json& entry : value) {
      lists.push_back(entry.is_array() ? entry.get<Numbers>() : Numbers{entry.get<int64_t>()});
    }
  }
  lists.erase(std::remove(lists.begin(), lists.end(), Numbers()), lists.end());
  return lists;
}

ParameterLayout ExpectedByJson(const Json& item) {
  ParameterLayout layout;
  layout.device_matrix = item.at("dev_matrix").get<Numbers>();
  layout.tensor_map = Lists(item, "tensor_map");
  if (layout.tensor_map.empty()) layout.tensor_map = {{}};
  layout.param_split_shape = Lists(item, "param_split_shape");
  layout.indices_offset = Lists(item, "indices_offset");
  layout.field = item.value("field", int64_t{0});
  layout.opt_weight_shard_step = item.value("opt_weight_shard_step", int64_t{0});
  layout.opt_weight_shard_size = item.value("opt_weight_shard_size", int64_t{0});
  if (item.contains("tensor_shape")) layout.tensor_shape = item["tensor_shape"].get<Numbers>();
  return layout;
}

// A tree keeps the last of several values of one key, as the reader does, but no order.
std::string JsonDifference(const Json& expected, const StrategyFile& found) {
  std::map<std::string, ParameterLayout> layouts;
  for (const auto& [name, item] : expected.at("parallel_layout_item").items()) {
    layouts.emplace(name, ExpectedByJson(item));
  }
  std::map<std::string, ParameterLayout> found_layouts;
  for (const NamedLayout& named : found.layouts) {
    found_layouts.insert_or_assign(named.name, named.layout);
  }
  if (found_layouts != layouts) return "other layouts";
  const Json items = expected.value("parallel_strategy_item", Json::object());
  if (!found.first_item_stage) return items.empty() ? "" : "no stage";
  const bool known = std::any_of(items.begin(), items.end(), [&](const Json& item) {
    return item.value("stage", int64_t{0}) == *found.first_item_stage;
  });
  return known ? "" : "a stage from nowhere";
}

}  // namespace

std::string FuzzStrategyJson(std::string_view bytes) {
  if (StrategyEncodingOf(bytes) != StrategyEncoding::kJson) return "";
  const auto file = ParseStrategy("s.json", bytes);
  if (!file.ok()) return RefusalFault(file.status());
  const Json expected = Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (expected.is_discarded()) return "what is no JSON is taken";
  const std::string difference = JsonDifference(expected, *file);
  return difference.empty() ? StrategyFault(*file, bytes) : difference;
}

}  // namespace reshard
