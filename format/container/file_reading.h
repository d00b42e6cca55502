// What the readers of all containers share: what they are given, what they return, and the first
// bytes that tell one container from another.
#ifndef RESHARD_FORMAT_CONTAINER_FILE_READING_H_
#define RESHARD_FORMAT_CONTAINER_FILE_READING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "format/container/container.h"
#include "format/container/file_table.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"

namespace reshard {

// A file whose headers are read. Ranges have to lie in the file. Errors of both functions name it.
struct FileBytes {
  std::string_view path;  // for messages
  uint64_t size = 0;
  // Copies bytes at an offset, touching only their pages.
  std::function<Status(uint64_t offset, std::span<std::byte> out)> read;
  // Starts reading bytes that are going to be read soon, and does not wait for them.
  std::function<Status(ByteRange range)> prefetch;
  bool is_remote = false;  // on a network or FUSE file system: each read waits for a server
};

// Readers read ahead to multiples of this, a page of most machines: what is read beyond the bytes
// that are needed lies in a page that holds one of them.
inline constexpr uint64_t kHeaderPage = 4096;

// A CRC-32 that a file states of itself.
struct StatedCrc {
  uint64_t value = 0;
  ByteRange covered;
  // In file order; some writers leave these bytes out of the number.
  std::vector<ByteRange> may_lack;
};

// What reading a file yields: its table, and what is the file's own.
struct TableOfFile {
  FileTable table;
  std::optional<StatedCrc> crc;  // not checked
};

// Returns `status`, which does not say so, as one about the file at `path`.
Status InFile(std::string_view path, const Status& status, std::string_view hint = {});

// The bytes that ContainerOf looks at.
inline constexpr size_t kSignatureBytes = 9;

// Returns the container of a file of `file_size` bytes that begins with `head`: its first
// kSignatureBytes bytes or more, or all of a smaller one. A checkpoint of MindSpore has no
// signature: whatever is not known for something else is taken for one.
// Errors: kUnsupported for an encrypted checkpoint (naming the mode) and a safetensors file,
// kCorrupt for JSON text and an empty file.
Result<Container> ContainerOf(std::span<const std::byte> head, uint64_t file_size);

}  // namespace reshard

#endif  // RESHARD_FORMAT_CONTAINER_FILE_READING_H_
