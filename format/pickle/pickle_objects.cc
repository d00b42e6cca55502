#include "format/pickle/pickle_objects.h"

#include <utility>

namespace reshard {
namespace {

// Free objects keep the memory for so many items.
constexpr size_t kMostKeptItems = 16;

}  // namespace

void PickleObjects::Enlarge() {
  const size_t first = blocks_.size() * kOfBlock;
  blocks_.push_back(std::make_unique<std::array<PickleObject, kOfBlock>>());
  grown_ += sizeof(*blocks_.back());
  for (size_t i = kOfBlock; i-- > 0;) free_.push_back(static_cast<uint32_t>(first + i));
}

PickleValue PickleObjects::GlobalValue(const PickleGlobal& global) {
  const auto [place, is_new] = numbers_.try_emplace(global, globals_.size());
  if (is_new) {
    globals_.push_back(global);
    grown_ += 4 * sizeof(PickleGlobal);
  }
  return {PickleKind::kGlobal, 0, place->second};
}

void PickleObjects::Free(const PickleValue& value) {
  const auto drop = [this](const PickleValue& dropped) {
    if (dropped.is_object() && --at(dropped).uses == 0) unused_.push_back(dropped);
  };
  unused_.push_back(value);
  while (!unused_.empty()) {
    const PickleValue next = unused_.back();
    unused_.pop_back();
    PickleObject& object = at(next);
    for (const PickleValue& item : object.items) drop(item);
    drop(object.arguments);
    drop(object.state);
    // Its place is used again, mostly with as many items.
    std::vector<PickleValue> items;
    if (object.items.capacity() <= kMostKeptItems) items.swap(object.items);
    items.clear();
    object = PickleObject{.items = std::move(items)};
    free_.push_back(static_cast<uint32_t>(next.data));
  }
}

Status PickleObjects::CheckGrowth() {
  grown_ = 0;
  return CheckMemory(*memory_, kBetweenChecks);
}

}  // namespace reshard
