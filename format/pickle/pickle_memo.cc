#include "format/pickle/pickle_memo.h"

namespace reshard {

void PickleMemo::SetUp() {
  uint32_t entries = 0;
  entries_.reserve(wanted_.size());
  for (const uint64_t word : wanted_) {
    entries_.push_back(entries);
    entries += static_cast<uint32_t>(std::popcount(word));
  }
  values_.resize(entries);
}

}  // namespace reshard
