// CommitWorkers: the publication of what the workers of a conversion have staged.
//
// The last worker that ends publishes by itself; this is for when it was killed just then. May run
// at the same time as workers do. Prints nothing.
//
// Implemented in src/convert.
#ifndef RESHARD_COMMIT_H_
#define RESHARD_COMMIT_H_

#include <stop_token>
#include <string>
#include <vector>

#include "reshard/lock_waiting.h"
#include "reshard/status.h"

namespace reshard {

struct CommitOptions {
  std::string target;
  std::stop_token stop = {};  // a request ends the call with kCancelled, nothing published
  LockWaiting waiting = {};   // for workers that begin or publish
};

struct CommitReport {
  bool already_published = false;  // there was nothing left to do
  std::vector<std::string> warnings;
};

// Publishes; neither sources nor strategies are needed. Errors: kNotFound when workers have not
// finished, which are named, or where there is nothing to publish; kAlreadyExists for another run
// that is writing there; kCorrupt, kIo, kCancelled.
Result<CommitReport> CommitWorkers(const CommitOptions& options);

}  // namespace reshard

#endif  // RESHARD_COMMIT_H_
