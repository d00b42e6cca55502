// Container: how a checkpoint file is written down, whatever it holds; and what the readers and the
// encoders of all containers are given.
//
// Plain values and pure functions.
#ifndef RESHARD_FORMAT_CONTAINER_CONTAINER_H_
#define RESHARD_FORMAT_CONTAINER_CONTAINER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {

enum class Container {
  kMindSpore,    // protobuf: Values one behind the other (format/mindspore_checkpoint)
  kSafetensors,  // a header of JSON before all contents (format/safetensors)
};

// The bytes that ContainerOf looks at.
inline constexpr size_t kSignatureBytes = 9;

// Returns whether a file that begins with `head` is a safetensors file by it: eight bytes of
// length, then what is like JSON.
bool IsSafetensors(std::span<const std::byte> head);

// Returns the container of a file of `file_size` bytes that begins with `head`: its first
// kSignatureBytes bytes or more, or all of a smaller one. A checkpoint of MindSpore has no
// signature: whatever is not known for something else is taken for one.
// Errors: kUnsupported for an encrypted checkpoint (naming the mode) and for files of other kinds,
// kCorrupt for JSON text and an empty file.
Result<Container> ContainerOf(std::span<const std::byte> head, uint64_t file_size);

// A file whose headers are read. Ranges have to lie in the file. Errors of both functions name it.
struct FileBytes {
  std::string_view path;  // for messages
  uint64_t size = 0;
  // Copies bytes at an offset, touching only their pages.
  std::function<Status(uint64_t offset, std::span<std::byte> out)> read;
  // Starts reading bytes that are going to be read soon, and does not wait for them.
  std::function<Status(ByteRange range)> prefetch;
  // The most bytes that may be asked for ahead, of all files that are being read.
  uint64_t bytes_ahead = uint64_t{8} << 20;
  bool is_remote = false;  // on a network or FUSE file system: each read waits for a server
};

// Readers read ahead to multiples of this, a page of most machines: what is read beyond the bytes
// that are needed lies in a page that holds one of them.
inline constexpr uint64_t kHeaderPage = 4096;

// Returns `status`, which does not say so, as one about the file at `path`.
Status InFile(std::string_view path, const Status& status, std::string_view hint = {});

// What the headers of a file say of one of its arrays.
struct ArrayHeader {
  std::string_view name;
  DType dtype = DType::kFloat32;
  const Shape* shape = nullptr;
  uint64_t bytes = 0;  // of its content
  // What is no tensor of whole elements (ArrayKind), which only its own container understands, as a
  // file of that container holds it; then the rest, but the name, has no meaning. Null for a
  // tensor.
  const StoredArray* opaque = nullptr;
};

// Encoded bytes, and the content that follows them, which may be empty.
struct Frame {
  std::string literal;
  // Of the row-major bytes of a tensor; for what is opaque, of the file that holds it.
  ByteRange content;
};

// Strings about a file by their keys, as safetensors files have them.
using FileStrings = std::map<std::string, std::string, std::less<>>;

// What a file says of itself besides its arrays; containers that cannot leave it out.
struct FileMetadata {
  std::string format = "ms";  // who writes tensors so: MindSpore; PyTorch's readers want "pt"
  FileStrings others = {};    // what the members here do not say
  // Whether it is stated that no redundancy is removed from the file's set.
  bool states_redundancy = false;
  // Whether a CRC-32 is stated, which is known when all contents are: 0 stands in its place, unless
  // it is known before, where it stands before the contents.
  bool states_crc = false;
  std::optional<uint32_t> crc = {};

  friend bool operator==(const FileMetadata&, const FileMetadata&) = default;
};

// Returns an array of the file by its number; valid until the next call.
using ArrayHeaderAt = std::function<Result<ArrayHeader>(size_t array)>;
// Takes what comes next in the file: bytes that are no array's.
using TakeLiteral = std::function<Status(std::string literal)>;
// Takes what comes next in the file, literals with their memory. Contents are those of the array
// that was asked for last, and all of it.
using TakeFrames = std::function<Status(std::span<Frame> frames)>;

}  // namespace reshard

#endif  // RESHARD_FORMAT_CONTAINER_CONTAINER_H_
