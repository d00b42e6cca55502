// ReadAhead: which bytes of a target file to read ahead for a reader that goes through it in order.
//
// Thread-safe. If several threads read with one object at the same time, less or more is read
// ahead.
#ifndef RESHARD_SRC_FRONTEND_READ_AHEAD_H_
#define RESHARD_SRC_FRONTEND_READ_AHEAD_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "reshard/byte_range.h"

namespace reshard {

class ReadAhead {
 public:
  // Of a reader that begins at `begin` and ends at `end`.
  ReadAhead(uint64_t begin, uint64_t end) : end_(end), read_to_(begin), asked_to_(begin) {}

  // Returns the bytes behind `read` to pass to TargetView::Prefetch; none if `read` does not
  // continue the last one.
  ByteRange Behind(ByteRange read) {
    if (read_to_.exchange(read.end()) != read.offset) {
      asked_to_ = read.end();
      return {};
    }
    const uint64_t asked_to = asked_to_;
    if (asked_to >= std::min(end_, read.end() + kBytes / 2)) return {};
    const uint64_t from = std::max(asked_to, read.end());
    const uint64_t to = std::min(end_, read.end() + kBytes);
    asked_to_ = to;
    return {from, to - from};
  }

 private:
  static constexpr uint64_t kBytes = uint64_t{8} << 20;

  const uint64_t end_;
  std::atomic<uint64_t> read_to_;   // the end of the last read
  std::atomic<uint64_t> asked_to_;  // to here it was read ahead
};

}  // namespace reshard

#endif  // RESHARD_SRC_FRONTEND_READ_AHEAD_H_
