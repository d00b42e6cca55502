// SharedWork: reading many bytes, shared out to threads in pieces.
#ifndef RESHARD_SRC_VERIFY_SHARED_WORK_H_
#define RESHARD_SRC_VERIFY_SHARED_WORK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>

#include "reshard/byte_range.h"
#include "reshard/status.h"

namespace reshard {

// A piece of a parameter is planned by the thread that reads it, so that few plans are in memory at
// a time.
inline constexpr uint64_t kPieceBytes = uint64_t{256} << 20;
// What is read at a time: to compare it, whole elements of every dtype that a core's cache holds;
// to digest it, what is soon done with when the work is to stop.
inline constexpr uint64_t kComparisonStepBytes = uint64_t{1} << 20;
inline constexpr uint64_t kDigestStepBytes = uint64_t{32} << 20;

struct SharedWork {
  size_t workers = 1;                            // threads, the calling one included
  std::stop_token stop;                          // a request ends the work with kCancelled
  std::function<void(uint64_t bytes)> progress;  // called from any of the threads; may be empty
};

// Deals with the bytes `piece` of the thing number `index`.
using PieceTask = std::function<Status(size_t index, ByteRange piece, const std::stop_token& stop)>;

// Cuts things of these sizes into pieces of at most `piece_bytes` and calls `task` for each, in any
// order; things without bytes have none.
// Errors: the tasks', the first in time; kCancelled.
Status ForEachPiece(std::span<const uint64_t> sizes, uint64_t piece_bytes, const SharedWork& work,
                    const PieceTask& task);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_SHARED_WORK_H_
