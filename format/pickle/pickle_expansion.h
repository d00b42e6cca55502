// PickleExpansion: how many bytes may be made of the values of a pickle. A few bytes of a pickle
// can refer to a large value again; what is written out for each reference follows from the size of
// the pickle.
//
// Not for use from several threads at once.
#ifndef RESHARD_FORMAT_PICKLE_PICKLE_EXPANSION_H_
#define RESHARD_FORMAT_PICKLE_PICKLE_EXPANSION_H_

#include <cstddef>
#include <cstdint>

#include "reshard/status.h"

namespace reshard {

class PickleExpansion {
 public:
  explicit PickleExpansion(size_t pickle_bytes)
      : pickle_bytes_(pickle_bytes), left_(kLeast + kForEach * pickle_bytes) {}

  // Counts bytes that are made of values. Errors: kResourceExhausted, without a path.
  Status Take(uint64_t bytes);

 private:
  // Tables of real checkpoints take less than twice the bytes of their pickle.
  static constexpr uint64_t kLeast = uint64_t{4} << 20;
  static constexpr uint64_t kForEach = 16;

  const size_t pickle_bytes_;
  uint64_t left_;
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_PICKLE_PICKLE_EXPANSION_H_
