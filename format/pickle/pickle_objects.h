// PickleObjects: the objects and globals of a pickle that is being read.
//
// An object that was put into another is sealed: it gets no further items. So items and arguments
// have no cycles, and their depth is known. States may have cycles; these live as long as the
// pickle.
//
// Not for use from several threads at once.
#ifndef RESHARD_FORMAT_PICKLE_PICKLE_OBJECTS_H_
#define RESHARD_FORMAT_PICKLE_PICKLE_OBJECTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/pickle/pickle_value.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"

namespace reshard {

// The most objects inside of each other.
inline constexpr uint8_t kMostPickleLevels = 64;

struct PickleObject {
  std::vector<PickleValue> items;  // of a tuple, list, dict or node
  PickleValue arguments;           // of a node; the id of a persistent id
  PickleValue state;               // of a node
  uint32_t global = 0;             // of a node
  uint32_t uses = 0;               // values that refer to it
  uint8_t level = 1;               // how many objects are inside of each other, with itself
  bool is_sealed = false;
  bool has_state = false;
  bool has_pairs = false;               // a node with SETITEMS
  std::optional<uint64_t> record = {};  // that stands for this node
};

class PickleObjects {
 public:
  // `memory` has to stay until the pickle is read.
  explicit PickleObjects(const MemoryCheck& memory) : memory_(&memory) {}

  const PickleObject& at(const PickleValue& value) const { return objects_[value.data]; }
  PickleObject& at(const PickleValue& value) { return objects_[value.data]; }
  const PickleGlobal& global(uint32_t number) const { return globals_[number]; }

  // Returns a new object, used once.
  PickleValue New(PickleKind kind);
  PickleValue GlobalValue(const PickleGlobal& global);

  // A value refers to the object from now on, or does so no longer.
  void Use(const PickleValue& value);
  void Release(const PickleValue& value);

  // Seals `inner`, which gets into `outer`. Returns false if that would be too deep.
  bool Seal(const PickleValue& inner, const PickleValue& outer);

  // Notes that `bytes` more were taken. Returns whether memory has to be asked for: CheckGrowth.
  bool Grow(uint64_t bytes) {
    grown_ += bytes;
    return grown_ >= kBetweenChecks;
  }
  Status CheckGrowth();
  // The memory check is not asked any more.
  void Finish() { memory_ = nullptr; }

 private:
  static constexpr uint64_t kBetweenChecks = uint64_t{1} << 20;  // bytes

  struct GlobalHash {
    size_t operator()(const PickleGlobal& global) const {
      const std::hash<std::string_view> hash;
      return hash(global.module) * 31 + hash(global.name);
    }
  };

  const MemoryCheck* memory_;
  uint64_t grown_ = 0;  // bytes, since the last check
  std::deque<PickleObject> objects_;
  std::vector<uint32_t> free_;       // places in there
  std::vector<PickleValue> unused_;  // to be released; empty between calls
  std::deque<PickleGlobal> globals_;
  std::unordered_map<PickleGlobal, uint32_t, GlobalHash> numbers_;  // of globals
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_PICKLE_PICKLE_OBJECTS_H_
