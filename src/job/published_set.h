// PublishedSet: looks in a target folder for the complete result of a run: all its files, whole,
// unchanged and made from the same sources.
//
// No state. Any thread; TakePublished needs the thread that holds the target's lock alone.
#ifndef RESHARD_SRC_JOB_PUBLISHED_SET_H_
#define RESHARD_SRC_JOB_PUBLISHED_SET_H_

#include <map>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/job/job_spec.h"
#include "src/os/job_lock.h"
#include "src/os/output_directory.h"
#include "src/record/part_record.h"

namespace reshard {

struct PublishedSet {
  bool found = false;
  // Why the set of the plan that is there is not the spec's; empty if there is none.
  std::string difference = {};
  std::map<std::string, LostValues> lost = {};  // by casts, by parameter
  std::vector<std::string> left = {};           // files of earlier sets that are still there
};

// Looks for the set of the spec. These have to be equal: the plan, the version, the key, the stamp
// of every source, and the size of every target file.
//
// A target file counts as unchanged if it is not younger than its part record. The record is
// written and moved after the file. A younger file, as in a copy or a restored backup, is read and
// compared with its digest. With OutputChoice::Resume::kVerify every file is read. Errors: as
// JobSpec::check_readers; kIo, kCancelled.
Result<PublishedSet> FindPublished(const OutputDirectory& target, const JobSpec& spec);

// As FindPublished. If the set is there, clears up the leftovers of its publication in `.reshard`,
// and files that were staged to write it again. If its publication did not end, there is no set
// yet.
Result<PublishedSet> TakePublished(const OutputDirectory& target, const JobLock& lock,
                                   const JobSpec& spec);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_PUBLISHED_SET_H_
