#include "src/mindspore/strategy_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "reshard/parameters.h"
#include "reshard/strategy.h"
#include "src/base/json_reader.h"
#include "src/base/json_string.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"
#include "src/mindspore/strategy_json.h"
#include "src/mindspore/strategy_loader.h"
#include "src/mindspore/strategy_names.h"
#include "src/mindspore/strategy_tables.h"
#include "src/mindspore/strategy_wire.h"
#include "src/os/file_use.h"
#include "src/os/write_file.h"

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

std::string JsonOf(const ParallelStrategyItem& item) {
  const ParallelStrategys& strategys = item.parallel_strategys();
  return fmt::format(R"({{"stage": {}, "parallel_strategy": {}}})", strategys.stage(),
                     JsonLists(strategys.parallel_strategy()));
}

std::string JsonOf(const ParallelLayoutItem& item) {
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

// Whether the map has a single list, and MindSpore nests it: its axes cut the only dimension. A map
// whose shape is not known may as well be flat.
bool IsNestedOfOneDimension(const ParameterLayout& layout) {
  return layout.tensor_map.size() == 1 && layout.tensor_map[0].size() > 1 && layout.tensor_shape &&
         layout.tensor_shape->size() == 1;
}

// As MindSpore writes it: with empty messages for missing lists, and behind the only list of a
// nested map.
Result<ParallelLayoutItem> LayoutItem(const std::string& name, const ParameterLayout& layout) {
  ParallelLayoutItem item;
  item.set_param_name(name);
  ParallelLayouts& layouts = *item.mutable_parallel_layouts();
  bool fits = Fill<DevMatrix, uint32_t>(layout.device_matrix, layouts.add_dev_matrix());
  for (const std::vector<int64_t>& map : layout.tensor_map) {
    fits = fits && Fill<TensorMap, int32_t>(map, layouts.add_tensor_map());
  }
  if (IsNestedOfOneDimension(layout)) layouts.add_tensor_map();
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
  if (item.ByteSizeLong() > kMaxStrategyItemBytes) {
    return MismatchError(fmt::format(
        "parameter {}: expected a layout of at most {} bytes, as a strategy file holds it, found "
        "one of {}",
        Quote(name), kMaxStrategyItemBytes, item.ByteSizeLong()));
  }
  return item;
}

// The text of an item that protobuf can hold has no more bytes: some 20 for each of its own.
constexpr size_t kMaxItemText = 20 * kMaxStrategyItemBytes;

constexpr std::array<std::string_view, 2> kStrategyKeys = {"stage", "parallel_strategy"};
constexpr std::array<std::string_view, 7> kLayoutKeys = {
    "dev_matrix",        "tensor_map",    "field", "opt_weight_shard_step", "opt_weight_shard_size",
    "param_split_shape", "indices_offset"};

// The facts that protobuf cannot hold.
struct Dropped {
  size_t shapes = 0;
  std::set<std::string> keys;

  std::vector<Warning> Warnings() const {
    std::vector<Warning> warnings;
    if (shapes > 0) {
      warnings.push_back(
          {WarningCode::kDropped,
           fmt::format("tensor_shape of {} parameter{} is dropped: protobuf has no place for it",
                       shapes, shapes == 1 ? "" : "s")});
    }
    if (!keys.empty()) {
      std::vector<std::string> names;
      for (const std::string& key : keys) names.push_back(Quote(key));
      warnings.push_back(
          {WarningCode::kDropped,
           fmt::format("dropped, as protobuf has no place for them: {}", FirstOf(names))});
    }
    return warnings;
  }
};

// A value in an item of a JSON file, and what it holds if it is a list.
struct ItemValue {
  JsonValue::Kind kind = JsonValue::Kind::kNull;
  uint64_t number = 0;
  std::string shown = {};  // in messages
  bool is_list = false;
  std::vector<ItemValue> elements = {};
};

// An item of a JSON file on its way to protobuf. ParseStrategyJson has checked its layouts.
class ItemReader final : public JsonReader {
 public:
  ItemReader(const std::string& path, const char* kind, const JsonItem& item)
      : JsonReader(path), path_(path), kind_(kind), item_(item) {}

  // Reads the item; other keys than `known` go to `dropped` and are not kept.
  Status Parse(std::span<const std::string_view> known, Dropped& dropped) {
    if (item_.value.size() > kMaxItemText) return TooLarge();
    known_ = known;
    dropped_ = &dropped;
    return Read(item_.value);
  }

  // Return the number of `key`, 0 if it is missing.
  template <typename Number>
  Result<Number> NumberOf(const char* key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) return Number{0};
    return NumberOf<Number>(key, found->second);
  }

  // Appends a message for a flat list, or one for each list of a nested list. As MindSpore does,
  // adds an empty message behind the only list, and if there is no list.
  template <typename Number, typename Messages>
  Status AddLists(const char* key, Messages* messages) const {
    const auto found = values_.find(key);
    if (found == values_.end()) {
      messages->Add();
      return {};
    }
    const std::vector<ItemValue>& entries = found->second.elements;
    if (std::none_of(entries.begin(), entries.end(),
                     [](const ItemValue& entry) { return entry.is_list; })) {
      return AddNumbers<Number>(key, found->second, messages->Add());
    }
    for (const ItemValue& entry : entries) {
      RESHARD_RETURN_IF_ERROR(AddNumbers<Number>(key, entry, messages->Add()));
    }
    if (entries.size() == 1) messages->Add();
    return {};
  }

  // As above for a list of lists that may be empty.
  template <typename Number, typename Messages>
  Status AddListOfLists(const char* key, Messages* messages) const {
    const auto found = values_.find(key);
    if (found == values_.end()) return {};
    if (!found->second.is_list) return Unfit(key, "a list of lists", found->second);
    for (const ItemValue& entry : found->second.elements) {
      if (!entry.is_list) return Unfit(key, "a list of lists", entry);
      RESHARD_RETURN_IF_ERROR(AddNumbers<Number>(key, entry, messages->Add()));
    }
    return {};
  }

  // Fails if readers would refuse the item.
  template <typename Item>
  Status CheckSize(const Item& item) const {
    return item.ByteSizeLong() > kMaxStrategyItemBytes ? TooLarge() : Status();
  }

 private:
  Status OnKey(const std::string& key) override {
    if (depth() > 1 || std::find(known_.begin(), known_.end(), key) != known_.end()) return {};
    if (key == "tensor_shape") {
      ++dropped_->shapes;
    } else {
      dropped_->keys.insert(key);
    }
    SkipValue();
    return {};
  }

  Status OnValue(JsonValue& value) override {
    Add({.kind = value.kind, .number = value.number, .shown = value.Shown()});
    return {};
  }

  Status OnOpen(bool is_list) override {
    if (depth() == 0) return {};
    open_.push_back(Add({.shown = is_list ? "a list" : "an object", .is_list = is_list}));
    return {};
  }

  Status OnClose(bool /*is_list*/) override {
    if (!open_.empty()) open_.pop_back();
    return {};
  }

  // Returns the value's place, which stays while it is open.
  ItemValue* Add(ItemValue value) {
    if (!open_.empty()) return &open_.back()->elements.emplace_back(std::move(value));
    return &values_.insert_or_assign(Key(1), std::move(value)).first->second;
  }

  template <typename Number, typename Message>
  Status AddNumbers(const char* key, const ItemValue& list, Message* message) const {
    if (!list.is_list) {
      RESHARD_ASSIGN_OR_RETURN(const Number number, NumberOf<Number>(key, list));
      message->add_dim(number);
      return {};
    }
    for (const ItemValue& entry : list.elements) {
      RESHARD_ASSIGN_OR_RETURN(const Number number, NumberOf<Number>(key, entry));
      message->add_dim(number);
    }
    return {};
  }

  template <typename Number>
  Result<Number> NumberOf(const char* key, const ItemValue& value) const {
    const auto negative = static_cast<int64_t>(value.number);
    if (value.kind == JsonValue::Kind::kUnsigned && std::in_range<Number>(value.number)) {
      return static_cast<Number>(value.number);
    }
    if (value.kind == JsonValue::Kind::kNegative && std::in_range<Number>(negative)) {
      return static_cast<Number>(negative);
    }
    return Unfit(key,
                 fmt::format("an integer of {} bits{}", 8 * sizeof(Number),
                             std::is_signed_v<Number> ? "" : " that is not negative"),
                 value);
  }

  Status Unfit(const char* key, std::string_view expected, const ItemValue& found) const {
    return CorruptError(fmt::format("{}: {} {}: {}: expected {}, as protobuf holds it, found {}",
                                    Escape(path_), kind_, Quote(item_.name), key, expected,
                                    found.shown));
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
  std::span<const std::string_view> known_;
  Dropped* dropped_ = nullptr;
  std::map<std::string, ItemValue, std::less<>> values_;  // of the known keys
  std::vector<ItemValue*> open_;
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
                         layouts.size(), dropped.Warnings(), std::nullopt};
}

Result<RecodedStrategy> ToJson(const std::string& path, const std::string& bytes) {
  StrategyWriter writer(StrategyEncoding::kJson);
  RecodedStrategy recoded;
  uint32_t current_stage = 0;
  const auto in_file = [&path](const Status& status) {
    return status.ok() ? status
                       : status.WithMessage(fmt::format("{}: {}", Escape(path), status.message()));
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
    recoded.warnings.push_back(
        {WarningCode::kRepeatedNames,
         fmt::format("items with repeated names: {}; JSON keeps the last of each name",
                     writer.replaced())});
  }
  recoded.bytes = writer.TakeBytes(current_stage);
  return recoded;
}

// Gives the parameters new names. A map of a strategy that has its new names only is applied
// backwards; rules have a direction.
Result<Strategy> Renamed(const Strategy& strategy, const Renaming& renaming,
                         StrategyReport& report) {
  RESHARD_ASSIGN_OR_RETURN(const bool has_old_names, HasOldNames(strategy, renaming));
  if (has_old_names) return WithNewNames(strategy, renaming);
  const std::string& rules = renaming.renames().rules;
  const std::string example(strategy.stages().front().front().name);
  if (!rules.empty()) {
    const Status status = RulesDoNotFit(rules, example);
    return status.WithMessage(fmt::format("{}: {}", Escape(strategy.path()), status.message()));
  }
  RESHARD_ASSIGN_OR_RETURN(const std::optional<Strategy> back, WithOldNames(strategy, renaming));
  if (back) {
    report.notes.push_back(
        fmt::format("{}: has the new names of `renames`, so the old ones take their place",
                    Escape(strategy.path())));
    return *back;
  }
  report.warnings.push_back(
      {WarningCode::kUnusedRenames,
       fmt::format("{}: `renames` changes no name of the strategy, such as {}",
                   Escape(strategy.path()), Quote(example))});
  return strategy;
}

// Gives the parameters new names, and writes the file as WriteStrategy does.
Result<StrategyReport> WriteRenamed(const std::string& input, const std::string& output,
                                    const Renames& renames, bool force) {
  RESHARD_RETURN_IF_ERROR(CheckRenames(renames));
  RESHARD_ASSIGN_OR_RETURN(const Strategy strategy, ReadStrategy(input));
  StrategyReport report = ReportOf(strategy, 0);
  RESHARD_ASSIGN_OR_RETURN(const Strategy renamed, Renamed(strategy, Renaming(renames), report));
  RESHARD_RETURN_IF_ERROR(WriteStrategy(renamed, output, force));
  RESHARD_ASSIGN_OR_RETURN(const FileIdentity written, Storage::Of(output).Stat(output));
  report.bytes = written.size();
  return report;
}

}  // namespace

Status StrategyWriter::Add(const ParallelStrategyItem& item) {
  if (encoding_ == StrategyEncoding::kJson) {
    return Set(json_strategies_, item.node_name(), JsonOf(item));
  }
  AppendItem(item, &strategies_);
  return {};
}

Status StrategyWriter::Add(const ParallelLayoutItem& item) {
  if (encoding_ == StrategyEncoding::kJson) {
    return Set(json_layouts_, item.param_name(), JsonOf(item));
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

Result<std::string> EncodeStrategy(const Strategy& strategy, StrategyEncoding encoding) {
  StrategyWriter writer(encoding);
  const bool merged = strategy.is_pipeline();
  int64_t number = merged ? 0 : strategy.own_stage();
  const int64_t current = merged ? kMergedCurrentStage : number;
  for (const Strategy::Stage& stage : strategy.stages()) {
    ParallelStrategyItem item;
    item.set_node_name(fmt::format("reshard-stage{}", number));
    item.mutable_parallel_strategys()->set_stage(static_cast<uint32_t>(number));
    RESHARD_RETURN_IF_ERROR(writer.Add(item));
    for (const auto [name, layout] : stage) {
      RESHARD_ASSIGN_OR_RETURN(
          const ParallelLayoutItem layout_item,
          LayoutItem(merged ? fmt::format("{}-{}", number, name) : std::string(name), layout));
      RESHARD_RETURN_IF_ERROR(writer.Add(layout_item));
    }
    ++number;
  }
  std::string bytes = writer.TakeBytes(static_cast<uint32_t>(current));
  if (strategy.layouts() > kMaxStrategyLayouts || bytes.size() > kMaxStrategyFileBytes) {
    return MismatchError(fmt::format(
        "{}: expected at most {} layouts in a strategy file of at most {}, found {} in {}",
        Escape(strategy.path()), kMaxStrategyLayouts, FormatBytes(kMaxStrategyFileBytes),
        strategy.layouts(), FormatBytes(bytes.size())));
  }
  return bytes;
}

StrategyReport ReportOf(const Strategy& strategy, uint64_t bytes) {
  return {.stages = std::ssize(strategy.stages()),
          .devices_per_stage = strategy.devices_per_stage(),
          .layouts = strategy.layouts(),
          .bytes = bytes,
          .notes = strategy.notes()};
}

Result<RecodedStrategy> RecodeStrategy(const std::string& path, const std::string& bytes,
                                       StrategyEncoding encoding) {
  RESHARD_ASSIGN_OR_RETURN(StrategyFile file, ParseStrategy(path, bytes));
  RecodedStrategy recoded{bytes, file.layouts.size()};
  if (StrategyEncodingOf(bytes) != encoding) {
    RESHARD_ASSIGN_OR_RETURN(recoded, encoding == StrategyEncoding::kJson
                                          ? ToJson(path, bytes)
                                          : ToProtobuf(path, bytes));
  }
  Result<Strategy> strategy = StrategyTables::FromFile(std::move(file));
  if (strategy.ok()) recoded.strategy = *std::move(strategy);
  return recoded;
}

inline namespace v0_1 {

Result<StrategyReport> ConvertStrategyFile(const std::string& input, const std::string& output,
                                           const Renames& renames, bool force) {
  return CatchOutOfMemory([&]() -> Result<StrategyReport> {
    FileUse use;
    RESHARD_RETURN_IF_ERROR(use.AddOutput(output));
    if (!renames.empty()) return WriteRenamed(input, output, renames, force);
    std::vector<std::string> notes;
    RESHARD_ASSIGN_OR_RETURN(const std::string bytes, ReadStrategyBytes(input, notes));
    RESHARD_ASSIGN_OR_RETURN(RecodedStrategy recoded,
                             RecodeStrategy(input, bytes, StrategyEncodingOfName(output)));
    RESHARD_RETURN_IF_ERROR(WriteFile(output, recoded.bytes, force));
    StrategyReport report;
    if (recoded.strategy) report = ReportOf(*recoded.strategy, 0);
    report.layouts = recoded.layouts;
    report.bytes = recoded.bytes.size();
    report.warnings = std::move(recoded.warnings);
    report.notes = std::move(notes);
    return report;
  });
}

}  // namespace v0_1
}  // namespace reshard
