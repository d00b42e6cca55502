// JobSpec: the files that a run is going to write, and the name of the job.
//
// JobText: the same, as it is kept in the job's folder. From it, a later run learns whether it may
// continue with the staged files.
//
// Plain values; no file is touched.
#ifndef RESHARD_SRC_JOB_JOB_SPEC_H_
#define RESHARD_SRC_JOB_JOB_SPEC_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/encryption.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "src/os/memory_usage.h"
#include "src/record/manifest_codec.h"
#include "src/record/plan_record.h"

namespace reshard {

// Paths in a target folder as they will be when a set is published, relative to it.
struct NamesToCome {
  std::set<std::string> listed;    // in its manifest
  std::set<std::string> gone;      // that are removed
  std::set<std::string> of_older;  // of sets before, in no manifest any more; `gone` included
  bool prunes = false;
};

struct JobSpec {
  // Its folder, whether files state a CRC-32 of themselves, and how they are encrypted: the key is
  // to read them back.
  TargetSpec target;
  CheckChoice checks;       // `checksum`, `refuse_overflow`
  OutputChoice output;      // of outputs and manifests that are there
  std::string fingerprint;  // of the plan for all ranks, so that runs for some ranks join
  std::string manifest_name = "manifest.json";  // "manifest_partS.json" for stage S alone
  std::string source_strategy;                  // their digests, for the manifest; empty: none
  std::string target_strategy;
  std::vector<ManifestSource> sources;  // files that this run reads: path and size
  std::vector<ManifestFile> files;      // that this run writes: path and size
  // A source file that earlier runs of the plan have read, too, but with another content; empty:
  // none is known.
  std::string other_source;
  // One opaque line for each source: when they are the same, so are the bytes that a run writes.
  std::vector<std::string> source_identities;
  // Of each file that was chosen as a source, an index included, for the manifest; each path once.
  std::vector<SourceStamp> stamps = {};
  std::string key_check = {};  // of the key that files are encrypted with (KeyCheck)
  // Whether readers of the target folder will take the set's files, before anything is written and
  // before it is published; empty: not asked. Errors: kAlreadyExists, kIo.
  std::function<Status(const NamesToCome& names)> check_readers = {};
  // Why the set of the plan in the target folder is not this run's (PublishedSet), once a run that
  // goes on has looked.
  std::string difference = {};
  std::string origin = {};  // of the run (EncodeOrigin), for origin.jsonl; empty: none is told
  uint64_t workers = 0;     // how many do it together; 0: one run alone
  // Of a worker that has looked at all sources: what it leaves for the others.
  std::optional<PlanRecord> plan = {};
  // Whether the spec follows from such a record of another worker, whose job has to be there.
  bool follows_plan = false;
  std::stop_token stop = {};  // for reading target files of earlier runs
  // Receives each note for the caller before the run acts on it; may be empty.
  std::function<void(const std::string& note)> note = {};
  MemoryMeter* meter = nullptr;  // looked at when much is held; has to live as long
};

// Whether the target file at `path` states a CRC-32 of itself; an index of others, which is JSON,
// does not.
bool StatesCrc(const JobSpec& spec, std::string_view path);

// Returns the spec with its files sorted.
// Errors: kInvalidArgument for names, paths and fingerprints that no target folder may hold.
Result<JobSpec> CheckedSpec(JobSpec spec);

struct JobText {
  std::string tool_version;
  std::string manifest_name;
  bool checksum = true;
  bool states_crc = false;
  std::string encryption = {};  // its mode and KeyCheck; empty: none
  uint64_t workers = 0;         // that do it together; 0: one run alone
  std::string source_strategy;  // digests, for the manifest; empty: none
  std::string target_strategy;
  std::string targets;  // paths and sizes, a line each
  std::string sources;  // the identities of the sources, a line each
  // Other tasks of a run, which do not change the files that it writes.
  bool prune = false;
  std::string origin = {};
  std::vector<SourceStamp> stamps = {};  // for the manifest

  // Whether both write the same from the same.
  bool IsSameJob(const JobText& other) const;
  friend bool operator==(const JobText&, const JobText&) = default;
};

JobText JobTextOf(const JobSpec& spec);

std::string EncodeJobText(const JobText& job);

// Returns a digest that is equal for the same job (JobText::IsSameJob).
std::string DigestOf(const JobText& job);

// Parses a whole file; `path` names it in messages. Errors: kCorrupt.
Result<JobText> ParseJobText(std::string_view text, const std::string& path);

// Returns the part of a spec that its job text has, for the target folder `target_folder`. It is
// enough to publish the staged files. `path` names the text in messages. Errors: kCorrupt.
Result<JobSpec> SpecOf(const JobText& job, const std::string& target_folder,
                       const std::string& fingerprint, const std::string& path);

// Returns ok if a run of `own` may continue with the files that a run of `left` has staged in
// `path`. `outstanding` are the unfinished workers of `left`; they matter only if the numbers of
// workers differ. Errors: kChanged for other sources, kMismatch for any other difference.
Status CheckSameJob(const JobText& left, const JobText& own, const std::string& path,
                    const std::vector<uint64_t>& outstanding);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_JOB_SPEC_H_
