// Verify: a finished target folder, read again and compared with its manifests.
//
// Any number of calls may run at once; each uses its own threads and state. They print nothing and
// write nothing.
//
// Implemented in src/api.
#ifndef RESHARD_VERIFY_H_
#define RESHARD_VERIFY_H_

#include <functional>
#include <stop_token>
#include <string>

#include "reshard/damage.h"
#include "reshard/progress.h"
#include "reshard/status.h"

namespace reshard {

struct VerifyOptions {
  std::string target;         // a folder that Convert has finished
  int jobs = 2;               // files read at a time; 0: one for each core
  std::stop_token stop = {};  // a request ends the run with kCancelled
  std::function<void(const Progress&)> progress =
      {};  // called from worker threads, one call at a time; may be empty
};

// Reads every file that the manifests in the folder list and compares size, digest and the digests
// of its blocks; part records and manifests are compared with their digests. Files that no manifest
// lists do not matter. Damage is no error: the report says what is wrong.
// Errors: kNotFound when there is no manifest, so that the set is unfinished; kUnsupported for
// manifests of another version; kChanged when files changed meanwhile; kIo; kCancelled.
Result<DamageReport> Verify(const VerifyOptions& options);

}  // namespace reshard

#endif  // RESHARD_VERIFY_H_
