// The structs that options of calls are made of. A member means the same in every call that takes
// it. A long call reports Progress while it runs, and RunOptions::LockHolder while it waits.
//
// Plain values. Threads of the library call the callbacks that take Progress, one call at a time.
// The calling thread calls the callback that takes a LockHolder. A callback must not throw: an
// exception ends the process.
//
// Implemented in src/base (header only).
#ifndef RESHARD_OPTIONS_H_
#define RESHARD_OPTIONS_H_

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace reshard {
inline namespace v0_1 {

// How far a long call is. Bytes are sums over all phases after kPlan. During kPlan both are 0.
struct Progress {
  enum class Phase {
    kPlan,     // opens, indexes and plans
    kCheck,    // reads and checks sources before it writes
    kRead,     // reads, in a call that writes no files
    kWrite,    // writes target files
    kPublish,  // puts the target files in place
  };

  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;
  Phase phase = Phase::kRead;
  // Target files, or files to verify; for a worker, its parts of files. 0 if none are counted.
  uint64_t done_files = 0;
  uint64_t total_files = 0;
};

// Returns "plan", "check", "read", "write" or "publish".
constexpr std::string_view PhaseName(Progress::Phase phase) {
  constexpr std::string_view kNames[] = {"plan", "check", "read", "write", "publish"};
  return kNames[static_cast<size_t>(phase)];
}

enum class DType : uint8_t;  // reshard/tensor.h
class Strategy;              // reshard/strategy.h
class EncryptionKey;         // reshard/encryption.h

// The format of target files.
enum class TargetFormat {
  kCkpt,         // rank_N/PREFIXN.ckpt, as MindSpore's save_checkpoint writes
  kSafetensors,  // rank_N/PREFIXN.safetensors, byte for byte as the safetensors library writes
  // Full tensors: partK.safetensors, hyper_param.safetensors, param_name_map.json, as MindSpore's
  // unified_safetensors writes.
  kUnified,
  // Full tensors, divided as huggingface_hub does: model-0000K-of-0000N.safetensors and
  // model.safetensors.index.json, or model.safetensors if one file holds all.
  kHuggingFace,
};

// The kinds of sources, to tell which one is meant where files of several stand in one folder.
enum class SourceFormat {
  kPlain,              // rank folders, or full tensors
  kHuggingFaceShards,  // of PyTorch's HuggingFaceStorageWriter
  kMindFormers,        // checkpoint 2.0 of MindFormers
  kDcp,                // of PyTorch's torch.distributed.checkpoint
  kFsdp,               // a file of torch.save for each rank of FSDP
};

// Whether the target is a folder of full tensors rather than of ranks. No value: the source's
// format, which is of ranks.
constexpr bool IsWholeFolder(const std::optional<TargetFormat>& format) {
  return format == TargetFormat::kUnified || format == TargetFormat::kHuggingFace;
}

// What a target file is.
enum class FileKind {
  kTensors,    // a checkpoint: of a rank, or of a folder of full tensors
  kIndex,      // the index of such a folder
  kStrategy,   // that of a Cluster
  kCompanion,  // a copy of a configuration or tokenizer file (TargetSpec::companions)
  kResume,     // the meta.json of a rank, by which MindFormers resumes training
};

// Whether it is a part of the model, with a rank or a number. The others stand beside it.
constexpr bool HoldsModel(FileKind kind) {
  return kind == FileKind::kTensors || kind == FileKind::kIndex;
}

// Returns "tensors", "index", "strategy", "companion" or "resume".
constexpr std::string_view FileKindName(FileKind kind) {
  constexpr std::string_view kNames[] = {"tensors", "index", "strategy", "companion", "resume"};
  return kNames[static_cast<size_t>(kind)];
}

// The share of a conversion that a process does. Others, perhaps on other machines, do the rest.
struct WorkerShare {
  uint64_t index = 0;  // from 0 to count - 1
  uint64_t count = 1;

  friend bool operator==(const WorkerShare&, const WorkerShare&) = default;
};

// The most workers of a conversion.
inline constexpr uint64_t kMaxWorkers = 65536;

// Whether `shard` is valid.
constexpr bool IsWorkerShare(const WorkerShare& shard) {
  return shard.count > 0 && shard.count <= kMaxWorkers && shard.index < shard.count;
}

// The ways to read and to write. The bytes are the same.
struct IoChoice {
  // How sources are read.
  enum class Source {
    kAuto,   // mapped, if that works, on local file systems; read on network and FUSE file systems
    kMap,    // an error if a local file cannot be mapped
    kPread,  // copied into memory by read calls
  };

  // How targets are written.
  enum class Target {
    kAuto,    // directly on ext4 and XFS, where measurements show a gain; buffered elsewhere
    kDirect,  // past the page cache; an error if the file system does not allow it
    kBuffered,
  };

  Source source = Source::kAuto;
  Target target = Target::kAuto;

  friend bool operator==(const IoChoice&, const IoChoice&) = default;
};

// Names a strategy: by the path of a file or of a folder of stage files, or by its value, or none.
// Copies share the value.
class StrategyRef {
 public:
  StrategyRef() = default;  // none
  // A path; empty: none.
  template <std::convertible_to<std::string> Path>
  StrategyRef(const Path& path) : path_(path) {}  // NOLINT(google-explicit-constructor)
  // A value (reshard/strategy.h).
  template <std::same_as<Strategy> Value>
  StrategyRef(const Value& value)  // NOLINT(google-explicit-constructor)
      : value_(std::make_shared<const Value>(value)) {}

  bool empty() const { return path_.empty() && value_ == nullptr; }
  const std::string& path() const { return path_; }  // empty for a value
  // Null for a path. Valid as long as this reference lives.
  const Strategy* value() const { return value_.get(); }

  // Whether both have the same path, or share one value.
  friend bool operator==(const StrategyRef&, const StrategyRef&) = default;

 private:
  std::string path_;
  std::shared_ptr<const Strategy> value_;
};

// New names of parameters, by the old ones.
struct Renames {
  std::map<std::string, std::string> names = {};
  // Maps patterns of old names to new names, for names that `names` does not list. A pattern is no
  // GlobMatch pattern: it has at least one `*`, which matches any characters, dots too, as few as
  // possible, and all other characters stand for themselves. The new name has as
  // many `*`, which stand for the matched texts in order: "layers.*" to "model.layers.*". No name
  // may match two patterns.
  std::map<std::string, std::string> patterns = {};
  // MODEL:DIRECTION, such as "llama:hf-to-mindformers" (NameRules): rules for names that neither
  // `names` nor `patterns` has.
  std::string rules = {};

  bool empty() const { return names.empty() && patterns.empty() && rules.empty(); }
  friend bool operator==(const Renames&, const Renames&) = default;
};

// The checkpoint that is read.
struct SourceSpec {
  // A folder with rank_N/*.ckpt or rank_N/*.safetensors; or a pattern such as
  // node{rank}/net-1_100.ckpt or node{rank}, in which {rank} stands for the number of a rank.
  // Without a strategy also one file, or a folder of full tensors: with a param_name_map.json, a
  // *.safetensors.index.json or *.bin.index.json, or a lone safetensors file; or a folder that
  // states which parts of tensors it holds (docs/reference/formats.md). Empty if `files` is given.
  std::string path = {};
  StrategyRef strategy = {};  // none: the source holds full tensors
  // No value: the files tell. If they are of several kinds, the error names this option. Only
  // kPlain with `strategy`, `files` or a pattern.
  std::optional<SourceFormat> format = {};
  // "-EPOCH_STEP": the checkpoint to take in each rank folder; empty: the latest; "common": that of
  // the latest step that all ranks have.
  std::string suffix = {};
  // Instead of `path`: the file of each rank. With Selection::ranks, only the files that these
  // target ranks need are required.
  std::map<int64_t, std::string> files = {};
  // group_info files of the training run, or patterns with {rank} for them. Each lists ranks that
  // hold the same weights (ckpt_restore_rank_list). If a rank's file is missing, or lacks a
  // parameter that no layout cuts, another rank of its list replaces it. Without a strategy each
  // full tensor is taken from one of the ranks in rank 0's list.
  std::vector<std::string> group_info = {};
  // Maps names in strategies to different names in the files of the source. All other options use
  // the names in strategies; without an entry here, the source has the same. Selection::renames is
  // applied last.
  Renames name_map = {};
  // The key of encrypted .ckpt files; null: none. Other files are read without it.
  std::shared_ptr<const EncryptionKey> key = {};
};

// The ranks of a new training run: tensor_parallel * data_parallel * pipeline_stages.
struct Cluster {
  int64_t tensor_parallel = 1;  // parts of a matrix
  int64_t data_parallel = 1;    // replicas
  int64_t pipeline_stages = 1;
  // Parts into which the replicas cut the rows of a matrix further. 0: they do not. -1: as many as
  // replicas.
  int64_t optimizer_shards = 0;
  // Layers of each stage. Empty: equally many, and one more in the first stages if need be.
  std::vector<int64_t> stage_layers = {};

  friend bool operator==(const Cluster&, const Cluster&) = default;
};

// The checkpoint that is written or compared.
struct TargetSpec {
  // How blocks of a file are encrypted. SM4 takes keys of 16 bytes only.
  enum class EncryptionMode { kAesGcm, kAesCbc, kSm4Cbc };

  std::string folder = {};    // is made if it does not exist
  StrategyRef strategy = {};  // none: full tensors, for one rank
  // In place of `strategy`: the strategy of this cluster is made for the parameters of the source,
  // and written to strategy/strategy.ckpt. The default, of one rank, stands for none.
  Cluster cluster = {};
  std::string prefix = "checkpoint_";  // files are folder/rank_N/PREFIXN and an extension
  // A pattern of file names, such as rank_{rank}/net.{ext}, with {rank}, {prefix} and {ext}; empty:
  // rank_{rank}/{prefix}{rank}.{ext}. "mindformers": as MindFormers names the files of a run,
  // rank_{rank}/{prefix}rank_{rank}-EPOCH_STEP.{ext}; a meta.json beside each lets training resume.
  std::string names = {};
  std::optional<TargetFormat> format = {};  // without a value, the source's
  uint64_t part_size = uint64_t{3} << 30;   // of kUnified: as shard_size
  // Of kHuggingFace: the most bytes of tensors in a file. A larger tensor has a file of its own.
  uint64_t shard_size = 5'000'000'000;
  // Encrypts `.ckpt` files as MindSpore's save_checkpoint does with enc_key and enc_mode. Set both
  // fields or leave both empty. An encrypted file is not divided: one worker writes it. Not with
  // states_crc.
  std::optional<EncryptionMode> encryption = {};
  std::shared_ptr<const EncryptionKey> encryption_key = {};
  // Of ranks that hold the same shard, one writes it: the one that MindSpore's
  // CheckpointConfig(remove_redundancy=True) takes. Safetensors files say so in their metadata.
  // Needs `strategy` or `cluster`.
  bool removes_redundancy = false;
  // Each checkpoint file gets a CRC-32 of itself, as MindSpore's save_checkpoint writes it with
  // crc_check: `.ckpt` in a trailer, safetensors in metadata `crc_num`. Needs
  // CheckChoice::checksum.
  bool states_crc = false;
  // Copies configuration, tokenizer and generation files (src/convert/companions.h has
  // their names) of this folder into the target folder. Empty: of the source's folder. No value:
  // none. Not with `encryption`.
  std::optional<std::string> companions = {};
};

// The parameters and ranks to write, with their new names and dtypes.
struct Selection {
  // Casts the floating-point tensors whose names match `pattern` to `dtype`, as MindSpore's
  // load_param_into_net does. Other tensors, such as integers, are never cast.
  struct CastRule {
    // A GlobMatch pattern of names. Empty: all names except optimizer states
    // (OptimizerGroup) and tensors with a single element.
    std::string pattern = {};
    // Float16, BFloat16, Float32, Float64, Float8E4M3FN or Float8E5M2; no value: unchanged.
    std::optional<DType> dtype = {};

    friend bool operator==(const CastRule&, const CastRule&) = default;
  };

  // What to do with a parameter that one of the given strategies does not describe.
  enum class Unmatched {
    kCopy,   // copy it unchanged from one source rank, as MindSpore does, with a warning
    kDrop,   // leave it out, with a warning
    kError,  // fail with kMismatch; but tensors of one element are copied
  };

  std::vector<int64_t> ranks = {};  // target ranks; empty: all
  // Patterns (GlobMatch, reshard/parameters.h) of names. A parameter is written if a
  // pattern of `include` matches its name, or `include` is empty, and no pattern of `exclude`
  // matches.
  std::vector<std::string> include = {};
  std::vector<std::string> exclude = {};
  // Leaves out optimizer states, gradients, and counters of training such as global_step.
  bool weights_only = false;
  Renames renames = {};              // in the target
  std::vector<CastRule> casts = {};  // the first rule whose pattern matches applies
  // No value: as kCopy, but the call fails with kMismatch if a strategy seems to be of another
  // checkpoint: names differ by one substitution, or ten matrices without a layout differ between
  // ranks.
  std::optional<Unmatched> unmatched = {};
};

// The statement of a conversion: its source, its target, and the selected part.
struct ConversionSpec {
  SourceSpec source;
  TargetSpec target;
  Selection selection;
};

// The checks of a conversion.
struct CheckChoice {
  // How much of the source's replicas a conversion compares before it writes. If replicas differ,
  // the source strategy is most likely not the one that the source was saved with.
  enum class Replicas {
    kNone,    // no comparison, so that one file may be given for several ranks
    kSample,  // some KiB of some parameters, within a bound
    kAll,     // every byte of every shard that several ranks hold
  };

  // Prove the copy by digests, and write the digests beside the outputs; check the CRC trailers of
  // source files before using them.
  bool checksum = true;
  // For the stages that the target ranks need. Plan treats kAll as kSample.
  Replicas replicas = Replicas::kSample;
  // Fail with kMismatch unless the source's number of weights (Findings::Totals::weights, without
  // parameters that Selection::exclude leaves out) rounds to this. A number with K, M, B or T for
  // powers of 1,000 may have decimals, as in "6.74B". A number of digits alone is exact. Empty: not
  // checked.
  std::string parameters = {};
  // Refuse to publish if a cast made a finite value infinite or NaN.
  bool refuse_overflow = false;
  // Full tensors of the same model, a file or a folder. Each written parameter has the same dtype
  // and full shape there, or the call fails. Empty: not checked.
  std::string reference = {};
  // A file may state that it is one of several: by a name such as `-00001-of-00002`, or by
  // DCP_SHARDING_INFO. Accept it without the others.
  bool partial = false;
};

// How a conversion treats existing outputs, and the files of interrupted runs.
struct OutputChoice {
  // How a run treats the files that an interrupted run of the same conversion has finished.
  enum class Resume {
    kNo,      // write all files again
    kTrust,   // keep a file that has its part record and the right size
    kVerify,  // keep a file whose digest equals its part record's
  };

  bool force = false;  // replace existing outputs
  // After publication, remove files that only the replaced manifest lists, if their content still
  // is as it says. Then remove their folders that are empty. Not with Selection::ranks. The call
  // fails with kNotFound if there is no manifest to compare with.
  bool prune = false;
  Resume resume = Resume::kNo;
};

// How a call runs. A call ignores members that it has no use for.
struct RunOptions {
  // A lock that another process holds.
  struct LockHolder {
    std::string lock;                // the path of its file
    std::string holder;              // "process 4711 on node3"; empty if unknown
    std::chrono::milliseconds time;  // for which the call has waited
  };

  // The number of threads that read and write. Each has two buffers of up to 4 MiB if it writes. 0:
  // one for each core.
  int jobs = 2;
  std::stop_token stop = {};  // a request ends the call with kCancelled and publishes no file
  // Called from threads of the library, one call at a time; may be empty.
  std::function<void(const Progress&)> progress = {};
  // How often a call is repeated that fails with EIO, ETIMEDOUT or ESTALE on a network or FUSE file
  // system: opening, looking up, listing and reading, but not writing. The waits of one call
  // together take at most 30 s, and after one has failed for good, no other waits. A file that was
  // opened again has to be unchanged.
  uint64_t retries = 3;
  // Only workers (ConvertOptions::shard) and CommitWorkers wait for a lock: while another worker
  // begins or publishes. Other calls that write fail with kAlreadyExists if another process writes
  // there. After this time behind one holder a waiting call fails with kAlreadyExists, too. No
  // value: no time limit.
  std::optional<std::chrono::milliseconds> lock_limit = {};
  // Called by a call that waits for a lock, after 2 s and whenever the time has doubled, at least
  // once a minute; may be empty.
  std::function<void(const LockHolder&)> lock_held = {};
};

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_OPTIONS_H_
