// The files that earlier runs left in a target's `.reshard`: decides what happens to them, and
// prepares the folder for a run.
//
// No state. Any thread may call the functions, which only read, except Recover. Recover needs a
// thread that holds the target's lock exclusively.
#ifndef RESHARD_SRC_JOB_LEFTOVERS_H_
#define RESHARD_SRC_JOB_LEFTOVERS_H_

#include <optional>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/job/job_folder.h"
#include "src/job/job_spec.h"
#include "src/os/output_directory.h"
#include "src/record/manifest_codec.h"

namespace reshard {

enum class Fate {
  kDiscard,   // staged by a run that never came to publish
  kContinue,  // staged by an interrupted run of this very job, to be gone on with
  kComplete,  // an interrupted publication of the same plan, of other files or other sources
  kResume,    // the interrupted publication of this very run
  kCleanUp,   // this very run was published and interrupted afterwards, and is not forced
  kAbandon,   // an interrupted publication of another plan, dropped by force
};

struct Leftover {
  std::string fingerprint;  // its folder's name
  Fate fate = Fate::kDiscard;
  bool published = false;           // all but clearing up was done
  bool same_files = false;          // it was to write, or had written, the same files
  std::vector<ManifestFile> files;  // of its manifest, if it was or is being published
};

// Judges the folders in `parent`, the `.reshard` of `target`, for a run of `spec`. Ignores entries
// whose names are not job fingerprints.
// Errors:
//   kAlreadyExists: an interrupted publication of another plan, without force
//   kChanged, kMismatch: the spec resumes staged files that do not fit it
//   kCorrupt, kIo
Result<std::vector<Leftover>> JudgeLeftovers(const OutputDirectory& target,
                                             const OutputDirectory& parent, const JobSpec& spec);

// Tells spec.note of the finished files that a run of `spec` is about to discard with `leftovers`,
// if there are any. Errors: kIo.
Status NoteDiscarded(const OutputDirectory& parent, const std::vector<Leftover>& leftovers,
                     const JobSpec& spec);

// Returns the files of the target folder's manifest, if it is one of the spec's plan that lists the
// spec's files, and these are there. Errors: kIo.
Result<std::optional<std::vector<ManifestFile>>> PublishedFiles(const OutputDirectory& target,
                                                                const JobSpec& spec);

// Returns the files that the manifests in `target` list, if there are manifests and all these files
// are there with their sizes. Errors: kNotFound; as ParseManifest; kIo.
Result<std::vector<ManifestFile>> CheckPublished(const OutputDirectory& target);

struct Recovered {
  std::optional<JobFolder> folder;       // of this very job, to be gone on with
  bool already_staged = false;           // only its publication is left to do, or to clear up after
  std::vector<ManifestFile> publishing;  // the files of the interrupted publication
  bool same_files = false;               // an earlier run was to write the same files
  std::vector<ManifestFile> abandoned;   // files of publications that are dropped by force
  std::vector<std::string> abandoned_jobs;  // their fingerprints; they go when this run publishes
};

// Clears, completes or takes up the folders that earlier runs left in `parent`, the `.reshard` of
// `target`. Errors: as JudgeLeftovers and JobFolder.
Result<Recovered> Recover(const OutputDirectory& target, const OutputDirectory& parent,
                          const JobSpec& spec);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_LEFTOVERS_H_
