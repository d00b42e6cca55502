// The items of a strategy in JSON as text, for merging: every value as Python's json.dumps writes
// what json.loads has read.
#ifndef RESHARD_FORMAT_MINDSPORE_STRATEGY_STRATEGY_JSON_ITEMS_H_
#define RESHARD_FORMAT_MINDSPORE_STRATEGY_STRATEGY_JSON_ITEMS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reshard/status.h"

namespace reshard {

struct JsonItem {
  std::string name;   // UTF-8, without escapes
  std::string value;  // JSON
};

// A JSON object of items, in the order in which their names came first.
class JsonItems {
 public:
  // Adds an item, or replaces the value of the one of this name.
  void Set(JsonItem item);
  std::vector<JsonItem> TakeItems() { return std::move(items_); }
  std::string ToJson() const;

 private:
  std::vector<JsonItem> items_;
  std::unordered_map<std::string, size_t> by_name_;
};

struct JsonStrategyItems {
  JsonItems strategies;
  JsonItems layouts;
};

// Reads a file that ParseStrategyJson takes.
// Errors: kCorrupt.
Result<JsonStrategyItems> ReadJsonStrategyItems(const std::string& path, std::string_view bytes);

}  // namespace reshard

#endif  // RESHARD_FORMAT_MINDSPORE_STRATEGY_STRATEGY_JSON_ITEMS_H_
