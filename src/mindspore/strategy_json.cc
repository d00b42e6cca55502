#include "src/mindspore/strategy_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "src/base/json_reader.h"
#include "src/base/json_string.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/strategy_codec.h"

namespace reshard {
namespace {

// An item with more numbers is refused (SPEC.md, "Limits"); a list of the slices of 16,384 ranks
// has 32,768.
constexpr size_t kMaxItemNumbers = size_t{1} << 18;

// A list of numbers, or of lists of numbers ([0, [1, 2], -1]).
class NumberLists {
 public:
  void Clear() { *this = NumberLists(); }
  void Add(int64_t number) {
    if (!nested_) {
      flat_.push_back(number);
    } else if (open_) {
      lists_.back().push_back(number);
    } else {
      lists_.push_back({number});
    }
  }
  void Open() {
    if (!nested_) {
      for (const int64_t number : flat_) lists_.push_back({number});
      nested_ = true;
    }
    open_ = true;
    lists_.emplace_back();
  }
  void Close() { open_ = false; }

  std::vector<int64_t> TakeFlat() { return std::move(flat_); }
  // As in protobuf: a single list if there is no nesting; empty lists are left out.
  std::vector<std::vector<int64_t>> TakeLists() {
    if (!nested_) lists_.push_back(std::move(flat_));
    lists_.erase(std::remove_if(lists_.begin(), lists_.end(),
                                [](const std::vector<int64_t>& list) { return list.empty(); }),
                 lists_.end());
    return std::move(lists_);
  }

 private:
  bool nested_ = false;
  bool open_ = false;
  std::vector<int64_t> flat_;
  std::vector<std::vector<int64_t>> lists_;
};

// Depths: 1 is the file's object, 2 a section (strategy or layout items by name), 3 an item, 4 a
// list in it, 5 a list in that.
class StrategyReader final : public JsonReader {
 public:
  StrategyReader(const std::string& path, const MemoryCheck& memory)
      : JsonReader(path), memory_(memory) {
    file_.path = path;
  }

  StrategyFile TakeFile() { return std::move(file_); }

 private:
  enum class Section { kNone, kStrategies, kLayouts };
  enum class Field {
    kNone,  // ignored
    kStage,
    kDeviceMatrix,
    kTensorMap,
    kTensorShape,
    kField,
    kOptStep,
    kOptSize,
    kParamSplitShape,
    kIndicesOffset,
  };

  Status OnValue(JsonValue& value) override {
    const std::optional<int64_t> number = value.Integer();
    return number && depth() >= 3 ? Number(*number) : Other(value.Shown());
  }

  Status OnKey(const std::string& key) override {
    if (depth() == 1) {
      section_ = key == "parallel_strategy_item" ? Section::kStrategies
                 : key == "parallel_layout_item" ? Section::kLayouts
                                                 : Section::kNone;
      if (section_ == Section::kNone) SkipValue();
    } else if (depth() == 3) {
      field_ = FieldOf(key);
      if (field_ == Field::kNone) SkipValue();
    }
    return {};
  }

  Status OnOpen(bool is_list) override {
    if (!is_list) {
      if (depth() >= 3) return Other("an object");
      if (depth() == 1) StartSection();
      if (depth() == 2) StartItem();
      return {};
    }
    if (depth() == 3 && IsList(field_)) {
      lists_.Clear();
      return {};
    }
    if (depth() != 4 || !IsNested(field_)) return Other("a list");
    lists_.Open();
    return Count();
  }

  Status OnClose(bool is_list) override {
    if (!is_list) return depth() == 2 ? EndItem() : Status();
    if (depth() == 4) {
      lists_.Close();
    } else {
      EndList();
    }
    return {};
  }

  Field FieldOf(std::string_view key) const {
    if (section_ == Section::kStrategies) return key == "stage" ? Field::kStage : Field::kNone;
    for (const auto& [field, name] : kLayoutFields) {
      if (key == name) return field;
    }
    return Field::kNone;
  }

  static bool IsNested(Field field) {
    return field == Field::kTensorMap || field == Field::kParamSplitShape ||
           field == Field::kIndicesOffset;
  }
  static bool IsList(Field field) {
    return IsNested(field) || field == Field::kDeviceMatrix || field == Field::kTensorShape;
  }

  void StartSection() {
    // A section that comes twice counts as it stands the second time.
    if (section_ == Section::kLayouts) file_.layouts.clear();
    if (section_ == Section::kStrategies) file_.first_item_stage.reset();
  }

  void StartItem() {
    layout_ = {};
    stage_ = 0;
    has_matrix_ = false;
    has_map_ = false;
    numbers_ = 0;
  }

  Status EndItem() {
    const std::string& name = Key(2);
    if (section_ == Section::kStrategies) {
      if (!file_.first_item_stage) first_node_ = name;
      if (name == first_node_) file_.first_item_stage = stage_;
      return {};
    }
    if (!has_matrix_ || !has_map_) {
      return Error(
          fmt::format("parameter {}: expected a layout with dev_matrix and tensor_map, "
                      "found no {}",
                      Quote(name), has_matrix_ ? "tensor_map" : "dev_matrix"));
    }
    if (file_.layouts.size() == kMaxStrategyLayouts) {
      return Error(fmt::format("parameter {}: expected at most {} layouts, found more", Quote(name),
                               kMaxStrategyLayouts));
    }
    file_.layouts.push_back(Strategy::Entry{name, layout_});
    return file_.layouts.size() % kMemoryCheckInterval == 0 ? CheckMemory(memory_) : Status();
  }

  void EndList() {
    if (field_ == Field::kDeviceMatrix) {
      layout_.device_matrix = lists_.TakeFlat();
      has_matrix_ = true;
    } else if (field_ == Field::kTensorShape) {
      layout_.tensor_shape = lists_.TakeFlat();
    } else if (field_ == Field::kTensorMap) {
      layout_.tensor_map = lists_.TakeLists();
      if (layout_.tensor_map.empty()) layout_.tensor_map.emplace_back();  // a scalar's
      has_map_ = true;
    } else if (field_ == Field::kParamSplitShape) {
      layout_.param_split_shape = lists_.TakeLists();
    } else {
      layout_.indices_offset = lists_.TakeLists();
    }
  }

  Status Number(int64_t value) {
    if (depth() > 3) {
      if (value < 0 && field_ == Field::kTensorShape) return Other(fmt::format("{}", value));
      lists_.Add(value);
      return Count();
    }
    if (field_ == Field::kStage && value >= 0) {
      stage_ = value;
    } else if (field_ == Field::kField) {
      layout_.field = value;
    } else if (field_ == Field::kOptStep) {
      layout_.opt_weight_shard_step = value;
    } else if (field_ == Field::kOptSize) {
      layout_.opt_weight_shard_size = value;
    } else {
      return Other(fmt::format("{}", value));
    }
    return {};
  }

  Status Count() {
    if (++numbers_ <= kMaxItemNumbers) return {};
    return Error(fmt::format("parameter {}: expected a layout of at most {} numbers, found more",
                             Quote(Key(2)), kMaxItemNumbers));
  }

  // A value that may not be in the place at hand.
  Status Other(std::string_view found) const {
    if (depth() == 0) return Error(fmt::format("expected a JSON object, found {}", found));
    if (depth() == 1) return Error(fmt::format("{}: expected an object, found {}", Key(1), found));
    const std::string item =
        fmt::format("{} {}", section_ == Section::kLayouts ? "parameter" : "node", Quote(Key(2)));
    if (depth() == 2) return Error(fmt::format("{}: expected an object, found {}", item, found));
    const bool unsigned_only = field_ == Field::kStage || field_ == Field::kTensorShape;
    const std::string_view expected = depth() == 3 && IsList(field_) ? "a list of integers"
                                      : unsigned_only ? "an integer that is not negative"
                                                      : "an integer";
    return Error(fmt::format("{}: {}: expected {}, found {}", item, Key(3), expected, found));
  }

  static constexpr std::array<std::pair<Field, std::string_view>, 8> kLayoutFields = {{
      {Field::kDeviceMatrix, "dev_matrix"},
      {Field::kTensorMap, "tensor_map"},
      {Field::kTensorShape, "tensor_shape"},
      {Field::kField, "field"},
      {Field::kOptStep, "opt_weight_shard_step"},
      {Field::kOptSize, "opt_weight_shard_size"},
      {Field::kParamSplitShape, "param_split_shape"},
      {Field::kIndicesOffset, "indices_offset"},
  }};

  const MemoryCheck& memory_;
  StrategyFile file_;

  Section section_ = Section::kNone;
  Field field_ = Field::kNone;
  std::string first_node_;  // of the first strategy item
  int64_t stage_ = 0;
  ParameterLayout layout_;
  bool has_matrix_ = false;
  bool has_map_ = false;
  NumberLists lists_;
  size_t numbers_ = 0;  // in the open item
};

// A number as Python prints it. Integers of any size stay as they are. Other numbers are printed as
// by repr(); fmt chooses the same digits and exponents, but omits the ".0" of a whole number.
std::string PythonNumber(double value, const std::string& text) {
  if (text.find_first_of(".eE") == std::string::npos) return text;
  std::string out = fmt::format("{}", value);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

// Writes the values of the two sections' items again. Depth 2 is in a section, more is in an item.
class ItemWriter final : public JsonReader {
 public:
  // Ignored values may be of any depth.
  explicit ItemWriter(const std::string& path)
      : JsonReader(path, StatusCode::kCorrupt, std::numeric_limits<size_t>::max()) {}

  JsonStrategyItems TakeItems() { return std::move(sections_); }

 private:
  static constexpr uint64_t kMostStages = std::numeric_limits<int64_t>::max();

  Status OnValue(JsonValue& value) override {
    if (depth() >= 2) {
      Separate();
      text_ += TextOf(value);
    } else if (value.kind == JsonValue::Kind::kUnsigned && Key(1) == "current_stage") {
      sections_.current_stage = static_cast<int64_t>(std::min(value.number, kMostStages));
    }
    return {};
  }

  Status OnOpen(bool is_list) override {
    if (depth() >= 2) {
      Separate();
      text_ += is_list ? '[' : '{';
      first_ = true;
    }
    return {};
  }

  Status OnClose(bool is_list) override {
    if (depth() < 2) return {};
    text_ += is_list ? ']' : '}';
    first_ = false;
    if (depth() == 2) section_->Set({Key(2), std::move(text_)});
    return {};
  }

  Status OnKey(const std::string& key) override {
    if (depth() == 1) {
      section_ = key == "parallel_strategy_item" ? &sections_.strategies
                 : key == "parallel_layout_item" ? &sections_.layouts
                                                 : nullptr;
      if (section_ != nullptr) {
        *section_ = JsonItems();
      } else if (key != "current_stage") {
        SkipValue();
      }
    } else if (depth() == 2) {
      text_.clear();
      first_ = true;
    } else {
      Separate();
      text_ += AsciiJsonString(key) + ": ";
      first_ = true;  // no comma before the value
    }
    return {};
  }

  // Begins an element of the open container, or a value behind its key.
  void Separate() {
    if (!first_) text_ += ", ";
    first_ = false;
  }

  static std::string TextOf(const JsonValue& value) {
    if (value.kind == JsonValue::Kind::kString) return AsciiJsonString(*value.text);
    if (value.kind != JsonValue::Kind::kFraction) return value.Shown();
    return PythonNumber(value.fraction, *value.text);
  }

  JsonStrategyItems sections_;
  JsonItems* section_ = nullptr;  // the open one
  std::string text_;              // the text of an item
  bool first_ = true;
};

}  // namespace

Result<StrategyFile> ParseStrategyJson(const std::string& path, std::string_view bytes,
                                       const MemoryCheck& memory) {
  StrategyReader reader(path, memory);
  RESHARD_RETURN_IF_ERROR(reader.Read(bytes));
  return reader.TakeFile();
}

bool JsonItems::Set(JsonItem item) {
  const auto [place, added] = by_name_.emplace(item.name, items_.size());
  if (added) {
    items_.push_back(std::move(item));
  } else {
    items_[place->second].value = std::move(item.value);
  }
  return added;
}

std::string JsonItems::ToJson() const {
  std::string out = "{";
  for (const JsonItem& item : items_) {
    if (out.size() > 1) out += ", ";
    out += AsciiJsonString(item.name) + ": " + item.value;
  }
  return out + "}";
}

Result<JsonStrategyItems> ReadJsonStrategyItems(const std::string& path, std::string_view bytes) {
  ItemWriter writer(path);
  RESHARD_RETURN_IF_ERROR(writer.Read(bytes));
  return writer.TakeItems();
}

std::string StrategyJson(int64_t current_stage, const JsonItems& strategies,
                         const JsonItems& layouts) {
  return fmt::format(
      R"({{"current_stage": {}, "parallel_strategy_item": {}, "parallel_layout_item": {}}})",
      current_stage, strategies.ToJson(), layouts.ToJson());
}

}  // namespace reshard
