// Strings of JSON.
#ifndef RESHARD_SRC_BASE_JSON_STRING_H_
#define RESHARD_SRC_BASE_JSON_STRING_H_

#include <string>
#include <string_view>

namespace reshard {

// Returns whether JSON can hold `text`: whether it is UTF-8.
bool IsUtf8(std::string_view text);

// Returns whether JSON has `text` as it is, between quotes: so it is for nearly all names.
bool IsPlainJson(std::string_view text);

// Appends or returns `text` in quotes. Escapes only what JSON requires, as serde_json does. Bytes
// that are not UTF-8 become U+FFFD.
void AppendJsonString(std::string_view text, std::string& out);
std::string JsonString(std::string_view text);

// As Python's json.dumps, which escapes everything but printable ASCII.
void AppendAsciiJsonString(std::string_view text, std::string& out);
std::string AsciiJsonString(std::string_view text);

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_JSON_STRING_H_
