// The JSON form of a strategy file: parsed (strategy_codec.h is the way in), or as text, item by
// item.
#ifndef RESHARD_SRC_MINDSPORE_STRATEGY_JSON_H_
#define RESHARD_SRC_MINDSPORE_STRATEGY_JSON_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reshard/status.h"
#include "src/base/memory_check.h"
#include "src/mindspore/strategy_tables.h"

namespace reshard {

// Parses without recursion and without a tree, so any input costs at most a few times its size. The
// result may have no layouts. Errors: kCorrupt (path, byte or parameter and key).
Result<StrategyFile> ParseStrategyJson(const std::string& path, std::string_view bytes,
                                       const MemoryCheck& memory);

// The items of a strategy in JSON as text, for merging and converting. Each value is as Python's
// json.dumps writes it after json.loads.
struct JsonItem {
  std::string name;   // UTF-8, without escapes
  std::string value;  // JSON
};

// A JSON object of items, in the order in which their names came first.
class JsonItems {
 public:
  // Adds an item, or replaces the value of the one of this name. Returns whether it was added.
  bool Set(JsonItem item);
  std::vector<JsonItem> TakeItems() { return std::move(items_); }
  std::string ToJson() const;

 private:
  std::vector<JsonItem> items_;
  std::unordered_map<std::string, size_t> by_name_;
};

struct JsonStrategyItems {
  int64_t current_stage = 0;  // as the file says, if it says a whole number
  JsonItems strategies;
  JsonItems layouts;
};

// Reads a file that ParseStrategyJson takes.
// Errors: kCorrupt.
Result<JsonStrategyItems> ReadJsonStrategyItems(const std::string& path, std::string_view bytes);

// Returns the text of a whole file.
std::string StrategyJson(int64_t current_stage, const JsonItems& strategies,
                         const JsonItems& layouts);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_STRATEGY_JSON_H_
