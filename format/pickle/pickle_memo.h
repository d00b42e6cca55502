// PickleMemo: the entries of a pickle's memo that the pickle fetches. A pickler puts nearly all
// values there, and fetches few.
//
// Not for use from several threads at once.
#ifndef RESHARD_FORMAT_PICKLE_PICKLE_MEMO_H_
#define RESHARD_FORMAT_PICKLE_PICKLE_MEMO_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "format/pickle/pickle_value.h"

namespace reshard {

class PickleMemo {
 public:
  // Says that entry `index` is going to be fetched. For all entries, before SetUp().
  void Want(uint32_t index) { Set(index, wanted_); }
  void SetUp();

  // Returns the entry, or null if it is not wanted.
  std::optional<PickleValue>* Find(uint32_t index) {
    const size_t word = index / kBits;
    if (word >= wanted_.size() || (wanted_[word] & BitOf(index)) == 0) return nullptr;
    const uint64_t before = wanted_[word] & (BitOf(index) - 1);
    return &values_[entries_[word] + static_cast<size_t>(std::popcount(before))];
  }

  // Counts entry `index` as put.
  void CountPut(uint32_t index) {
    if (Set(index, put_)) ++puts_;
  }
  // The entries that were put, each once: the index for MEMOIZE.
  uint64_t puts() const { return puts_; }

 private:
  static constexpr uint32_t kBits = 64;

  static uint64_t BitOf(uint32_t index) { return uint64_t{1} << (index % kBits); }
  // Sets a bit. Returns whether it was not set.
  static bool Set(uint32_t index, std::vector<uint64_t>& words) {
    const size_t word = index / kBits;
    if (words.size() <= word) words.resize(word + 1);
    const bool is_new = (words[word] & BitOf(index)) == 0;
    words[word] |= BitOf(index);
    return is_new;
  }

  std::vector<uint64_t> wanted_;   // a bit for each index
  std::vector<uint64_t> put_;      // the same
  std::vector<uint32_t> entries_;  // that are before each word of `wanted_`
  std::vector<std::optional<PickleValue>> values_;
  uint64_t puts_ = 0;
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_PICKLE_PICKLE_MEMO_H_
