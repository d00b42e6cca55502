// The arrays of .distcp files. The metadata lists the items of a file, and each item is a zip of
// torch.save with one tensor (SPEC.md).
//
// Constant and plain values, and functions without state; any thread.
#ifndef RESHARD_FORMAT_DCP_DCP_ITEMS_H_
#define RESHARD_FORMAT_DCP_DCP_ITEMS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "format/container/container.h"
#include "format/container/file_table.h"
#include "format/dcp/dcp_reader.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"

namespace reshard {

// A file alone does not state its arrays, so its bytes are never recognized.
extern const Container kDcpContainer;

// A chunk of a tensor, which is an array of a file.
struct DcpArray {
  const DcpMetadata* metadata = nullptr;
  const DcpTensor* tensor = nullptr;
  const DcpChunk* chunk = nullptr;
  bool is_alone = true;  // the only chunk of its tensor in the file

  ByteRange range() const { return chunk->item->range; }
  Box box() const { return metadata->BoxOf(*tensor, *chunk); }
  // The tensor's name. If others of its chunks are in the file, its box follows.
  std::string Name() const;
};

// Reads the table of a file by the head and the end of each item. `arrays` are in file order;
// `metadata` is the path of the file that lists them, for messages. Lists tensors that
// ReadTensorItem does not support. Errors: kMismatch if an item has another tensor, or two arrays
// have one name; kCorrupt if items lie outside of the file; as ReadTensorItem.
Result<TableOfFile> ReadDcpItems(const FileBytes& file, std::span<const DcpArray> arrays,
                                 std::string_view metadata, const MemoryCheck& memory);

// Returns the table of a file of `size` bytes as far as the metadata tells it: without the places
// of contents. Errors: as ReadDcpItems, but for what items say.
Result<TableOfFile> StatedDcpItems(std::string_view path, uint64_t size,
                                   std::span<const DcpArray> arrays, std::string_view metadata);

}  // namespace reshard

#endif  // RESHARD_FORMAT_DCP_DCP_ITEMS_H_
