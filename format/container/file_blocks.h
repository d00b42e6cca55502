// FileBlocks: bytes of a file one after the other, as JsonReader takes them.
#ifndef RESHARD_FORMAT_CONTAINER_FILE_BLOCKS_H_
#define RESHARD_FORMAT_CONTAINER_FILE_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "format/container/container.h"
#include "src/base/memory_check.h"

namespace reshard {

// Reads the bytes of `range` in blocks of up to 1 MiB, each once. Before each, `memory` is asked: a
// parser keeps a string's bytes, and one may be as long as the range. Both have to stay.
class FileBlocks {
 public:
  // `head` are the file's first bytes, which are not read again.
  FileBlocks(const FileBytes& file, ByteRange range, const MemoryCheck& memory,
             std::span<const std::byte> head = {});

  // Returns the next block, valid until the next call; an empty one at the end.
  Result<std::string_view> Next();

 private:
  const FileBytes& file_;
  const MemoryCheck& memory_;
  std::span<const std::byte> block_;  // not given out yet
  uint64_t place_;                    // of the next byte to be read
  const uint64_t end_;
  std::vector<std::byte> buffer_;
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_CONTAINER_FILE_BLOCKS_H_
