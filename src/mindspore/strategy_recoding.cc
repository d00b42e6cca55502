#include "src/mindspore/strategy_recoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/strategy_json_items.h"
#include "src/mindspore/strategy_wire.h"
#include "src/mindspore/strategy_writer.h"

namespace reshard {
namespace {

using Json = nlohmann::json;

// The text of an item that protobuf can hold has no more bytes: some 20 for each of its own.
constexpr size_t kMaxItemText = 20 * kMaxStrategyItemBytes;

constexpr std::array<std::string_view, 2> kStrategyKeys = {"stage", "parallel_strategy"};
constexpr std::array<std::string_view, 7> kLayoutKeys = {
    "dev_matrix",        "tensor_map",    "field", "opt_weight_shard_step", "opt_weight_shard_size",
    "param_split_shape", "indices_offset"};

// What protobuf has no place for.
struct Dropped {
  size_t shapes = 0;
  std::set<std::string> keys;

  std::vector<std::string> Warnings() const {
    std::vector<std::string> warnings;
    if (shapes > 0) {
      warnings.push_back(
          fmt::format("tensor_shape of {} parameter{} is dropped: protobuf has no place for it",
                      shapes, shapes == 1 ? "" : "s"));
    }
    if (!keys.empty()) {
      std::vector<std::string> names;
      for (const std::string& key : keys) names.push_back(Quote(key));
      warnings.push_back(
          fmt::format("dropped, as protobuf has no place for them: {}", FirstOf(names)));
    }
    return warnings;
  }
};

// One item of a JSON file, whose layouts ParseStrategyJson has checked, on its way to protobuf.
class ItemReader {
 public:
  ItemReader(const std::string& path, const char* kind, const JsonItem& item)
      : path_(path), kind_(kind), item_(item) {}

  // Reads the item; other keys than `known` go to `dropped` and are not kept.
  Status Parse(std::span<const std::string_view> known, Dropped& dropped) {
    if (item_.value.size() > kMaxItemText) return TooLarge();
    const auto keep = [&](int depth, Json::parse_event_t event, Json& parsed) {
      if (depth != 1 || event != Json::parse_event_t::key) return true;
      const std::string& key = parsed.get_ref<const std::string&>();
      if (std::find(known.begin(), known.end(), key) != known.end()) return true;
      if (key == "tensor_shape") {
        ++dropped.shapes;
      } else {
        dropped.keys.insert(key);
      }
      return false;
    };
    json_ = Json::parse(item_.value, keep, /*allow_exceptions=*/false);
    return {};
  }

  // Return the number of `key`, 0 where it is missing.
  template <typename Number>
  Result<Number> NumberOf(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return Number{0};
    return NumberOf<Number>(key, *found);
  }

  // Appends a message for a flat list, or one for each list of a nested one: as MindSpore writes
  // them, with a message without entries behind the only list, and where there is no list.
  template <typename Number, typename Messages>
  Status AddLists(const char* key, Messages* messages) const {
    const auto found = json_.find(key);
    const bool nested =
        found != json_.end() && std::any_of(found->begin(), found->end(),
                                            [](const Json& entry) { return entry.is_array(); });
    if (!nested) {
      auto* message = messages->Add();
      return found == json_.end() ? Status() : AddNumbers<Number>(key, *found, message);
    }
    for (const Json& entry : *found) {
      RESHARD_RETURN_IF_ERROR(AddNumbers<Number>(key, entry, messages->Add()));
    }
    if (found->size() == 1) messages->Add();
    return {};
  }

  // As above for a list of lists that may be empty.
  template <typename Number, typename Messages>
  Status AddListOfLists(const char* key, Messages* messages) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return {};
    if (!found->is_array()) return Unfit(key, "a list of lists", *found);
    for (const Json& entry : *found) {
      if (!entry.is_array()) return Unfit(key, "a list of lists", entry);
      RESHARD_RETURN_IF_ERROR(AddNumbers<Number>(key, entry, messages->Add()));
    }
    return {};
  }

  // Fails where readers would refuse the item.
  template <typename Item>
  Status CheckSize(const Item& item) const {
    return item.ByteSizeLong() > kMaxStrategyItemBytes ? TooLarge() : Status();
  }

 private:
  template <typename Number, typename Message>
  Status AddNumbers(const char* key, const Json& list, Message* message) const {
    if (!list.is_array()) {
      RESHARD_ASSIGN_OR_RETURN(const Number number, NumberOf<Number>(key, list));
      message->add_dim(number);
      return {};
    }
    for (const Json& entry : list) {
      RESHARD_ASSIGN_OR_RETURN(const Number number, NumberOf<Number>(key, entry));
      message->add_dim(number);
    }
    return {};
  }

  template <typename Number>
  Result<Number> NumberOf(const char* key, const Json& value) const {
    const bool fits = value.is_number_unsigned() ? std::in_range<Number>(value.get<uint64_t>())
                                                 : value.is_number_integer() &&
                                                       std::in_range<Number>(value.get<int64_t>());
    if (!fits) {
      return Unfit(key,
                   fmt::format("an integer of {} bits{}", 8 * sizeof(Number),
                               std::is_signed_v<Number> ? "" : " that is not negative"),
                   value);
    }
    return value.get<Number>();
  }

  Status Unfit(const char* key, std::string_view expected, const Json& found) const {
    std::string text =
        found.is_structured() ? found.is_array() ? "a list" : "an object" : Escape(found.dump());
    return CorruptError(fmt::format("{}: {} {}: {}: expected {}, as protobuf holds it, found {}",
                                    Escape(path_), kind_, Quote(item_.name), key, expected, text));
  }

  Status TooLarge() const {
    return CorruptError(
        fmt::format("{}: {} {}: expected an item of at most {} bytes in protobuf, "
                    "found more",
                    Escape(path_), kind_, Quote(item_.name), kMaxStrategyItemBytes));
  }

  const std::string& path_;
  const char* kind_;
  const JsonItem& item_;
  Json json_;
};

Result<ParallelStrategyItem> StrategyItemOf(const std::string& path, const JsonItem& json,
                                            Dropped& dropped) {
  ItemReader reader(path, "node", json);
  RESHARD_RETURN_IF_ERROR(reader.Parse(kStrategyKeys, dropped));
  ParallelStrategyItem item;
  item.set_node_name(json.name);
  ParallelStrategys& strategys = *item.mutable_parallel_strategys();
  RESHARD_ASSIGN_OR_RETURN(const auto stage, reader.NumberOf<uint32_t>("stage"));
  strategys.set_stage(stage);
  RESHARD_RETURN_IF_ERROR(
      reader.AddListOfLists<uint32_t>("parallel_strategy", strategys.mutable_parallel_strategy()));
  RESHARD_RETURN_IF_ERROR(reader.CheckSize(item));
  return item;
}

Result<ParallelLayoutItem> LayoutItemOf(const std::string& path, const JsonItem& json,
                                        Dropped& dropped) {
  ItemReader reader(path, "parameter", json);
  RESHARD_RETURN_IF_ERROR(reader.Parse(kLayoutKeys, dropped));
  ParallelLayoutItem item;
  item.set_param_name(json.name);
  ParallelLayouts& layouts = *item.mutable_parallel_layouts();
  RESHARD_RETURN_IF_ERROR(reader.AddLists<uint32_t>("dev_matrix", layouts.mutable_dev_matrix()));
  RESHARD_RETURN_IF_ERROR(reader.AddLists<int32_t>("tensor_map", layouts.mutable_tensor_map()));
  RESHARD_RETURN_IF_ERROR(
      reader.AddLists<int64_t>("param_split_shape", layouts.mutable_param_split_shape()));
  RESHARD_RETURN_IF_ERROR(
      reader.AddLists<int64_t>("indices_offset", layouts.mutable_indices_offset()));
  RESHARD_ASSIGN_OR_RETURN(const auto field, reader.NumberOf<int32_t>("field"));
  RESHARD_ASSIGN_OR_RETURN(const auto step, reader.NumberOf<int32_t>("opt_weight_shard_step"));
  RESHARD_ASSIGN_OR_RETURN(const auto size, reader.NumberOf<int32_t>("opt_weight_shard_size"));
  layouts.set_field(field);
  layouts.set_opt_weight_shard_step(step);
  layouts.set_opt_weight_shard_size(size);
  RESHARD_RETURN_IF_ERROR(reader.CheckSize(item));
  return item;
}

Result<RecodedStrategy> ToProtobuf(const std::string& path, const std::string& bytes) {
  RESHARD_ASSIGN_OR_RETURN(JsonStrategyItems json, ReadJsonStrategyItems(path, bytes));
  StrategyWriter writer(StrategyEncoding::kProtobuf);
  Dropped dropped;
  for (const JsonItem& strategy : json.strategies.TakeItems()) {
    RESHARD_ASSIGN_OR_RETURN(const ParallelStrategyItem item,
                             StrategyItemOf(path, strategy, dropped));
    RESHARD_RETURN_IF_ERROR(writer.Add(item));
  }
  const std::vector<JsonItem> layouts = json.layouts.TakeItems();
  for (const JsonItem& layout : layouts) {
    RESHARD_ASSIGN_OR_RETURN(const ParallelLayoutItem item, LayoutItemOf(path, layout, dropped));
    RESHARD_RETURN_IF_ERROR(writer.Add(item));
  }
  if (!std::in_range<uint32_t>(json.current_stage)) {
    return CorruptError(fmt::format("{}: current_stage: expected an integer of 32 bits, found {}",
                                    Escape(path), json.current_stage));
  }
  return RecodedStrategy{writer.TakeBytes(static_cast<uint32_t>(json.current_stage)),
                         layouts.size(), dropped.Warnings()};
}

Result<RecodedStrategy> ToJson(const std::string& path, const std::string& bytes) {
  StrategyWriter writer(StrategyEncoding::kJson);
  RecodedStrategy recoded;
  uint32_t current_stage = 0;
  const auto in_file = [&path](const Status& status) {
    return status.ok()
               ? status
               : Status(status.code(), fmt::format("{}: {}", Escape(path), status.message()));
  };
  const StrategyItemVisitor visitor = {
      .on_strategy = [&](uint64_t,
                         const ParallelStrategyItem& item) { return in_file(writer.Add(item)); },
      .on_layout =
          [&](uint64_t, const ParallelLayoutItem& item) {
            ++recoded.layouts;
            return in_file(writer.Add(item));
          },
      .on_current_stage = [&](uint64_t stage) { current_stage = static_cast<uint32_t>(stage); }};
  RESHARD_RETURN_IF_ERROR(VisitStrategyItems(path, bytes, visitor));
  if (writer.replaced() > 0) {
    recoded.warnings.push_back(fmt::format(
        "items whose names come again: {}; in JSON the last of a name counts", writer.replaced()));
  }
  recoded.bytes = writer.TakeBytes(current_stage);
  return recoded;
}

}  // namespace

Result<RecodedStrategy> RecodeStrategy(const std::string& path, const std::string& bytes,
                                       StrategyEncoding encoding) {
  RESHARD_ASSIGN_OR_RETURN(const StrategyFile file, ParseStrategy(path, bytes));
  if (StrategyEncodingOf(bytes) == encoding) {
    return RecodedStrategy{bytes, file.layouts.size(), {}};
  }
  return encoding == StrategyEncoding::kJson ? ToJson(path, bytes) : ToProtobuf(path, bytes);
}

}  // namespace reshard
