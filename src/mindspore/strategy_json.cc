#include "src/mindspore/strategy_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/base/zero_byte.h"
#include "src/mindspore/strategy_codec.h"

namespace reshard {
namespace {

using Json = nlohmann::json;

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
  // As in protobuf: one list where nothing is nested; lists without entries are left out.
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

// Receives the parser's events. Depth counts the open containers: 1 is the file's object, 2 a
// section (strategy or layout items by name), 3 an item, 4 a list in it, 5 a list in that.
class StrategyReader : public Json::json_sax_t {
 public:
  StrategyReader(const std::string& path, uint64_t size, const MemoryCheck& memory)
      : path_(path), memory_(memory), size_(size) {
    file_.path = path;
  }

  const Status& status() const { return status_; }
  StrategyFile TakeFile() { return std::move(file_); }

  bool null() override { return Other("null"); }
  bool boolean(bool value) override { return Other(value ? "true" : "false"); }
  bool number_integer(int64_t value) override { return Number(value); }
  bool number_unsigned(uint64_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Other(fmt::format("{}", value));
    }
    return Number(static_cast<int64_t>(value));
  }
  bool number_float(double, const std::string& text) override { return Other(Escape(text)); }
  bool string(std::string& value) override { return Other(Quote(value)); }
  bool binary(Json::binary_t&) override { return Other("binary"); }

  bool start_object(size_t) override {
    if (skipped_ > 0 || Ignored()) return Skip();
    if (depth_ >= 3) return Other("an object");
    ++depth_;
    if (depth_ == 2) StartSection();
    if (depth_ == 3) StartItem();
    return true;
  }

  bool key(std::string& key) override {
    if (skipped_ > 0) return true;
    if (depth_ == 1) {
      section_ = key == "parallel_strategy_item" ? Section::kStrategies
                 : key == "parallel_layout_item" ? Section::kLayouts
                                                 : Section::kNone;
    } else if (depth_ == 2) {
      name_ = key;
    } else {
      field_ = FieldOf(key);
    }
    return true;
  }

  bool end_object() override {
    if (skipped_ > 0) return Unskip();
    if (depth_ == 3 && !EndItem()) return false;
    --depth_;
    return true;
  }

  bool start_array(size_t) override {
    if (skipped_ > 0 || Ignored()) return Skip();
    if (depth_ == 3 && IsList(field_)) {
      lists_.Clear();
    } else if (depth_ == 4 && IsNested(field_)) {
      lists_.Open();
      if (!Count()) return false;
    } else {
      return Other("a list");
    }
    ++depth_;
    return true;
  }

  bool end_array() override {
    if (skipped_ > 0) return Unskip();
    --depth_;
    if (depth_ == 4) {
      lists_.Close();
    } else {
      EndList();
    }
    return true;
  }

  bool parse_error(size_t position, const std::string& token, const Json::exception&) override {
    return Fail(
        position > size_
            ? fmt::format("expected JSON, found its end at byte {}; is the file cut off?", size_)
            : fmt::format("expected JSON, found an error at byte {}, near {}", position,
                          Quote(token)));
  }

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

  Field FieldOf(std::string_view key) const {
    if (section_ == Section::kStrategies) return key == "stage" ? Field::kStage : Field::kNone;
    for (const auto& [field, name] : kLayoutFields) {
      if (key == name) return field;
    }
    return Field::kNone;
  }

  static std::string_view NameOf(Field field) {
    for (const auto& [known, name] : kLayoutFields) {
      if (known == field) return name;
    }
    return "stage";
  }

  static bool IsNested(Field field) {
    return field == Field::kTensorMap || field == Field::kParamSplitShape ||
           field == Field::kIndicesOffset;
  }
  static bool IsList(Field field) {
    return IsNested(field) || field == Field::kDeviceMatrix || field == Field::kTensorShape;
  }

  // True where the value that comes belongs to a key that says nothing here.
  bool Ignored() const {
    return (depth_ == 1 && section_ == Section::kNone) || (depth_ == 3 && field_ == Field::kNone);
  }
  bool Skip() {
    ++skipped_;
    return true;
  }
  bool Unskip() {
    --skipped_;
    return true;
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

  bool EndItem() {
    if (section_ == Section::kStrategies) {
      if (!file_.first_item_stage) first_node_ = name_;
      if (name_ == first_node_) file_.first_item_stage = stage_;
      return true;
    }
    if (!has_matrix_ || !has_map_) {
      return Fail(
          fmt::format("parameter {}: expected a layout with dev_matrix and tensor_map, "
                      "found no {}",
                      Quote(name_), has_matrix_ ? "tensor_map" : "dev_matrix"));
    }
    if (file_.layouts.size() == kMaxStrategyLayouts) {
      return Fail(fmt::format("parameter {}: expected at most {} layouts, found more", Quote(name_),
                              kMaxStrategyLayouts));
    }
    file_.layouts.push_back(LayoutEntry{name_, layout_});
    if (file_.layouts.size() % kMemoryCheckInterval == 0) status_ = CheckMemory(memory_);
    return status_.ok();
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

  bool Number(int64_t value) {
    if (skipped_ > 0 || Ignored()) return true;
    if (depth_ == 4 || depth_ == 5) {
      if (value < 0 && field_ == Field::kTensorShape) return Other(fmt::format("{}", value));
      lists_.Add(value);
      return Count();
    }
    if (depth_ == 3 && field_ == Field::kStage && value >= 0) {
      stage_ = value;
    } else if (depth_ == 3 && field_ == Field::kField) {
      layout_.field = value;
    } else if (depth_ == 3 && field_ == Field::kOptStep) {
      layout_.opt_weight_shard_step = value;
    } else if (depth_ == 3 && field_ == Field::kOptSize) {
      layout_.opt_weight_shard_size = value;
    } else {
      return Other(fmt::format("{}", value));
    }
    return true;
  }

  bool Count() {
    if (++numbers_ <= kMaxItemNumbers) return true;
    return Fail(fmt::format("parameter {}: expected a layout of at most {} numbers, found more",
                            Quote(name_), kMaxItemNumbers));
  }

  // A value that nothing but an ignored key may have.
  bool Other(std::string_view found) {
    if (skipped_ > 0 || Ignored()) return true;
    if (depth_ == 0) return Fail(fmt::format("expected a JSON object, found {}", found));
    const bool layouts = section_ == Section::kLayouts;
    if (depth_ == 1) {
      return Fail(fmt::format("{}: expected an object, found {}",
                              layouts ? "parallel_layout_item" : "parallel_strategy_item", found));
    }
    const std::string item = fmt::format("{} {}", layouts ? "parameter" : "node", Quote(name_));
    if (depth_ == 2) return Fail(fmt::format("{}: expected an object, found {}", item, found));
    const bool unsigned_only = field_ == Field::kStage || field_ == Field::kTensorShape;
    const std::string_view expected = depth_ == 3 && IsList(field_) ? "a list of integers"
                                      : unsigned_only ? "an integer that is not negative"
                                                      : "an integer";
    return Fail(
        fmt::format("{}: {}: expected {}, found {}", item, NameOf(field_), expected, found));
  }

  bool Fail(std::string_view what) {
    status_ = CorruptError(fmt::format("{}: {}", Escape(path_), what));
    return false;
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

  const std::string& path_;
  const MemoryCheck& memory_;
  const uint64_t size_;
  Status status_;
  StrategyFile file_;

  int depth_ = 0;
  size_t skipped_ = 0;  // open containers of an ignored value
  Section section_ = Section::kNone;
  Field field_ = Field::kNone;
  std::string name_;        // of the open item
  std::string first_node_;  // of the first strategy item
  int64_t stage_ = 0;
  ParameterLayout layout_;
  bool has_matrix_ = false;
  bool has_map_ = false;
  NumberLists lists_;
  size_t numbers_ = 0;  // in the open item
};

using Json = nlohmann::json;

// json.dumps escapes everything but printable ASCII, with lower-case digits; so does this.
std::string JsonString(const std::string& utf8) {
  return Json(utf8).dump(-1, ' ', /*ensure_ascii=*/true);
}

// A number as Python prints it: integers of any size as they are, others as repr() does, whose
// choice of digits and exponent is fmt's but for the ".0" of a whole number.
std::string PythonNumber(double value, const std::string& text) {
  if (text.find_first_of(".eE") == std::string::npos) return text;
  std::string out = fmt::format("{}", value);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

// Receives the parser's events and writes the values of the two sections' items again. Depth counts
// the open containers: 1 is the file's object, 2 a section, more an item.
class ItemWriter : public Json::json_sax_t {
 public:
  explicit ItemWriter(const std::string& path) : path_(path) {}

  const Status& status() const { return status_; }
  JsonStrategyItems TakeItems() { return std::move(sections_); }

  bool null() override { return Value("null"); }
  bool boolean(bool value) override { return Value(value ? "true" : "false"); }
  bool number_integer(int64_t value) override { return Value(fmt::format("{}", value)); }
  bool number_unsigned(uint64_t value) override {
    if (depth_ == 1 && is_current_stage_) {
      sections_.current_stage = static_cast<int64_t>(std::min(value, kMostStages));
    }
    return Value(fmt::format("{}", value));
  }
  bool number_float(double value, const std::string& text) override {
    return Value(PythonNumber(value, text));
  }
  bool string(std::string& value) override { return Value(JsonString(value)); }
  bool binary(Json::binary_t&) override { return true; }  // not in JSON text

  bool start_object(size_t) override { return Open('{'); }
  bool end_object() override { return Close('}'); }
  bool start_array(size_t) override { return Open('['); }
  bool end_array() override { return Close(']'); }

  bool key(std::string& key) override {
    if (depth_ == 1) {
      is_current_stage_ = key == "current_stage";
      section_ = key == "parallel_strategy_item" ? &sections_.strategies
                 : key == "parallel_layout_item" ? &sections_.layouts
                                                 : nullptr;
      if (section_ != nullptr) *section_ = JsonItems();
    } else if (depth_ == 2) {
      name_ = key;
    } else if (section_ != nullptr) {
      Separate();
      text_ += JsonString(key) + ": ";
      first_ = true;  // no comma before the value
    }
    return true;
  }

  bool parse_error(size_t position, const std::string& token, const Json::exception&) override {
    status_ = CorruptError(fmt::format("{}: expected JSON, found an error at byte {}, near {}",
                                       Escape(path_), position, Quote(token)));
    return false;
  }

 private:
  // Begins an element of the open container, or a value behind its key.
  void Separate() {
    if (!first_) text_ += ", ";
    first_ = false;
  }

  bool Value(std::string_view text) {
    if (section_ == nullptr || depth_ < 2) return true;
    Separate();
    text_ += text;
    return true;
  }

  bool Open(char bracket) {
    if (section_ != nullptr && depth_ >= 2) {
      if (depth_ == 2) text_.clear();
      if (depth_ == 2) first_ = true;
      Separate();
      text_ += bracket;
      first_ = true;
    }
    ++depth_;
    return true;
  }

  bool Close(char bracket) {
    --depth_;
    if (section_ == nullptr || depth_ < 2) return true;
    text_ += bracket;
    first_ = false;
    if (depth_ == 2) section_->Set({name_, std::move(text_)});
    return true;
  }

  const std::string& path_;
  Status status_;
  JsonStrategyItems sections_;

  static constexpr uint64_t kMostStages = std::numeric_limits<int64_t>::max();

  size_t depth_ = 0;
  bool is_current_stage_ = false;  // what comes at depth 1
  JsonItems* section_ = nullptr;   // the open one, where it is one of the two
  std::string name_;               // of the open item
  std::string text_;               // what is written of it
  bool first_ = true;
};

}  // namespace

Result<StrategyFile> ParseStrategyJson(const std::string& path, std::string_view bytes,
                                       const MemoryCheck& memory) {
  RESHARD_RETURN_IF_ERROR(CheckNoZeroByte(path, bytes));
  StrategyReader reader(path, bytes.size(), memory);
  if (!Json::sax_parse(bytes.begin(), bytes.end(), &reader)) return reader.status();
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
    out += JsonString(item.name) + ": " + item.value;
  }
  return out + "}";
}

Result<JsonStrategyItems> ReadJsonStrategyItems(const std::string& path, std::string_view bytes) {
  ItemWriter writer(path);
  if (!Json::sax_parse(bytes.begin(), bytes.end(), &writer)) return writer.status();
  return writer.TakeItems();
}

std::string StrategyJson(int64_t current_stage, const JsonItems& strategies,
                         const JsonItems& layouts) {
  return fmt::format(
      R"({{"current_stage": {}, "parallel_strategy_item": {}, "parallel_layout_item": {}}})",
      current_stage, strategies.ToJson(), layouts.ToJson());
}

bool IsUtf8(const std::string& text) {
  const std::string kept = Json(text).dump(-1, ' ', false, Json::error_handler_t::ignore);
  return Json::parse(kept).get_ref<const std::string&>() == text;
}

}  // namespace reshard
