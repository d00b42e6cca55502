// Convert copies a checkpoint into another layout. Plan shows what Convert would do, without
// writing. FindStatus tells how far a conversion is. CommitWorkers publishes the files that several
// processes have staged. Recode changes files one by one: their format, names or protection, never
// their sharding.
//
// Several processes can divide one conversion. Each is a worker and does one share (WorkerShare).
// Unless a member says otherwise, the report of a share counts this share alone.
//
// All functions may run in several threads at once; each call uses its own threads and state. The
// functions do not print. A lock keeps two conversions from writing into one target folder.
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
#include <string>
#include <vector>

#include "reshard/compare.h"
#include "reshard/findings.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {
inline namespace v0_1 {

// Needs source.path or source.files, and target.folder. The base structs are in options.h, as are
// CheckChoice, RunOptions, IoChoice and WorkerShare.
struct ConvertOptions : ConversionSpec, OutputChoice {
  CheckChoice checks;
  RunOptions run;
  // Bytes that the call may hold, page cache included, on top of the process's memory at the start.
  // At least 28 MiB. If planning shows that the conversion needs more, the call fails with
  // kResourceExhausted before it writes. If writing exceeds the plan, it fails before it publishes.
  // 0: 256 MiB, or a quarter of the machine's memory if that is less; a conversion that needs more
  // takes it, and warns.
  uint64_t memory_limit = 0;
  IoChoice io;
  // Do only this share; other processes do the others. A share that is done again continues where
  // the last call for it ended, as with `resume`.
  std::optional<WorkerShare> shard;
  // Called with each note as it arises, for example before the results of an interrupted run are
  // discarded. The report has the note, too. Called from the calling thread; may be empty.
  std::function<void(const std::string&)> note = {};
  bool record_timeline = false;  // for ConvertReport::timeline
};

// The most samples of a timeline. In a long run the samples are farther apart.
inline constexpr size_t kMostTimelineSamples = 512;

struct ConvertReport : Findings {
  struct File {
    std::string path;   // relative to the target folder
    uint64_t size = 0;  // bytes; in the report of a share, of its part of the file
  };

  struct Worker {
    WorkerShare shard;
    // Whether this call published the set, or found it published.
    bool published = false;
    bool already_published = false;  // as in ConvertReport
    // If not published: the unfinished shares. If there are none, another worker is publishing the
    // set, or has done so.
    std::vector<uint64_t> outstanding;
  };

  // What a run did at which time.
  struct Timeline {
    // Totals since the call began; `memory` is the value at that time.
    struct Sample {
      double seconds = 0;
      uint64_t bytes_read = 0;      // from the sources into memory
      uint64_t bytes_gathered = 0;  // of the targets, put together in memory
      uint64_t bytes_written = 0;   // of the targets, given to the system
      uint64_t memory = 0;          // counted as memory_peak
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

  // The numbers of files by the way in which they were read and written.
  struct IoUsed {
    uint64_t sources_mapped = 0;
    uint64_t sources_read = 0;
    uint64_t targets_direct = 0;
    uint64_t targets_buffered = 0;
  };

  std::vector<File> files;            // of the target, kept ones included, by rank
  std::vector<int64_t> source_ranks;  // the ranks from whose files they are made, ascending
  // The content bytes that all `files` take from the sources, kept files included. In the report of
  // a share: those that this call read.
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;  // the sum of the sizes of `files`, kept files included
  // Finite values that casts made infinite or NaN, in all published files.
  uint64_t values_lost = 0;
  uint64_t values_zeroed = 0;  // nonzero values that casts made zero, likewise
  uint64_t pruned = 0;         // files that were removed, with ConvertOptions::prune
  uint64_t crc_files = 0;      // source files that were read once more, to check their CRC trailers
  uint64_t crc_bytes = 0;      // bytes that these checks read
  std::optional<ReplicaReport> replicas;  // when all were compared: all equal
  uint64_t memory_limit = 0;              // bytes; of the option, or the one that was taken
  uint64_t memory_planned = 0;            // the planned maximum of bytes held
  // The greatest observed sum of anonymous memory, source windows and target pages on their way to
  // the disk; 0 if the run wrote no file.
  uint64_t memory_peak = 0;
  // The greatest observed anonymous memory of the process, including its memory at the start.
  uint64_t anonymous_peak = 0;
  IoUsed io;                // without files that were kept
  uint64_t files_kept = 0;  // of `files`: finished by an interrupted run, not written again
  // Only the publication of a killed run was left to do.
  bool completed_earlier_run = false;
  // An earlier run published the set, so this call had no work. `files` is empty.
  bool already_published = false;
  std::optional<Timeline> timeline;  // with ConvertOptions::record_timeline
  std::optional<Worker> shard;       // in the report of a share
};

// Converts. A *set* is the target files that one manifest lists; the worker that finishes last
// publishes it. If the same options and sources have published this set before, and all its files
// are there with their sizes, the call does no work. With `force`, only a share or a call with
// `resume` looks for such a set.
//
// After an error the target folder has the same files as before. A failure while publishing is the
// exception: it leaves whole files and no manifest, and the same call completes the set. Finished
// files stay staged for a call with `resume`. A call without it discards them.
// Errors:
//   kInvalidArgument: options that contradict each other, or that do not fit the strategies
//   kNotFound: a source, a strategy or the file of a rank is missing
//   kAlreadyExists: an output exists and `force` is not given, or another conversion holds the
//     folder
//   kMismatch: sources and strategies do not fit; the source strategy most likely belongs to
//     another checkpoint; replicas differ
//   kCorrupt: a source or strategy is damaged
//   kChanged: a source changed during the call
//   kResourceExhausted: memory_limit
//   kUnsupported, kCancelled
//   kIo: also if the disk has too little space
//   kInternal: a fault of reshard, such as digests of both sides that differ
Result<ConvertReport> Convert(const ConvertOptions& options);

struct PlanReport : Findings {
  struct SourceFile {
    int64_t rank = 0;
    std::string path;
    uint64_t size = 0;
  };

  struct TargetFile {
    // In a folder of full tensors, or of a file that is not of a rank: the number of the file.
    int64_t rank = 0;
    std::string path;  // relative to the target folder
    uint64_t size = 0;
    uint64_t parameters = 0;
    uint64_t runs = 0;
    std::vector<int64_t> source_ranks;  // ascending
    FileKind kind = FileKind::kTensors;
  };

  std::vector<SourceFile> sources;  // the files chosen that are read, by rank
  std::vector<TargetFile> targets;  // by rank
  uint64_t bytes_read = 0;          // content bytes taken from the sources
  uint64_t bytes_written = 0;       // the sum of the target sizes, for which there must be space
  uint64_t runs = 0;                // byte ranges that are copied as one piece
  uint64_t shortest_run = 0;        // bytes; 0 if nothing is copied
  uint64_t longest_run = 0;
  uint64_t memory_limit = 0;  // as ConvertReport::memory_limit
  uint64_t memory_bytes = 0;  // as ConvertReport::memory_planned
  // At the place of the target folder; no value if the file system does not say.
  std::optional<uint64_t> free_space_bytes;
};

// Plans a conversion and makes the checks of Convert, without writing. Where Convert would compare
// all replicas, compares a sample. Ok only if Convert would begin to write, or if the set is
// complete already. Errors: as Convert.
Result<PlanReport> Plan(const ConvertOptions& options);

struct CommitReport {
  bool already_published = false;  // the set was published before
  std::vector<Warning> warnings;
};

// Publishes the files that workers have staged. The last worker normally does so itself. This call
// is for the case that it was killed before. It may run while workers do, and needs neither sources
// nor strategies. Of `run`, it takes `stop`, `lock_limit` and `lock_held`.
// Errors:
//   kNotFound: workers have not finished (the message names them), or no files are staged
//   kAlreadyExists: another run is writing there
//   kCorrupt, kIo, kCancelled
Result<CommitReport> CommitWorkers(const std::string& target, const RunOptions& run = {});

// How far a conversion is. Bytes, files and rates are those of target files. A file that several
// workers write counts once for each.
struct StatusReport {
  enum class State {
    kPublished,       // the set is in place
    kRunning,         // processes are at work
    kNeedsAttention,  // it will not be published unless somebody acts: `attention`
  };

  // One of the workers, or a conversion alone, which is 0 of 1.
  struct Worker {
    enum class State {
      kNotStarted,
      kRunning,
      kFinished,  // its share
      kDead,      // it has ended and not finished its share
    };

    WorkerShare shard;
    State state = State::kNotStarted;
    std::string process;  // "process 4711 on node3", that runs or has ended; empty: unknown
    // Of a running worker; no value if it has not said.
    std::optional<Progress::Phase> phase;
    // Of a dead worker: those that it keeps if it is started again.
    uint64_t bytes_done = 0;
    uint64_t total_bytes = 0;
    uint64_t files_done = 0;
    uint64_t total_files = 0;
    double bytes_per_second = 0;  // of a running worker since it began to write; 0: unknown
    std::optional<double> seconds_left;
  };

  State state = State::kPublished;
  // What has to be done. Empty unless the state is kNeedsAttention.
  std::string attention;
  bool alone = false;       // the conversion is not divided
  bool publishing = false;  // all files are written
  // By their numbers. Empty for a published set, and while the first worker plans.
  std::vector<Worker> workers;
  uint64_t bytes_done = 0;  // of all workers, as the next ones
  uint64_t total_bytes = 0;
  uint64_t files_done = 0;
  uint64_t total_files = 0;
  double bytes_per_second = 0;
  std::optional<double> seconds_left;  // no value: unknown, or it would never end
  // Records that are damaged, and workers that hang.
  std::vector<std::string> notes;
};

// Returns how far the conversion into `target` is, from the files that its processes leave there.
// It changes no file, holds up no process, and needs neither sources nor strategies.
//
// A conversion alone leaves no files while it plans.
// Errors:
//   kNotFound: there is no such folder, no conversion in it, or files of the published set are gone
//   kMismatch: another version of reshard has begun the conversion
//   kAlreadyExists: several conversions have left files
//   kCorrupt, kIo
Result<StatusReport> FindStatus(const std::string& target);

// A conversion that rewrites each file by itself, without strategies and ranks.
//
// `source.path` is a file or a folder. Of a folder, Recode takes all files in the other format than
// `target.format`, which is kCkpt or kSafetensors. It looks in the sub-folders whose names begin
// with "rank" or, if there are none, in the folder itself. If there are none, or no `format` is
// given, it takes `.ckpt` files to `.ckpt`; a CRC, encryption, new names or `decrypt` has to change
// them.
// Each output gets the path of its source below that folder, with the extension of its format.
// `target.folder` is made if it does not exist. It may be the source's own, but no output may be a
// source. Safetensors files cannot hold texts: these are left out with a warning, or refused with
// Selection::Unmatched::kError.
struct RecodeOptions : ConvertOptions {
  // A regular expression (ECMAScript). Only files whose names contain a match are taken. For a
  // single file it is searched in the path. Empty: all files.
  std::string files = {};
  // Takes `.ckpt` files, and writes them plain although they are encrypted. Without it, a file that
  // is encrypted goes to a `.ckpt` file only if that is encrypted, too. Needs `source.key`.
  bool decrypt = false;
};

// Writes each file anew, without strategies and without cutting tensors. Publishes all files
// together, as Convert does.
// Errors: as Convert, and
//   kInvalidArgument: options that only conversions by strategies have; an encrypted file that
//     would become a plain `.ckpt` file without `decrypt`
//   kMismatch: a file that is in the format already, or two parameters of a file with one new name
//   kUnsupported: an array that the format cannot hold
Result<ConvertReport> Recode(const RecodeOptions& options);

// Returns the map of a JSON object {"old name": "new name", ..., "patterns": {"old*": "new*", ...}}
// (format/rename_map/SPEC.md), as Selection::renames takes it.
// Errors:
//   kNotFound, kIo
//   kInvalidArgument: another kind of JSON; a repeated or invalid name; two names with one new
//     name; a pattern whose new name has another number of `*`
Result<Renames> ReadRenames(const std::string& path);

// Returns the values of Renames::rules: "llama:hf-to-mindformers", "llama:mindformers-to-hf" and so
// on.
std::vector<std::string> NameRules();

// Returns the rules of Renames::rules as the file that ReadRenames takes. Errors: kInvalidArgument
// for rules that do not exist.
Result<std::string> NameRulesText(const std::string& rules);

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_CONVERT_H_
