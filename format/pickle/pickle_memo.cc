#include "format/pickle/pickle_memo.h"

#include <bit>

namespace reshard {
namespace {

constexpr uint32_t kBits = 64;

uint64_t BitOf(uint32_t index) { return uint64_t{1} << (index % kBits); }

// Sets a bit. Returns whether it was not set.
bool Set(uint32_t index, std::vector<uint64_t>& words) {
  const size_t word = index / kBits;
  if (words.size() <= word) words.resize(word + 1);
  const bool is_new = (words[word] & BitOf(index)) == 0;
  words[word] |= BitOf(index);
  return is_new;
}

}  // namespace

void PickleMemo::Want(uint32_t index) { Set(index, wanted_); }

void PickleMemo::SetUp() {
  uint32_t entries = 0;
  entries_.reserve(wanted_.size());
  for (const uint64_t word : wanted_) {
    entries_.push_back(entries);
    entries += static_cast<uint32_t>(std::popcount(word));
  }
  values_.resize(entries);
}

std::optional<PickleValue>* PickleMemo::Find(uint32_t index) {
  const size_t word = index / kBits;
  if (word >= wanted_.size() || (wanted_[word] & BitOf(index)) == 0) return nullptr;
  const uint64_t before = wanted_[word] & (BitOf(index) - 1);
  return &values_[entries_[word] + static_cast<size_t>(std::popcount(before))];
}

void PickleMemo::CountPut(uint32_t index) {
  if (Set(index, put_)) ++puts_;
}

}  // namespace reshard
