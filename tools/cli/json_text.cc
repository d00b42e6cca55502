#include "tools/cli/json_text.h"

namespace reshard {
namespace {

constexpr int kSchemaVersion = 1;

}  // namespace

nlohmann::ordered_json JsonHead(const std::string& command) {
  return {{"schema_version", kSchemaVersion}, {"command", command}};
}

std::string ToJsonText(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace reshard
