#include "format/rename_map/rename_map_codec.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "src/base/json_reader.h"
#include "src/base/json_string.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

constexpr char kPatterns[] = "patterns";

// The first value that has no place in a rename map ends the reading.
class RenameReader final : public JsonReader {
 public:
  explicit RenameReader(const std::string& path) : JsonReader(path, StatusCode::kInvalidArgument) {}

  Renames TakeRenames() { return std::move(renames_); }

 private:
  Status OnValue(JsonValue& value) override {
    if (depth() == 0 || value.kind != JsonValue::Kind::kString) return Other(value.KindName());
    Map()[Key(depth())] = std::move(*value.text);
    return {};
  }

  Status OnOpen(bool is_list) override {
    if (is_list) return Other("an array");
    // A parameter called so has a string there.
    if (depth() == 2 || (depth() == 1 && Key(1) != kPatterns)) return Other("an object");
    if (depth() == 1) has_patterns_ = true;
    return {};
  }

  Status OnKey(const std::string& key) override {
    if (Map().contains(key) || (depth() == 1 && key == kPatterns && has_patterns_)) {
      return Error(fmt::format("the name {} occurs twice; remove one", Quote(key)));
    }
    return {};
  }

  std::map<std::string, std::string>& Map() {
    return depth() == 2 ? renames_.patterns : renames_.names;
  }

  Status Other(std::string_view found) const {
    if (depth() == 0) {
      return Error(
          fmt::format("expected an object {{\"old name\": \"new name\", ...}}, found {}", found));
    }
    return Error(
        fmt::format("the new name of {}: expected a string, found {}", Quote(Key(depth())), found));
  }

  Renames renames_;
  bool has_patterns_ = false;  // there was their object
};

// Returns an object of JSON texts, whose end `indent` precedes.
std::string ObjectOf(const std::map<std::string, std::string>& texts, const std::string& indent) {
  if (texts.empty()) return "{}";
  std::string object;
  for (const auto& [key, text] : texts) {
    object +=
        fmt::format("{}\n{}  {}: {}", object.empty() ? "{" : ",", indent, JsonString(key), text);
  }
  return fmt::format("{}\n{}}}", object, indent);
}

std::map<std::string, std::string> TextsOf(const std::map<std::string, std::string>& names) {
  std::map<std::string, std::string> texts;
  for (const auto& [from, to] : names) texts.emplace(from, JsonString(to));
  return texts;
}

}  // namespace

std::string RenameMapText(const Renames& renames) {
  std::map<std::string, std::string> texts = TextsOf(renames.names);
  if (!renames.patterns.empty()) texts[kPatterns] = ObjectOf(TextsOf(renames.patterns), "  ");
  return ObjectOf(texts, "") + '\n';
}

Result<Renames> ParseRenameMap(const std::string& path, std::string_view bytes) {
  RenameReader reader(path);
  RESHARD_RETURN_IF_ERROR(reader.Read(bytes));
  return reader.TakeRenames();
}

}  // namespace reshard
