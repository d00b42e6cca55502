// Reads pickles as data (SPEC.md). Classes and functions are names: they are never imported, looked
// up or called.
//
// Plain values and functions without state; any thread.
#ifndef RESHARD_FORMAT_PICKLE_PICKLE_READER_H_
#define RESHARD_FORMAT_PICKLE_PICKLE_READER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "format/pickle/pickle_objects.h"
#include "format/pickle/pickle_value.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"

namespace reshard {

// Values of a pickle, with views into its bytes, which have to stay.
//
// Each function takes a value of this pickle, of the kind that it names.
class Pickle {
 public:
  bool Bool(const PickleValue& value) const { return value.data != 0; }
  int64_t Integer(const PickleValue& value) const { return static_cast<int64_t>(value.data); }
  double Float(const PickleValue& value) const;
  // Of a text, which need not be UTF-8, or of bytes.
  std::string_view Text(const PickleValue& value) const {
    return bytes_.substr(value.data, value.length);
  }
  // The elements of a tuple or list. Keys and values in turn of a dict; keys may repeat. Of a node:
  // either, whatever was added to it.
  std::span<const PickleValue> Items(const PickleValue& value) const {
    return objects_.at(value).items;
  }

  // Of a global; of a node: its class or function.
  const PickleGlobal& Global(const PickleValue& value) const {
    return objects_.global(GlobalNumber(value));
  }
  // A number for Global(), the same for all values with that global. From 0 on, without gaps.
  uint32_t GlobalNumber(const PickleValue& value) const {
    if (value.kind == PickleKind::kNode) return objects_.at(value).global;
    return static_cast<uint32_t>(value.data);
  }
  // Of a node: the tuple of its arguments; its state, kNone if there is none.
  const PickleValue& Arguments(const PickleValue& node) const {
    return objects_.at(node).arguments;
  }
  const PickleValue& State(const PickleValue& node) const { return objects_.at(node).state; }
  // Of a node: whether its items are keys and values in turn.
  bool HasPairs(const PickleValue& node) const { return objects_.at(node).has_pairs; }

  // Of a persistent id.
  const PickleValue& Id(const PickleValue& value) const { return objects_.at(value).arguments; }

  // Returns the value of `key`, a text, in a dict: the last one. Null if the dict lacks it.
  const PickleValue* Find(const PickleValue& dict, std::string_view key) const;

  // As messages show it: 12, "text", a tuple of 2, posix.system(..).
  std::string Shown(const PickleValue& value) const;

  // The value of the whole pickle; kNone while it is being read.
  const PickleValue& top() const { return top_; }

 private:
  friend class PickleMachine;
  Pickle(std::string_view bytes, const MemoryCheck& memory) : bytes_(bytes), objects_(memory) {}

  std::string_view bytes_;
  PickleObjects objects_;
  PickleValue top_;
};

// Asked for each node, when it is made and when it gets its state. May return a number of the
// caller's own, which from then on stands for the node as a value of the kind kRecord. Then the
// node's memory is free. An error ends the reading.
using PickleCollapse =
    std::function<Result<std::optional<uint64_t>>(const Pickle& pickle, const PickleValue& node)>;

// Errors:
//   kCorrupt, without a path: breaks SPEC.md; names opcode and offset
//   kResourceExhausted: its values take far more memory than its bytes
//   as `collapse` and `memory`, which is asked now and then
Result<Pickle> ReadPickle(std::string_view bytes, const PickleCollapse& collapse = {},
                          const MemoryCheck& memory = {});

}  // namespace reshard

#endif  // RESHARD_FORMAT_PICKLE_PICKLE_READER_H_
