// Convert copies a checkpoint into another layout. Plan shows what that would do. CommitWorkers
// publishes what several processes have staged. Recode writes files in another format.
//
// All functions may run in several threads at once; each call uses its own threads and state. They
// print nothing. Two conversions into one target folder exclude each other by a lock.
//
// Implemented in src/convert.
#ifndef RESHARD_CONVERT_H_
#define RESHARD_CONVERT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/compare.h"
#include "reshard/findings.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {
inline namespace v0_1 {

struct ConvertOptions : ConversionSpec, OutputChoice {
  CheckChoice checks;
  RunOptions run;
  // Bytes that the call may hold, page cache included, besides what the process had before. A run
  // that needs more is refused before it writes. 0: 256 MiB, or a quarter of the machine's memory
  // if that is less; a run that needs more then takes it, and warns.
  uint64_t memory_limit = 0;
  IoChoice io;
  // Do only this share; other processes do the others. A share that is run again continues where
  // it ended.
  std::optional<WorkerShare> shard;
  LockWaiting waiting;  // for other shares that begin or publish
  // Takes a note, which is among the report's too, before the call does what the note tells: that
  // it discards what an interrupted run has finished. Called from the calling thread; may be empty.
  std::function<void(const std::string&)> note = {};
  bool record_timeline = false;  // for ConvertReport::timeline
};

struct WrittenFile {
  std::string path;  // relative to the target folder
  uint64_t size = 0;
};

// The most samples of a timeline; those of a long run are farther apart.
inline constexpr size_t kMostTimelineSamples = 512;

// The course of a run.
struct Timeline {
  // Seconds since the call began; bytes since then.
  struct Sample {
    double seconds = 0;
    uint64_t bytes_read = 0;      // of the sources, brought into windows
    uint64_t bytes_gathered = 0;  // of the targets, put together in memory
    uint64_t bytes_written = 0;   // of the targets, given to the system
    uint64_t memory = 0;          // held at the moment, as ConvertReport::memory_peak counts
  };

  // "plan", "check", "write" or "publish".
  struct Phase {
    std::string name;
    double begin_seconds = 0;
    double end_seconds = 0;
  };

  std::vector<Phase> phases;    // in order, without gaps
  std::vector<Sample> samples;  // in order
};

struct ConvertReport : Findings {
  struct Worker {
    WorkerShare shard;
    // This call put the whole set in place, or found it there. Of shares that run side by side one
    // puts it there; where another was quicker, this is false and nothing is outstanding.
    bool published = false;
    bool already_published = false;     // as in ConvertReport
    std::vector<uint64_t> outstanding;  // shares that had not finished, if not published
  };

  // How many files were read and written in which way.
  struct IoUsed {
    uint64_t sources_mapped = 0;
    uint64_t sources_read = 0;
    uint64_t targets_direct = 0;
    uint64_t targets_buffered = 0;
  };

  std::vector<WrittenFile> files;     // written by this run, by rank
  std::vector<int64_t> source_ranks;  // ranks whose files were read, ascending
  uint64_t bytes_read = 0;            // content bytes taken from the sources
  uint64_t bytes_written = 0;
  // Finite values that casts made infinite or NaN, in all files that were published.
  uint64_t values_lost = 0;
  uint64_t values_zeroed = 0;  // nonzero values that casts made zero, likewise
  uint64_t pruned = 0;         // files that were removed, with ConvertOptions::prune
  uint64_t crc_files = 0;      // source files that were read once more, to check their CRC trailers
  uint64_t crc_bytes = 0;      // and what that read
  std::optional<ReplicaReport> replicas;  // when all were compared: all equal
  uint64_t memory_limit = 0;              // that the run kept to
  uint64_t memory_planned = 0;            // bytes that the run was to hold at the most
  uint64_t memory_peak =
      0;  // the most that was seen of anonymous memory, source windows and target
          // pages on their way to the disk together; 0 when no file was written
  uint64_t anonymous_peak = 0;  // the most anonymous memory of the process that was seen, what it
                                // had before included
  IoUsed io;                    // of what was read and written, not of files kept
  uint64_t files_kept = 0;      // of `files`: finished by an interrupted run, not written again
  bool completed_earlier_run =
      false;  // only the publication of a run that was killed was left to do
  // The set was published by an earlier run: there was nothing to do. `files` is empty.
  bool already_published = false;
  std::optional<Timeline> timeline;  // with ConvertOptions::record_timeline
  std::optional<Worker> shard;       // of a share; then all numbers here are the share's
};

// Converts. The share that finishes last publishes. If the set is already published, made of the
// sources as they are and unchanged since, a share and a call with options.resume do nothing, also
// with `force`. Reads as: open, index, plan, execute,
// verify, commit. Errors: every code, kMismatch for a source strategy that is most likely another
// checkpoint's and for replicas that differ among them; after any of them the target's names are as
// they were, but for a failure while publishing, which leaves whole files and no manifest, and
// which the same call completes. Files that were finished stay staged for a call with
// options.resume; they do not outlive one without.
Result<ConvertReport> Convert(const ConvertOptions& options);

struct TargetFileSummary {
  int64_t rank = 0;  // of a folder of whole tensors: the number of the file
  std::string path;  // relative to the target folder
  uint64_t size = 0;
  uint64_t parameters = 0;
  uint64_t runs = 0;
  std::vector<int64_t> source_ranks;  // ascending
};

struct PlanReport : Findings {
  struct SourceFile {
    int64_t rank = 0;
    std::string path;
    uint64_t size = 0;
  };

  std::vector<SourceFile> sources;         // the files chosen that are read, by rank
  std::vector<TargetFileSummary> targets;  // by rank
  uint64_t bytes_read = 0;                 // content bytes taken from the sources
  uint64_t bytes_written = 0;              // the sum of the target sizes; as much space is needed
  uint64_t runs = 0;                       // contiguous stretches that are copied
  uint64_t shortest_run = 0;               // bytes; 0 when there is no run
  uint64_t longest_run = 0;
  uint64_t memory_limit = 0;                 // that Convert would keep
  uint64_t memory_bytes = 0;                 // about what it would hold of it at the most
  std::optional<uint64_t> free_space_bytes;  // where the target folder is or would be; nothing
                                             // where the file system does not say
};

// Plans and checks all that Convert would, without writing anything. Ok only if Convert
// would begin to write, or the set is complete already. Errors: as Convert.
Result<PlanReport> Plan(const ConvertOptions& options);

struct CommitOptions {
  std::string target;
  std::stop_token stop = {};  // a request ends the call with kCancelled, nothing published
  LockWaiting waiting = {};   // for workers that begin or publish
};

struct CommitReport {
  bool already_published = false;  // there was nothing left to do
  std::vector<Warning> warnings;
};

// Publishes what workers have staged. The last worker does so itself; this call is for when it was
// killed before it could. May run while workers do; needs neither sources nor strategies. Errors:
// kNotFound when workers have not finished, which are named, or where there is nothing to publish;
// kAlreadyExists for another run that is writing there; kCorrupt, kIo, kCancelled.
Result<CommitReport> CommitWorkers(const CommitOptions& options);

// A conversion of files each for itself, which has neither strategies nor ranks.
//
// `source.path` is a file; or a folder: all files of the other format than `target.format` in its
// folders whose names begin with "rank", or, if it has no such folder, in itself. Each output gets
// the path of its source below that folder, with the other extension; `target.folder` is made if it
// does not exist, and may be the source's own. `target.format` is kCkpt or kSafetensors. Texts,
// which safetensors files cannot hold, are left out with a warning, and refused with
// UnmatchedPolicy::kError.
struct RecodeOptions : ConvertOptions {
  // A regular expression (ECMAScript) that has to be found in the names of files, or in the path of
  // a single file; empty: all files.
  std::string files = {};
};

struct RecodeReport : Findings {
  std::vector<WrittenFile> files;
  uint64_t bytes_read = 0;  // content bytes taken from the sources
  uint64_t bytes_written = 0;
  uint64_t crc_files = 0;  // as in ConvertReport, and all that follow
  uint64_t crc_bytes = 0;
  uint64_t files_kept = 0;
  bool completed_earlier_run = false;
  bool already_published = false;
};

// Writes each file in the other format, without strategies and without cutting anything, and
// publishes all of them together as Convert does. Errors: as Convert; kInvalidArgument for options
// that only conversions by strategies have; kMismatch, too, for a file
// that is of the format already, and for two parameters of a file that would have one name;
// kUnsupported for what the format cannot hold.
Result<RecodeReport> Recode(const RecodeOptions& options);

// Returns the map of a JSON object {"old name": "new name", ..., "patterns": {"old*": "new*", ...}}
// (format/rename_map/SPEC.md), as Selection::renames takes it.
// Errors: kNotFound; kInvalidArgument for what is no such object, for names that stand there twice
// or that no parameter may have, for two of one new name, and for patterns whose `*` are not as
// many as those of the new name; kIo.
Result<Renames> ReadRenames(const std::string& path);

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_CONVERT_H_
