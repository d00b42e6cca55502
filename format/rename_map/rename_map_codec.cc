#include "format/rename_map/rename_map_codec.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/base/json_reader.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

constexpr std::string_view kPatterns = "patterns";

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

}  // namespace

std::string RenameMapText(const Renames& renames) {
  nlohmann::json map = renames.names;
  if (!renames.patterns.empty()) map[kPatterns] = renames.patterns;
  return map.dump(2) + '\n';
}

Result<Renames> ParseRenameMap(const std::string& path, std::string_view bytes) {
  RenameReader reader(path);
  RESHARD_RETURN_IF_ERROR(reader.Read(bytes));
  return reader.TakeRenames();
}

}  // namespace reshard
