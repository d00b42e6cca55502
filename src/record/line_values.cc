#include "src/record/line_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <utility>

#include "reshard/tensor.h"
#include "src/base/json_reader.h"
#include "src/base/number_text.h"
#include "src/record/strict_json.h"

namespace reshard {

class LineValues::Reader final : public JsonReader {
 public:
  Reader() : JsonReader("a line") {}

  Values Take() { return std::move(values_); }

 private:
  Status OnOpen(bool is_list) override {
    return is_list && depth() == 0 ? Error("expected an object") : Status();
  }
  Status OnValue(JsonValue& value) override {
    if (depth() == 0) return Error("expected an object");
    std::vector<std::string_view> path;
    Value found;
    for (size_t i = 1; i <= depth(); ++i) {
      if (LevelAt(i).is_list) {
        ++found.lists;
      } else {
        path.emplace_back(Key(i));
      }
    }
    if (value.kind != JsonValue::Kind::kNull) {
      found.text = value.kind == JsonValue::Kind::kString ? *value.text : value.Shown();
    }
    values_[fmt::format("{}", fmt::join(path, "."))].push_back(std::move(found));
    return {};
  }

  Values values_;
};

std::optional<LineValues> LineValues::Read(std::string_view line) {
  Reader reader;
  if (!reader.Read(line).ok()) return std::nullopt;
  return LineValues(reader.Take());
}

const std::vector<LineValues::Value>& LineValues::Of(const std::string& member, int lists) {
  static const std::vector<Value> kNone;
  const auto found = values_.find(member);
  if (found == values_.end()) return kNone;
  for (const Value& value : found->second) {
    if (value.lists != lists) ok_ = false;
  }
  return found->second;
}

std::vector<std::string> LineValues::TextsIn(const std::string& member, int lists) {
  std::vector<std::string> texts;
  for (const Value& value : Of(member, lists)) {
    const auto bytes = value.text ? BytesOfText(*value.text) : std::nullopt;
    if (!bytes) ok_ = false;
    texts.push_back(bytes.value_or(""));
  }
  return texts;
}

std::optional<std::string> LineValues::Text(const std::string& member) {
  const std::vector<Value>& values = Of(member, 0);
  if (values.empty() || !values.front().text) return std::nullopt;
  const std::vector<std::string> texts = TextsIn(member, 0);
  if (texts.size() != 1) ok_ = false;
  return texts.front();
}

std::optional<uint64_t> LineValues::Size(const std::string& member) {
  const auto text = Text(member);
  if (!text) return std::nullopt;
  const auto number = ParseNumber<uint64_t>(*text);
  if (!number) ok_ = false;
  return number;
}

std::optional<int64_t> LineValues::Number(const std::string& member) {
  const auto text = Text(member);
  if (!text) return std::nullopt;
  const bool is_negative = text->starts_with('-');
  auto number = ParseNumber<int64_t>(text->substr(is_negative ? 1 : 0));
  if (number && is_negative) number = -*number;
  if (!number) ok_ = false;
  return number;
}

bool LineValues::Truth(const std::string& member) {
  const auto text = Text(member);
  if (text && *text != "true" && *text != "false") ok_ = false;
  return text == "true";
}

std::vector<std::string> LineValues::Texts(const std::string& member) { return TextsIn(member, 1); }

std::vector<int64_t> LineValues::Numbers(const std::string& member) {
  std::vector<int64_t> numbers;
  for (const std::string& text : Texts(member)) {
    const auto number = ParseNumber<int64_t>(text);
    if (!number) ok_ = false;
    numbers.push_back(number.value_or(0));
  }
  return numbers;
}

std::map<std::string, std::string> LineValues::Pairs(const std::string& member) {
  const std::vector<std::string> texts = TextsIn(member, 2);
  std::map<std::string, std::string> pairs;
  if (texts.size() % 2 != 0) ok_ = false;
  for (size_t i = 0; i + 1 < texts.size(); i += 2) pairs.emplace(texts[i], texts[i + 1]);
  return pairs;
}

std::vector<Selection::CastRule> LineValues::Casts(const std::string& member) {
  const std::vector<Value>& values = Of(member, 2);
  std::vector<Selection::CastRule> casts;
  if (values.size() % 2 != 0) ok_ = false;
  for (size_t i = 0; i + 1 < values.size(); i += 2) {
    Selection::CastRule& rule = casts.emplace_back();
    if (values[i].text) {
      rule.pattern = BytesOfText(*values[i].text).value_or("");
      if (rule.pattern.empty()) ok_ = false;
    }
    if (!values[i + 1].text) continue;
    rule.dtype = ParseDType(*values[i + 1].text);
    if (!rule.dtype) ok_ = false;
  }
  return casts;
}

}  // namespace reshard
