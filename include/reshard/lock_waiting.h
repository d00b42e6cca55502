// Waiting for locks: how long a call waits for another process, and who is told of it.
//
// Plain values. `report` is called from the thread that made the call; it must not throw.
//
// Implemented in src/os.
#ifndef RESHARD_LOCK_WAITING_H_
#define RESHARD_LOCK_WAITING_H_

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace reshard {

struct Waiting {
  std::string lock;                // the path of its file
  std::string holder;              // "process 4711 on node3"; empty where it is not known
  std::chrono::milliseconds time;  // so far
};

struct LockWaiting {
  // For one process at a time; then the call fails with kAlreadyExists. Nothing: for ever.
  std::optional<std::chrono::milliseconds> most = {};
  // Called after 2 s and whenever the time has doubled, at least once a minute; may be empty.
  std::function<void(const Waiting&)> report = {};
};

}  // namespace reshard

#endif  // RESHARD_LOCK_WAITING_H_
