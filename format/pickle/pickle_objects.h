// PickleObjects: the objects and globals of a pickle that is being read.
//
// An object that was put into another is sealed: it gets no further items. So items and arguments
// have no cycles, and their depth is known. States may have cycles; these live as long as the
// pickle.
//
// Not for use from several threads at once.
#ifndef RESHARD_FORMAT_PICKLE_PICKLE_OBJECTS_H_
#define RESHARD_FORMAT_PICKLE_PICKLE_OBJECTS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
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
  std::vector<PickleValue> items = {};  // of a tuple, list, dict or node
  PickleValue arguments = {};           // of a node; the id of a persistent id
  PickleValue state = {};               // of a node
  uint32_t global = 0;                  // of a node
  uint32_t uses = 0;                    // values that refer to it
  uint8_t level = 1;                    // how many objects are inside of each other, with itself
  bool is_sealed = false;
  bool has_state = false;
  bool has_pairs = false;               // a node with SETITEMS
  std::optional<uint64_t> record = {};  // that stands for this node
};

class PickleObjects {
 public:
  // `memory` has to stay until the pickle is read.
  explicit PickleObjects(const MemoryCheck& memory) : memory_(&memory) {}

  const PickleObject& at(const PickleValue& value) const {
    return (*blocks_[value.data / kOfBlock])[value.data % kOfBlock];
  }
  PickleObject& at(const PickleValue& value) {
    return (*blocks_[value.data / kOfBlock])[value.data % kOfBlock];
  }
  const PickleGlobal& global(uint32_t number) const { return globals_[number]; }

  // Returns a new object, used once.
  PickleValue New(PickleKind kind) {
    if (free_.empty()) Enlarge();
    const uint32_t place = free_.back();
    free_.pop_back();
    const PickleValue value = {kind, 0, place};
    at(value).uses = 1;
    return value;
  }
  PickleValue GlobalValue(const PickleGlobal& global);

  // A value refers to the object from now on, or does so no longer.
  void Use(const PickleValue& value) {
    if (value.is_object()) ++at(value).uses;
  }
  void Release(const PickleValue& value) {
    if (value.is_object() && --at(value).uses == 0) Free(value);
  }

  // Seals `inner`, which gets into `outer`. Returns false if that would be too deep.
  bool Seal(const PickleValue& inner, const PickleValue& outer) {
    if (!inner.is_object()) return true;
    PickleObject& object = at(inner);
    if (object.level >= kMostPickleLevels) return false;
    object.is_sealed = true;
    uint8_t& level = at(outer).level;
    level = std::max<uint8_t>(level, object.level + 1);
    return true;
  }

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

  static constexpr size_t kOfBlock = 64;

  // Adds a block of free objects.
  void Enlarge();
  // Frees an object without uses, and those that it alone used.
  void Free(const PickleValue& value);

  const MemoryCheck* memory_;
  uint64_t grown_ = 0;  // bytes, since the last check
  std::vector<std::unique_ptr<std::array<PickleObject, kOfBlock>>> blocks_;
  std::vector<uint32_t> free_;       // places of objects
  std::vector<PickleValue> unused_;  // to be released; empty between calls
  std::deque<PickleGlobal> globals_;
  std::unordered_map<PickleGlobal, uint32_t, GlobalHash> numbers_;  // of globals
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_PICKLE_PICKLE_OBJECTS_H_
