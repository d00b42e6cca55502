#include "format/pickle/pickle_objects.h"

#include <algorithm>
#include <utility>

namespace reshard {
namespace {

// Free objects keep the memory for so many items.
constexpr size_t kMostKeptItems = 16;

}  // namespace

PickleValue PickleObjects::New(PickleKind kind) {
  uint64_t place = objects_.size();
  if (free_.empty()) {
    objects_.emplace_back();
    grown_ += sizeof(PickleObject);
  } else {
    place = free_.back();
    free_.pop_back();
  }
  objects_[place].uses = 1;
  return {kind, 0, place};
}

PickleValue PickleObjects::GlobalValue(const PickleGlobal& global) {
  const auto [place, is_new] = numbers_.try_emplace(global, globals_.size());
  if (is_new) {
    globals_.push_back(global);
    grown_ += 4 * sizeof(PickleGlobal);
  }
  return {PickleKind::kGlobal, 0, place->second};
}

void PickleObjects::Use(const PickleValue& value) {
  if (value.is_object()) ++at(value).uses;
}

void PickleObjects::Release(const PickleValue& value) {
  const auto drop = [this](const PickleValue& dropped) {
    if (dropped.is_object() && --at(dropped).uses == 0) unused_.push_back(dropped);
  };
  drop(value);
  while (!unused_.empty()) {
    const PickleValue next = unused_.back();
    unused_.pop_back();
    PickleObject& object = at(next);
    std::vector<PickleValue> items = std::move(object.items);
    for (const PickleValue& item : items) drop(item);
    drop(object.arguments);
    drop(object.state);
    object = PickleObject();
    items.clear();
    if (items.capacity() <= kMostKeptItems) object.items = std::move(items);
    free_.push_back(static_cast<uint32_t>(next.data));
  }
}

bool PickleObjects::Seal(const PickleValue& inner, const PickleValue& outer) {
  if (!inner.is_object()) return true;
  PickleObject& object = at(inner);
  if (object.level >= kMostPickleLevels) return false;
  object.is_sealed = true;
  uint8_t& level = at(outer).level;
  level = std::max<uint8_t>(level, object.level + 1);
  return true;
}

Status PickleObjects::CheckGrowth() {
  grown_ = 0;
  return CheckMemory(*memory_, kBetweenChecks);
}

}  // namespace reshard
