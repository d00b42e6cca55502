#include "tests/fuzz/unique_json.h"

#include <set>
#include <string>
#include <vector>

namespace reshard {
namespace {

using Json = nlohmann::json;

}  // namespace

std::optional<Json> UniqueJson(std::string_view bytes) {
  // No JSON has a zero byte; nlohmann takes it for the end.
  if (bytes.find('\0') != std::string_view::npos) return std::nullopt;
  std::vector<std::set<std::string>> open;  // keys of the objects that have not ended
  bool unique = true;
  const auto look = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key) {
      unique &= open.back().insert(value.get<std::string>()).second;
    }
    return true;
  };
  Json tree = Json::parse(bytes, look, /*allow_exceptions=*/false);
  if (tree.is_discarded() || !unique) return std::nullopt;
  return tree;
}

}  // namespace reshard
