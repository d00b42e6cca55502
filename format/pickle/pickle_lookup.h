// PickleLookup: finds entries of dicts of a pickle. Each dict is gone through once, however often
// it is asked for: a few bytes of a pickle can refer to a large dict again.
//
// Not for use from several threads at once.
#ifndef RESHARD_FORMAT_PICKLE_PICKLE_LOOKUP_H_
#define RESHARD_FORMAT_PICKLE_PICKLE_LOOKUP_H_

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/pickle/pickle_reader.h"

namespace reshard {

class PickleLookup {
 public:
  // `pickle` is read, and outlives this.
  explicit PickleLookup(const Pickle& pickle) : pickle_(pickle) {}

  const Pickle& pickle() const { return pickle_; }

  // As Pickle::Find. Keys have at most 64 bytes.
  const PickleValue* Find(const PickleValue& dict, std::string_view key);

 private:
  const Pickle& pickle_;
  // By the place of the dict: the places of its keys in Items, by key, the last of equal ones
  // first.
  std::unordered_map<uint64_t, std::vector<uint32_t>> sorted_;
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_PICKLE_PICKLE_LOOKUP_H_
