// PickleMemo: the entries of a pickle's memo that the pickle fetches. A pickler puts nearly all
// values there, and fetches few.
//
// Not for use from several threads at once.
#ifndef RESHARD_FORMAT_PICKLE_PICKLE_MEMO_H_
#define RESHARD_FORMAT_PICKLE_PICKLE_MEMO_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "format/pickle/pickle_value.h"

namespace reshard {

class PickleMemo {
 public:
  // Says that entry `index` is going to be fetched. For all entries, before SetUp().
  void Want(uint32_t index);
  void SetUp();

  // Returns the entry, or null if it is not wanted.
  std::optional<PickleValue>* Find(uint32_t index);

  // Counts entry `index` as put. Returns false if it was before.
  void CountPut(uint32_t index);
  // The entries that were put, each once: the index for MEMOIZE.
  uint64_t puts() const { return puts_; }

 private:
  std::vector<uint64_t> wanted_;   // a bit for each index
  std::vector<uint64_t> put_;      // the same
  std::vector<uint32_t> entries_;  // that are before each word of `wanted_`
  std::vector<std::optional<PickleValue>> values_;
  uint64_t puts_ = 0;
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_PICKLE_PICKLE_MEMO_H_
