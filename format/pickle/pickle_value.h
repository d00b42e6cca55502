// PickleValue: a value of a pickle, as the reader of format/pickle/pickle_reader.h holds it.
#ifndef RESHARD_FORMAT_PICKLE_PICKLE_VALUE_H_
#define RESHARD_FORMAT_PICKLE_PICKLE_VALUE_H_

#include <cstdint>
#include <string_view>

namespace reshard {

enum class PickleKind : uint8_t {
  kNone,
  kBool,
  kInteger,
  kFloat,
  kText,
  kBytes,
  kGlobal,  // a class or function, by its name
  kRecord,  // the caller's own number, in place of a node
  // Objects, which have values inside.
  kTuple,
  kList,
  kDict,
  kNode,          // an instance of a class, or the result of a function
  kPersistentId,  // an object that the pickle does not hold
};

// Pickle has functions for its content.
struct PickleValue {
  PickleKind kind = PickleKind::kNone;
  uint32_t length = 0;  // of a text or of bytes
  // The number; the bits of a float; the offset of a text or of bytes; the place of a global or of
  // an object in its table.
  uint64_t data = 0;

  bool is_object() const { return kind >= PickleKind::kTuple; }
};

// A class or a function by its name, with views into the pickle.
struct PickleGlobal {
  std::string_view module;
  std::string_view name;

  friend bool operator==(const PickleGlobal&, const PickleGlobal&) = default;
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_PICKLE_PICKLE_VALUE_H_
