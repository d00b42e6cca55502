// JSON as this program prints it. Pure functions.
#ifndef RESHARD_TOOLS_CLI_JSON_TEXT_H_
#define RESHARD_TOOLS_CLI_JSON_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

namespace reshard {

// Returns what every object that is printed begins with: schema_version and the command's name.
nlohmann::ordered_json JsonHead(const std::string& command);

// Returns one line of ASCII without its end: other characters, those that a terminal would obey
// among them, come out as \uXXXX. Bytes that are not UTF-8 become U+FFFD.
std::string ToJsonText(const nlohmann::ordered_json& value);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_JSON_TEXT_H_
