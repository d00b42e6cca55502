// The parts that options of calls are made of, each of which means the same wherever it stands:
// SourceSpec, TargetSpec, Selection, CheckChoice, RunOptions; what they choose among; and what a
// long call tells while it is under way: Progress, Waiting.
//
// Plain values. A callback that takes Progress is called from the call's threads, one call at a
// time, one that takes Waiting from the thread that made the call. Neither may throw: there is
// nobody to catch it, and the process would end.
//
// Implemented in src/base (header only).
#ifndef RESHARD_OPTIONS_H_
#define RESHARD_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/parameters.h"

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

struct Strategy;  // reshard/strategy.h

// How target files are written down.
enum class TargetFormat {
  kCkpt,         // rank_N/PREFIXN.ckpt, as MindSpore's save_checkpoint writes
  kSafetensors,  // rank_N/PREFIXN.safetensors, byte for byte as the safetensors library writes
  // Of whole tensors: partK.safetensors, hyper_param.safetensors, param_name_map.json, as
  // MindSpore's unified_safetensors writes.
  kUnified,
  // Of whole tensors: model-0000K-of-0000N.safetensors and model.safetensors.index.json, or
  // model.safetensors where one file holds all, as huggingface_hub divides them.
  kHuggingFace,
};

// Whether target files are a folder of whole tensors, and of no rank.
constexpr bool IsWholeFolder(const std::optional<TargetFormat>& format) {
  return format == TargetFormat::kUnified || format == TargetFormat::kHuggingFace;
}

// What becomes of parameters that exactly one of two given strategies has, and whether tensors of
// several elements may be in none that is given.
enum class UnmatchedPolicy {
  kCopy,   // copied as they stand from one source rank, as MindSpore does, with a warning
  kDrop,   // left out, with a warning
  kError,  // the conversion is refused, as it is for those that no given strategy has
};

// How closely a conversion looks, before it writes anything, whether the source strategy is the one
// that the source was saved with.
enum class CheckReplicas {
  kNone,    // no content is compared, and one file may stand for several ranks
  kSample,  // some KiB of some parameters, within a bound
  kAll,     // every byte of every shard that several ranks hold
};

// What a run does with files that an interrupted run of the same conversion left whole.
enum class Resume {
  kNo,      // writes all files anew
  kTrust,   // keeps a file that has a part record and its size
  kVerify,  // keeps a file whose digest is that of its part record
};

// Which of several processes, perhaps on several machines, does a part of a conversion.
struct WorkerShare {
  uint64_t index = 0;  // from 0 to count - 1
  uint64_t count = 1;

  friend bool operator==(const WorkerShare&, const WorkerShare&) = default;
};

// The most workers of a conversion.
inline constexpr uint64_t kMaxWorkers = 65536;

// Whether there can be such a worker.
constexpr bool IsWorkerShare(const WorkerShare& shard) {
  return shard.count > 0 && shard.count <= kMaxWorkers && shard.index < shard.count;
}

// How sources are read.
enum class SourceIo {
  kAuto,  // mapped on local file systems, read on network and FUSE file systems
  kMap,   // an error where a file cannot be mapped
  kPread,
};

// How targets are written.
enum class TargetIo {
  kAuto,    // directly on ext4 and XFS, buffered elsewhere
  kDirect,  // past the page cache; an error where the file system does not take it
  kBuffered,
};

struct IoChoice {
  SourceIo source = SourceIo::kAuto;
  TargetIo target = TargetIo::kAuto;
};

// Names a checkpoint that is read.
struct SourceSpec {
  // A folder with rank_N/*.ckpt or rank_N/*.safetensors; a pattern such as
  // node{rank}/net-1_100.ckpt or node{rank}, in which each {rank} stands for the number of a rank;
  // or, where there is no strategy, one such file or a folder of whole tensors with a
  // param_name_map.json, a *.safetensors.index.json, or a lone safetensors file. Empty when `files`
  // says it.
  std::string path = {};
  // A strategy file or a folder of stage files; empty: the source holds full tensors.
  std::string strategy = {};
  std::string suffix =
      {};  // "-EPOCH_STEP": which checkpoint of each rank folder; empty: the latest
  // In place of `path`: the file of each rank; for some target ranks those they need will do.
  std::map<int64_t, std::string> files = {};
  // group_info files of the training run, or patterns with {rank} for them. The ranks of each one's
  // list (ckpt_restore_rank_list) hold the same weights: they stand in for each other where a file
  // is missing or lacks a parameter that no layout cuts. Without a strategy those of rank 0's list
  // hold full tensors, all together.
  std::vector<std::string> group_info = {};
  // In place of `strategy`, one that was read or made before; null: none.
  std::shared_ptr<const Strategy> layouts = {};
  // From names in the strategies and the outputs to names in the source, where they are others; all
  // other names in options are the outputs' then, but those that Selection::renames makes.
  std::map<std::string, std::string> name_map = {};

  bool has_strategy() const { return !strategy.empty() || layouts != nullptr; }
};

// Names a checkpoint that is written, or was.
struct TargetSpec {
  std::string folder = {};  // made when it is not there
  // A strategy file or a folder of stage files; empty: full tensors, for one rank.
  std::string strategy = {};
  // In place of `strategy`, one that was read or made before; null: none.
  std::shared_ptr<const Strategy> layouts = {};
  std::string prefix = "checkpoint_";  // files are folder/rank_N/PREFIXN and an extension
  // A pattern of file names, such as rank_{rank}/net.{ext}, in which {rank}, {prefix} and {ext}
  // stand for what they say; empty: rank_{rank}/{prefix}{rank}.{ext}.
  std::string names = {};
  std::optional<TargetFormat> format = {};  // without a value, the source's
  uint64_t part_size = uint64_t{3} << 30;   // of kUnified: bytes of tensors in a file
  uint64_t shard_size = 5'000'000'000;      // of kHuggingFace: bytes of tensors in a file

  bool has_strategy() const { return !strategy.empty() || layouts != nullptr; }
};

// What of a checkpoint is written, and under which names.
struct Selection {
  std::vector<int64_t> ranks = {};  // target ranks; empty: all
  // Patterns (reshard/parameters.h): only parameters whose names in the source one of them
  // matches; empty: all.
  std::vector<std::string> include = {};
  std::vector<std::string> exclude = {};  // and of those none that one of these matches
  std::map<std::string, std::string> renames =
      {};  // from names in the source to those in the target
  // Without a value as kCopy, but refused where the names show that a strategy is not the files':
  // they differ by a prefix, or what it has no layout for holds over half of the bytes.
  std::optional<UnmatchedPolicy> unmatched = {};
};

// What is checked of a conversion.
struct CheckChoice {
  // Prove what is copied by digests, and write them beside the outputs; check the CRC trailers of
  // source files before they are used.
  bool checksum = true;
  // Before anything is written, compare the shards that source ranks ought to share, in the stages
  // that the target ranks need. Plan takes kAll for kSample.
  CheckReplicas replicas = CheckReplicas::kSample;
  // What ParameterTotals::weights of the source has to round to; without a value, anything.
  std::optional<RoundedCount> parameters = {};
  // A file of full tensors of the same model: what is written has to have the dtype and full shape
  // that it has there; empty: none.
  std::string reference = {};
};

// How a call runs.
struct RunOptions {
  // Threads that plan, read and compare; lanes that gather and write, up to 8 MiB each; 0: one for
  // each core.
  int jobs = 2;
  std::stop_token stop = {};  // a request ends the call with kCancelled, nothing published
  // Called from worker threads, one call at a time; may be empty.
  std::function<void(const Progress&)> progress = {};
};

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_OPTIONS_H_
