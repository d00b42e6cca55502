// Start here. Checkpoint: one checkpoint file as a store of named tensors.
//
//   auto checkpoint = reshard::Checkpoint::Open("net-1_100.ckpt");
//   if (!checkpoint.ok()) ...
//   auto spans = checkpoint->View("dense.weight");
//
// ShardedCheckpoint: the logical tensors of a sharded checkpoint, read by box without converting
// first. A rank of a new cluster opens the old checkpoint and reads just its own slice of each
// parameter, from whichever files hold it.
//
// ListRankFiles: which checkpoint file each rank folder contributes.
//
// Opening reads headers only. The classes are move-only; const member functions may be called from
// any number of threads.
//
// Implemented in src/api.
#ifndef RESHARD_CHECKPOINT_H_
#define RESHARD_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"

namespace reshard {
inline namespace v0_1 {

class Checkpoint {
 public:
  // Opens and indexes a .ckpt file.
  // Errors: kNotFound, kCorrupt (path, parameter, offset, expected, found), kUnsupported
  // (encrypted), kIo.
  static Result<Checkpoint> Open(const std::string& path);

  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  const std::string& path() const;
  uint64_t file_size() const;
  // In file order.
  const std::vector<StoredArray>& parameters() const;
  // Returns the parameter of this name, or null.
  const StoredArray* Find(std::string_view name) const;
  // The CRC-32 that the file's trailer states, where it has one. It is not checked.
  std::optional<uint64_t> crc() const;

  // Returns the content of a parameter as spans of the map, one for each Value of the file (more
  // than one above 512 MiB); nothing is copied. Valid while the Checkpoint lives. For a MapTensor:
  // keys, values, status of each Value. When another process cuts the file short meanwhile,
  // touching a span beyond its new end raises SIGBUS, and bytes behind the end in the last page
  // read as 0; ShardedCheckpoint::Read guards against both. Errors: kNotFound.
  Result<std::vector<std::span<const std::byte>>> View(std::string_view name) const;

  // Whether each span of View(name) begins at a multiple of an element's bytes, so that it may be
  // read as an array of elements where it lies; else these have to be copied first. So it is in all
  // safetensors files that their library writes; in a .ckpt file it is chance. False for texts,
  // MapTensors, and elements that are no power of two of bytes. Errors: kNotFound.
  Result<bool> IsAligned(std::string_view name) const;

 private:
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A box of the full tensor and the ranks whose files hold it, ascending.
struct Shard {
  Box box;
  std::vector<int64_t> ranks;
};

struct LogicalTensor : TensorInfo {
  int64_t stage = 0;  // the pipeline stage that its values come from
  bool in_strategy =
      false;  // without a layout each rank has a value of its own; that of local rank 0 is read
};

class ShardedCheckpoint {
 public:
  // Opens `folder` (rank_N/*.ckpt, or a pattern as SourceSpec::path) under the strategy file
  // or folder `strategy`; an empty `strategy` stands for full tensors in rank_0, and `folder` may
  // then be one file. `suffix`,
  // "-EPOCH_STEP", says which checkpoint of each rank folder; empty: the latest. Errors: kNotFound,
  // kCorrupt, kMismatch, kUnsupported, kIo.
  static Result<ShardedCheckpoint> Open(const std::string& folder, const std::string& strategy,
                                        const std::string& suffix = "");
  // The same under a strategy that was read or made before (reshard/strategy.h). It is not
  // needed any longer when the call returns. More errors: kInvalidArgument for one without
  // parameters.
  static Result<ShardedCheckpoint> Open(const std::string& folder, const Strategy& strategy,
                                        const std::string& suffix = "");

  ShardedCheckpoint(ShardedCheckpoint&&) noexcept;
  ShardedCheckpoint& operator=(ShardedCheckpoint&&) noexcept;
  ~ShardedCheckpoint();

  // In the order of the files, tensors only (no text entries, no MapTensors).
  const std::vector<LogicalTensor>& tensors() const;
  // Returns the tensor of this name, or null.
  const LogicalTensor* Find(std::string_view name) const;
  const std::vector<Warning>& warnings() const;

  // Returns the boxes that the tensor is cut into, in row-major order, and which ranks' files hold
  // them. Errors: kNotFound; those of opening a file.
  Result<std::vector<Shard>> Shards(std::string_view name) const;

  // Copies the elements of `box`, row-major, to `destination`, whose size has to be exactly that of
  // the box in bytes. Gathers from whichever files hold them, with the plan, the coverage proof and
  // the fault guard of a conversion. Errors: kNotFound; kInvalidArgument when the box leaves the
  // tensor or the destination has another size; kMismatch when shards disagree or no file holds a
  // part; kChanged, kIo.
  Status Read(std::string_view name, const Box& box, std::span<std::byte> destination) const;

 private:
  struct State;
  explicit ShardedCheckpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct RankFileSummary {
  int64_t rank = 0;
  std::string path;
};

struct RankFiles {
  std::vector<RankFileSummary> files;  // by rank
  std::vector<Warning> warnings;
};

// Chooses one file of each folder rank_N of `folder`, or of each file or folder that a pattern with
// {rank} names (SourceSpec::path, reshard/options.h), or the files of a folder of whole
// tensors, which are numbered as ranks are: that of the greatest (epoch, step), or the one whose
// name ends in `suffix` and the extension where `suffix` is not empty. Errors: kNotFound, kMismatch
// when steps differ or a choice is open (lists them), kUnsupported, kIo.
Result<RankFiles> ListRankFiles(const std::string& folder, const std::string& suffix);

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_CHECKPOINT_H_
