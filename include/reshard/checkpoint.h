// Start here. Checkpoint is one file as a store of named tensors.
//
//   auto checkpoint = reshard::Checkpoint::Open("net-1_100.ckpt");
//   if (!checkpoint.ok()) ...
//   auto spans = checkpoint->View("dense.weight");
//
// ShardedCheckpoint: the full tensors of a sharded checkpoint, read by box without a conversion. A
// rank of a new cluster opens the old checkpoint and reads its own slice of each parameter from the
// files that hold it.
//
// WriteCheckpoint writes arrays from memory into one file. ListRankFiles chooses one file in each
// rank folder.
//
// Opening reads headers only. The classes are move-only. Any number of threads may call const
// member functions.
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

#include "reshard/encryption.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"

namespace reshard {

class OpenedSource;  // of the library alone

inline namespace v0_1 {

struct RankFiles;

class Checkpoint {
 public:
  // The purpose for which a file is opened.
  enum class Purpose {
    kValues,
    // Its arrays may be parts of tensors; warnings() says so.
    kListing,
  };

  // Opens and indexes a file: .ckpt, safetensors or of torch.save. Pass `key` if it is encrypted.
  // Errors:
  //   kNotFound, kIo
  //   kCorrupt: names path, parameter, offset, expected and found values; also for a wrong key
  //   kMismatch: by its own words, its arrays are parts of tensors
  //   kUnsupported: an encrypted file without a key
  //   kInvalidArgument: the file's mode does not take this key
  static Result<Checkpoint> Open(const std::string& path,
                                 std::shared_ptr<const EncryptionKey> key = nullptr,
                                 Purpose purpose = Purpose::kValues);
  // Opens file number `place` of a list that ListRankFiles returned. ListRankFiles has already
  // indexed the files of a folder of full tensors, so they are not indexed again. The checkpoint
  // has the tensors that the folder's index assigns to the file. It is opened for listing. Of DCP,
  // View opens the file. More errors:
  //   kChanged
  //   kInvalidArgument: no such place
  static Result<Checkpoint> Open(const RankFiles& listed, size_t place,
                                 std::shared_ptr<const EncryptionKey> key = nullptr);

  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  const std::string& path() const;
  uint64_t file_size() const;  // in bytes; of an encrypted file, its plain bytes
  // In file order. For a file of DCP in a list of ListRankFiles, they come from the metadata, and
  // no content has a place; `framed` has its item.
  const std::vector<StoredArray>& parameters() const;
  // Returns the parameter of this name, or null.
  const StoredArray* Find(std::string_view name) const;
  // The part of training that a parameter of the file belongs to: its OptimizerGroup; "others" for
  // texts and single elements, such as learning_rate; else "weights". A literal.
  std::string_view GroupOf(const StoredArray& parameter) const;
  // The CRC-32 in the file's trailer, if it has one. It is not checked.
  std::optional<uint64_t> crc() const;
  // Tensors of the file that cannot be read, in file order. They are not among parameters().
  const std::vector<UnreadTensor>& unread() const;
  // Says what the file holds beside parameters(), and whether they are parts of tensors. Empty for
  // a file of RankFiles that were indexed: RankFiles::warnings says it.
  const std::vector<Warning>& warnings() const;

  // Returns the content of a parameter as spans of the mapped file, without a copy. Each Value has
  // one span: a .ckpt file has several Values for a tensor above 512 MiB. A MapTensor has the spans
  // keys, values and status for each Value. The spans are valid while the Checkpoint lives.
  //
  // If another process truncates the file meanwhile, touching a span beyond the new end raises
  // SIGBUS, and the rest of the last page reads as 0. ShardedCheckpoint::Read guards against both.
  // Errors:
  //   kNotFound
  //   kUnsupported: a tensor of unread(); or the file is encrypted and the parameter is not a text;
  //   use ShardedCheckpoint::Read
  Result<std::vector<std::span<const std::byte>>> View(std::string_view name) const;

  // Returns whether each span of View(name) begins at a multiple of the element size, so that it
  // may be read in place as an array of elements. Always true for files that the safetensors
  // library wrote; in .ckpt files it depends. False for texts, MapTensors, and element sizes that
  // are not a power of two. Errors: kNotFound.
  Result<bool> IsAligned(std::string_view name) const;

 private:
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A parameter in the caller's memory.
struct ArrayToWrite {
  std::string_view name;
  ArrayKind kind = ArrayKind::kTensor;  // or kText; then dtype and shape have no meaning
  DType dtype = DType::kFloat32;
  Shape shape = {};
  std::span<const std::byte> bytes;  // row-major; for a text, UTF-32LE code points, at least one
};

struct WriteCheckpointOptions {
  std::string output;
  TargetFormat format = TargetFormat::kCkpt;  // or kSafetensors
  bool states_crc = false;                    // as in TargetSpec
  // If set, a safetensors file states whether redundancy was removed from its set, as MindSpore's
  // save_checkpoint(remove_redundancy=...) does. A .ckpt file cannot state it.
  std::optional<bool> removes_redundancy = {};
  // As in TargetSpec: of .ckpt files, and without a CRC.
  std::optional<TargetSpec::EncryptionMode> encryption = {};
  std::shared_ptr<const EncryptionKey> encryption_key = {};
  bool force = false;   // replace `output`
  RunOptions run = {};  // its jobs have no effect: one thread writes
};

// Writes the arrays, in their order, into the file `output`. The bytes are exactly
// as MindSpore's save_checkpoint or the safetensors library write them. The file appears whole and
// durable, or not at all. If it is encrypted, plain bytes never reach a file. Returns its size in
// bytes.
// Errors:
//   kInvalidArgument: two arrays with one name; bytes that do not fit dtype and shape; a key that
//   the
//     mode does not take
//   kUnsupported: an array that the format cannot hold
//   kAlreadyExists, kIo, kCancelled
Result<uint64_t> WriteCheckpoint(std::span<const ArrayToWrite> arrays,
                                 const WriteCheckpointOptions& options);

struct RankFiles {
  struct File {
    int64_t rank = 0;
    std::string path;
  };

  std::vector<File> files = {};  // by rank
  std::string step = {};         // "EPOCH_STEP" of the files; empty if their names have none
  std::vector<Warning> warnings = {};
  std::vector<std::string> notes = {};  // where the files were found, if not in the folder itself

  // For Checkpoint::Open, the indexed files of a folder of full tensors; null for other folders.
  std::shared_ptr<OpenedSource> indexed = {};
};

class ShardedCheckpoint {
 public:
  // A box of the full tensor, and the ranks that hold it.
  struct Shard {
    Box box;
    std::vector<int64_t> ranks;  // ascending
  };

  // A part of a tensor as a file holds it.
  struct Part {
    Box box;
    int64_t rank = 0;
    std::string path;
    // In the file, one for each Value: together the row-major bytes of `box`.
    std::vector<ByteRange> content;
  };

  // A box to read, and its destination.
  struct BoxRead {
    std::string_view name;
    Box box;
    std::span<std::byte> destination;  // of exactly the box's size
  };

  // A whole file, mapped as long as a copy of `data` lives. If another process truncates it
  // meanwhile, touching bytes beyond the new end raises SIGBUS.
  struct MappedFile {
    std::shared_ptr<std::byte> data;  // the first byte; writable only in a private map
    uint64_t size = 0;
  };

  // One array of a text or a MapTensor.
  struct StoredPart {
    std::string type;  // "str", of UTF-32LE code points; or as StoredArray::MapTensorPart::type
    Shape shape;
    std::vector<std::byte> bytes;
  };

  struct Tensor : TensorInfo {
    int64_t stage = 0;  // the pipeline stage that its values come from
    // Without a layout each rank has its own value. Then the value of the stage's first rank is
    // read.
    bool in_strategy = false;
  };

  // Opens the checkpoint in `folder`: rank folders, or a pattern (SourceSpec::path). `strategy` is
  // the strategy that it was saved with. Without one the tensors are full, in rank_0 or in the one
  // file that `folder` names. `suffix`, "-EPOCH_STEP", chooses the checkpoint in each rank folder;
  // empty: the latest. `key` is as SourceSpec::key. Errors: kNotFound, kCorrupt, kMismatch,
  // kUnsupported, kIo.
  static Result<ShardedCheckpoint> Open(const std::string& folder, const StrategyRef& strategy,
                                        const std::string& suffix = "",
                                        std::shared_ptr<const EncryptionKey> key = nullptr);
  // As above, for any source. `io` chooses how files are read.
  static Result<ShardedCheckpoint> Open(const SourceSpec& source,
                                        IoChoice::Source io = IoChoice::Source::kAuto);

  ShardedCheckpoint(ShardedCheckpoint&&) noexcept;
  ShardedCheckpoint& operator=(ShardedCheckpoint&&) noexcept;
  ~ShardedCheckpoint();

  // Tensors only (no texts, no MapTensors), in the order of the files.
  const std::vector<Tensor>& tensors() const;
  // Returns the tensor of this name, or null.
  const Tensor* Find(std::string_view name) const;
  const std::vector<Warning>& warnings() const;
  const std::vector<std::string>& notes() const;  // need no action
  // Texts and MapTensors, in the order of the files.
  const std::vector<TensorInfo>& others() const;
  // Tensors that are known to be unreadable, by name. They are not among tensors(); warnings()
  // names them.
  const std::vector<UnreadTensor>& unread() const;
  // "EPOCH_STEP" if the names of all files have it, else empty.
  std::string step() const;
  // The files that the tensors are read from, by rank. In a folder of full tensors the file
  // numbers stand for ranks.
  const std::vector<RankFiles::File>& files() const;
  // Whether the checkpoint has threads that read ahead; files on servers have. A forked process
  // lacks these threads and cannot use the checkpoint.
  bool HasThreads() const;

  // Returns the boxes that the tensor is cut into, in row-major order, with the ranks that hold
  // them. Errors: kNotFound, and the errors of opening a file.
  Result<std::vector<Shard>> Shards(std::string_view name) const;

  // Copies the elements of `box`, row-major, to `destination`. Its size has to be the box's size in
  // bytes. The elements come from the files that hold them. As in a conversion, the copy is
  // planned, its coverage is proved, and truncation is noticed.
  // Errors:
  //   kNotFound, kChanged, kIo
  //   kInvalidArgument: the box leaves the tensor, or the destination has another size
  //   kMismatch: shards disagree, or no file holds a part
  //   kUnsupported: the tensor cannot be read, as those of unread()
  Status Read(std::string_view name, const Box& box, std::span<std::byte> destination) const;

  // Reads several boxes side by side on run.jobs threads, large boxes in pieces. Names, boxes and
  // destinations are checked before the first read. After an error the contents of the destinations
  // have no meaning. Errors: as above; kCancelled.
  Status Read(std::span<const BoxRead> boxes, const RunOptions& run) const;

  // Returns the parts, each as one file holds it, that together have all elements of `box`. Errors:
  // kNotFound, kInvalidArgument, kMismatch as Read.
  Result<std::vector<Part>> Locate(std::string_view name, const Box& box) const;

  // Maps the file of a rank. Part::content gives the places of its arrays in the map. With
  // `is_private` the caller may write to the bytes. Only this map sees the writes; the file does
  // not change. Errors:
  //   kNotFound: the rank has no file
  //   kChanged: the path leads to another file than the one that was opened
  //   kUnsupported: the file is encrypted
  //   kIo
  Result<MappedFile> Map(int64_t rank, bool is_private = false) const;

  // Returns one part for a text. For a MapTensor, returns keys, values and status of each Value.
  // Errors: kNotFound, and the errors of Read.
  Result<std::vector<StoredPart>> ReadOther(std::string_view name) const;

 private:
  struct State;
  explicit ShardedCheckpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Chooses one file in each folder rank_N of `source.path`, or for each rank of a pattern. Of
// `source` only `path`, `suffix` and `format` count. The name of the file, without extension, ends
// in the suffix. With an empty suffix it is the file of the greatest (epoch, step). In a folder of
// full tensors the list has all files, and their numbers stand for ranks.
// Errors:
//   kNotFound, kUnsupported, kIo
//   kMismatch: steps differ, or several files fit; the message lists them
Result<RankFiles> ListRankFiles(const SourceSpec& source);

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_CHECKPOINT_H_
