#include "src/mindspore/strategy_json_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "src/base/quote.h"

namespace reshard {
namespace {

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
