// Names and paths are any bytes, JSON strings are UTF-8: how one stands for the other.
//
// SPEC.md, "Names and paths", defines it. Pure functions.
#ifndef RESHARD_SRC_RECORD_BYTE_TEXT_H_
#define RESHARD_SRC_RECORD_BYTE_TEXT_H_

#include <optional>
#include <string>
#include <string_view>

namespace reshard {

// Returns the JSON string, quotes included, that stands for `bytes`.
std::string BytesAsJson(std::string_view bytes);

// Returns the bytes that the string `text`, UTF-8 and out of its JSON, stands for, or nothing when
// no bytes come as this string.
std::optional<std::string> BytesOfText(std::string_view text);

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_BYTE_TEXT_H_
