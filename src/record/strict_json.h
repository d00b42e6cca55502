// Strict JSON: documents with known members in a fixed order; only optional members may be missing.
// Names and paths are any bytes and JSON strings are UTF-8, so this file also has their encoding.
// No state; any thread.
#ifndef RESHARD_SRC_RECORD_STRICT_JSON_H_
#define RESHARD_SRC_RECORD_STRICT_JSON_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "reshard/status.h"
#include "src/base/json_reader.h"

namespace reshard {

// Returns the JSON string, quotes included, that stands for `bytes` (SPEC.md, "Names and paths").
std::string BytesAsJson(std::string_view bytes);
// Appends it.
void AppendBytesAsJson(std::string_view bytes, std::string& out);
// Returns null in place of an empty string.
std::string BytesAsJsonOrNull(std::string_view bytes);

// Returns the JSON list of the results of `to_json` for each item.
template <typename Items, typename ToJson>
std::string JsonList(const Items& items, ToJson to_json) {
  std::string json = "[";
  for (const auto& item : items) {
    if (json.size() > 1) json += ',';
    json += to_json(item);
  }
  return json + ']';
}

// Returns the bytes that a string stands for; no value if no bytes are encoded so. `text` is UTF-8,
// already decoded from JSON.
std::optional<std::string> BytesOfText(std::string_view text);

enum class JsonKind : uint8_t {
  kUnsigned,
  kString,
  kStringOrNull,
  kBytes,  // a string that stands for any bytes
  kObject,
  kArray,
};

// The values allowed at a place of a document.
struct JsonShape {
  const char* name;  // of the member; null for the elements of an array
  JsonKind kind;
  int field;  // handed to the sink
  // The members of an object, or the one shape of an array's elements.
  std::span<const JsonShape> parts = {};
  bool may_miss = false;  // a member
};

// Receives each value, with the bytes it stands for if its kind is kBytes, and each object after
// its members; never an array. An error ends the reading.
using JsonSink = std::function<Status(int field, const JsonValue& value)>;

// Reads one document, without building a tree. `where` names it in messages; `shape` describes an
// object. Errors: kCorrupt, naming the byte and the member; the sink's errors with the same prefix.
Status ReadStrictJson(std::string_view bytes, const std::string& where, const JsonShape& shape,
                      const JsonSink& sink);

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_STRICT_JSON_H_
