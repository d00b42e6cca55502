#include "src/mindspore/strategy_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/strategy_wire.h"

namespace reshard {
namespace {

template <typename Message>
std::string JsonNumbers(const Message& message) {
  return fmt::format("[{}]", fmt::join(message.dim(), ", "));
}

// "[[1, 2], []]"
template <typename Messages>
std::string JsonLists(const Messages& messages) {
  std::vector<std::string> lists;
  for (const auto& message : messages) lists.push_back(JsonNumbers(message));
  return fmt::format("[{}]", fmt::join(lists, ", "));
}

// Messages without entries stand behind others (SPEC.md) or for no list at all.
template <typename Messages>
std::string JsonListsWithEntries(const Messages& messages) {
  if (messages.empty()) return "[]";
  if (messages.size() == 1) return JsonNumbers(messages.at(0));
  Messages filled;
  for (const auto& message : messages) {
    if (message.dim_size() > 0) *filled.Add() = message;
  }
  return JsonLists(filled);
}

std::string JsonValue(const ParallelStrategyItem& item) {
  const ParallelStrategys& strategys = item.parallel_strategys();
  return fmt::format(R"({{"stage": {}, "parallel_strategy": {}}})", strategys.stage(),
                     JsonLists(strategys.parallel_strategy()));
}

std::string JsonValue(const ParallelLayoutItem& item) {
  const ParallelLayouts& layouts = item.parallel_layouts();
  std::string out = fmt::format(
      R"({{"dev_matrix": {}, "tensor_map": {}, "field": {}, "opt_weight_shard_step": {}, )"
      R"("opt_weight_shard_size": {})",
      JsonNumbers(layouts.dev_matrix(0)), JsonListsWithEntries(layouts.tensor_map()),
      layouts.field(), layouts.opt_weight_shard_step(), layouts.opt_weight_shard_size());
  const auto add = [&out](const char* key, const std::string& lists) {
    if (lists != "[]") out += fmt::format(R"(, "{}": {})", key, lists);
  };
  add("param_split_shape", JsonListsWithEntries(layouts.param_split_shape()));
  add("indices_offset", JsonListsWithEntries(layouts.indices_offset()));
  return out + "}";
}

// Fills a message with numbers; false when one does not fit.
template <typename Message, typename Number>
bool Fill(const std::vector<int64_t>& numbers, Message* message) {
  for (const int64_t number : numbers) {
    if (!std::in_range<Number>(number)) return false;
    message->add_dim(static_cast<Number>(number));
  }
  return true;
}

// As MindSpore writes it: messages without entries where there is nothing to say, and behind the
// only list of a nested map.
Result<ParallelLayoutItem> LayoutItem(const std::string& name, const ParameterLayout& layout) {
  ParallelLayoutItem item;
  item.set_param_name(name);
  ParallelLayouts& layouts = *item.mutable_parallel_layouts();
  bool fits = Fill<DevMatrix, uint32_t>(layout.device_matrix, layouts.add_dev_matrix());
  for (const std::vector<int64_t>& map : layout.tensor_map) {
    fits = fits && Fill<TensorMap, int32_t>(map, layouts.add_tensor_map());
  }
  layouts.add_param_split_shape();
  layouts.add_indices_offset();
  layouts.set_field(0);
  fits = fits && std::in_range<int32_t>(layout.opt_weight_shard_step) &&
         std::in_range<int32_t>(layout.opt_weight_shard_size);
  if (!fits) {
    return MismatchError(fmt::format(
        "parameter {}: its layout has numbers beyond 32 bits, for which a strategy file has no "
        "place",
        Quote(name)));
  }
  layouts.set_opt_weight_shard_step(static_cast<int32_t>(layout.opt_weight_shard_step));
  layouts.set_opt_weight_shard_size(static_cast<int32_t>(layout.opt_weight_shard_size));
  return item;
}

Status CheckStageNames(const StageLayouts& stage) {
  if (!IsMerged(stage.layouts)) return {};
  return MismatchError(fmt::format(
      "expected the name of a parameter without a stage, found only names such as {}, by which "
      "readers take a strategy for that of a pipeline (0-NAME); make it one, of one stage "
      "(\"stages\" in place of \"parameters\")",
      Quote(stage.layouts[0].name)));
}

}  // namespace

Status StrategyWriter::Add(const ParallelStrategyItem& item) {
  if (encoding_ == StrategyEncoding::kJson) {
    return Set(json_strategies_, item.node_name(), JsonValue(item));
  }
  AppendItem(item, &strategies_);
  return {};
}

Status StrategyWriter::Add(const ParallelLayoutItem& item) {
  if (encoding_ == StrategyEncoding::kJson) {
    return Set(json_layouts_, item.param_name(), JsonValue(item));
  }
  AppendItem(item, &layouts_);
  return {};
}

Status StrategyWriter::Set(JsonItems& items, const std::string& name, std::string value) {
  if (!IsUtf8(name)) {
    return MismatchError(
        fmt::format("the name {} is not UTF-8, so JSON cannot hold it; write protobuf (a name that "
                    "does not end in .json)",
                    Quote(name)));
  }
  if (!items.Set({name, std::move(value)})) ++replaced_;
  return {};
}

std::string StrategyWriter::TakeBytes(uint32_t current_stage) {
  if (encoding_ == StrategyEncoding::kJson) {
    return StrategyJson(current_stage, json_strategies_, json_layouts_);
  }
  std::string bytes{kCurrentStageKey};
  AppendVarint(current_stage, &bytes);
  return bytes + strategies_ + layouts_;
}

StrategyEncoding StrategyEncodingOfName(const std::string& path) {
  return path.ends_with(".json") ? StrategyEncoding::kJson : StrategyEncoding::kProtobuf;
}

Result<std::string> EncodeStrategy(const std::vector<StageLayouts>& stages, bool merged,
                                   StrategyEncoding encoding) {
  StrategyWriter writer(encoding);
  if (!merged) RESHARD_RETURN_IF_ERROR(CheckStageNames(stages.front()));
  for (const StageLayouts& stage : stages) {
    ParallelStrategyItem item;
    item.set_node_name(fmt::format("reshard-stage{}", stage.stage));
    item.mutable_parallel_strategys()->set_stage(static_cast<uint32_t>(stage.stage));
    RESHARD_RETURN_IF_ERROR(writer.Add(item));
    for (const auto& [name, layout] : stage.layouts) {
      RESHARD_ASSIGN_OR_RETURN(
          const ParallelLayoutItem layout_item,
          LayoutItem(merged ? fmt::format("{}-{}", stage.stage, name) : name, layout));
      RESHARD_RETURN_IF_ERROR(writer.Add(layout_item));
    }
  }
  return writer.TakeBytes(merged ? static_cast<uint32_t>(kMergedCurrentStage)
                                 : static_cast<uint32_t>(stages.front().stage));
}

}  // namespace reshard
