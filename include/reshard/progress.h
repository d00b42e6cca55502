// What a long call tells while it is under way: Progress, how far it is, and Waiting, which other
// process it waits for.
//
// Plain values. A callback that takes Progress is called from the call's threads, one call at a
// time, one that takes Waiting from the thread that made the call. Neither may throw: there is
// nobody to catch it, and the process would end.
//
// Implemented in src/base (header only).
#ifndef RESHARD_PROGRESS_H_
#define RESHARD_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace reshard {
inline namespace v0_1 {

// Bytes dealt with, and in all.
struct Progress {
  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;
};

// A lock that another process holds.
struct Waiting {
  std::string lock;                // the path of its file
  std::string holder;              // "process 4711 on node3"; empty where it is not known
  std::chrono::milliseconds time;  // so far
};

// How long a call waits, and who is told of it.
struct LockWaiting {
  // For one process at a time; then the call fails with kAlreadyExists. Nothing: for ever.
  std::optional<std::chrono::milliseconds> most = {};
  // Called after 2 s and whenever the time has doubled, at least once a minute; may be empty.
  std::function<void(const Waiting&)> report = {};
};

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_PROGRESS_H_
