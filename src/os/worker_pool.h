// Workers: threads that share out independent tasks, and the errors they end with.
//
// Every thread started here is joined before the call returns.
#ifndef RESHARD_SRC_OS_WORKER_POOL_H_
#define RESHARD_SRC_OS_WORKER_POOL_H_

#include <cstddef>
#include <functional>
#include <stop_token>

#include "reshard/status.h"

namespace reshard {

// Does task number `task`; gives up with kCancelled soon after `stop` is requested.
using Task = std::function<Status(size_t task, const std::stop_token& stop)>;

// Does the tasks 0 to `tasks` - 1 on at most `workers` threads, the calling one included; each
// takes the next task that nobody has begun. A failure asks those at tasks of higher numbers to
// stop, a request of `stop` all; either keeps further tasks from being begun. Tasks of lower
// numbers go on, so that the failure of the lowest one is returned, whatever number of threads
// there are. Errors: the tasks'; kCancelled when `stop` kept some from being begun.
Status RunWorkers(size_t workers, size_t tasks, const Task& task, const std::stop_token& stop);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_WORKER_POOL_H_
