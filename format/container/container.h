// Container: a way to write arrays into a checkpoint file, a row of the table of containers
// (format/container_table). Also the arguments of the readers and encoders of all containers.
//
// Plain values and pure functions.
#ifndef RESHARD_FORMAT_CONTAINER_CONTAINER_H_
#define RESHARD_FORMAT_CONTAINER_CONTAINER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/base/memory_check.h"

namespace reshard {

// A file whose headers are read. Ranges have to lie in the file. Errors of both functions name the
// file.
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

// Readers read ahead to multiples of this, a page of most machines. So extra bytes lie in the same
// pages as the needed ones.
inline constexpr uint64_t kHeaderPage = 4096;

// Returns `status`, which does not say so, as one about the file at `path`.
Status InFile(std::string_view path, const Status& status, std::string_view hint = {});

// The facts about an array in the headers of a file.
struct ArrayHeader {
  std::string_view name;
  DType dtype = DType::kFloat32;
  const Shape* shape = nullptr;
  uint64_t bytes = 0;  // of its content
  // An array other than a tensor of whole elements (ArrayKind), as a file of its container holds
  // it. Only that container understands it; all other fields but the name have no meaning then.
  // Null for a tensor.
  const StoredArray* opaque = nullptr;
};

// Encoded bytes, and the content that follows them, which may be empty.
struct Frame {
  std::string literal;
  // A range of the row-major bytes of a tensor. For an opaque array: a range of the file that holds
  // it.
  ByteRange content;
};

// Strings about a file by their keys, as safetensors files have them.
using FileStrings = std::map<std::string, std::string, std::less<>>;

// The key of FileMetadata::format.
inline constexpr std::string_view kFormatKey = "format";

// The statements of a file about itself, without its arrays. For containers that require them.
struct FileMetadata {
  std::string format = "ms";  // the writing framework: MindSpore; PyTorch's readers want "pt"
  FileStrings others = {};    // entries that the other members do not cover
  // Whether redundancy is removed from the file's set: each shard is in one file of those that
  // might have it. No value: it is not stated.
  std::optional<bool> removes_redundancy = {};
  // Whether a CRC-32 is stated. Its value is known after all contents, so 0 stands in its place. If
  // its place is before the contents, it may be known earlier.
  bool states_crc = false;
  std::optional<uint32_t> crc = {};

  friend bool operator==(const FileMetadata&, const FileMetadata&) = default;
};

// Returns an array of the file by its number; valid until the next call.
using ArrayHeaderAt = std::function<Result<ArrayHeader>(size_t array)>;
// Takes the next bytes of the file that do not belong to an array.
using TakeLiteral = std::function<Status(std::string literal)>;
// Takes the next parts of the file; literals are passed with their memory. Contents belong to the
// array that was asked for last, and are complete.
using TakeFrames = std::function<Status(std::span<Frame> frames)>;

// The bytes that tell a file's container, or all of a smaller file.
inline constexpr size_t kSignatureBytes = 64;

// How surely the first bytes of a file show that it is of a container.
enum class Likeness { kNone, kPossible, kCertain };

// The place of the CRC-32 in the files of a container.
enum class CrcPlace {
  kBehind,    // the last bytes, of all before them
  kInHeader,  // of names and contents that follow
};

// The bytes that state a CRC-32.
struct CrcText {
  uint64_t offset = 0;
  std::string bytes;  // with the same length for every number
};

// The first bytes of a file that CrcStatement::text needs, or all of a smaller file.
inline constexpr size_t kCrcHeadBytes = 256;

// How files of a container state their CRC-32.
struct CrcStatement {
  CrcPlace place = CrcPlace::kBehind;
  // Returns how a file of `file_size` bytes states the number `crc`. The file begins with `head`
  // and was encoded with FileMetadata::states_crc. If the place is kBehind, `head` may be empty.
  // Errors: kCorrupt for a file without a place for it. Null in a row whose files are only read.
  Result<CrcText> (*text)(std::span<const std::byte> head, uint64_t file_size,
                          uint32_t crc) = nullptr;
};

// How MindSpore treats a tensor when it loads a file.
enum class MindSporeLoads {
  kAsWritten,
  kAsScalar,  // without its shape
  kNot,       // it fails
};

class FileTable;     // format/container/file_table.h
struct TableOfFile;  // format/container/file_table.h

// The folder of a container defines the one object that describes it, so containers are compared by
// their addresses. All functions may be called by any thread.
struct Container {
  std::string_view name;  // "ckpt"
  // The kind of a file, for messages: "a MindSpore checkpoint (weights)".
  std::string_view kind;
  // ".ckpt". Empty: its files are recognized by content, and taken only if they are named.
  std::string_view extension = {};

  // Whether a single header, with its own order, is in front of all contents. Otherwise each
  // content has its own header in front.
  bool has_one_header = false;
  bool has_metadata = false;      // whether its files state FileMetadata, beside arrays' names
  bool has_other_values = false;  // whether its files may hold values that are not tensors
  bool may_be_encrypted = false;  // by MindSpore
  bool may_be_one_stage = false;  // whether MindSpore converts a stage of a pipeline alone
  CrcStatement crc = {};

  // Takes the first kSignatureBytes bytes or more of a file, or all of a smaller one. Null, as
  // `read_table`: files of the container are not recognized.
  Likeness (*likeness)(std::span<const std::byte> head) = nullptr;
  // Reads the table of the file that begins with `head`, its first page or all of a smaller file.
  // `like` is the table of another file, or null. If both tables would be equal, it may be the
  // result.
  // Errors:
  //   kCorrupt: names path, parameter, offset, expected and found values
  //   kUnsupported
  //   kResourceExhausted: beyond kMaxTableBytes
  //   as `file` and `memory`, which is called now and then
  Result<TableOfFile> (*read_table)(const FileBytes& file, std::vector<std::byte> head,
                                    const MemoryCheck& memory,
                                    const std::shared_ptr<const FileTable>& like) = nullptr;
  // Returns how many bytes the file's CRC-32 covers; no value if it states none. Null: only the
  // table tells (CoveredBytes). Errors: kCorrupt for an invalid CRC-32; as `file`.
  Result<std::optional<uint64_t>> (*covered_by_crc)(const FileBytes& file) = nullptr;
  // Whether reading such a table from a disk mostly means to wait for one header after the other.
  // Null: always.
  bool (*waits_for_headers)(const FileTable& table) = nullptr;

  // The functions below are null in a row whose files are only read.
  //
  // Whether files can hold arrays of a kind, and, of tensors, of `dtype`.
  bool (*can_hold)(ArrayKind kind, DType dtype) = nullptr;
  MindSporeLoads (*loads)(DType dtype, const Shape& shape) = nullptr;
  // Lists the parts of a file of `arrays` arrays, in file order. Calls `take` for each array once,
  // one after the other, so that very many need not be in memory together. Calls `take_literal` for
  // bytes of no array. All sizes are known before a byte of content is read.
  //
  // May ask for an array more than once, and in another order than that of their numbers, for
  // example if a single header is in front of all contents. Errors: kUnsupported for arrays that
  // the container cannot hold; as the callbacks.
  Status (*encode)(const FileMetadata& metadata, size_t arrays, const ArrayHeaderAt& header_at,
                   const TakeLiteral& take_literal, const TakeFrames& take) = nullptr;
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_CONTAINER_CONTAINER_H_
