// Reads the metadata of PyTorch's distributed checkpoint, DCP (SPEC.md): its tensors, their chunks,
// and the items that hold them.
//
// Functions without state; any thread.
#ifndef RESHARD_FORMAT_DCP_DCP_READER_H_
#define RESHARD_FORMAT_DCP_DCP_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/container/container.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/base/memory_check.h"

namespace reshard {

// The most bytes of a .metadata.
inline constexpr uint64_t kMostDcpMetadata = uint64_t{1} << 30;

// Bytes of a file, which torch.save wrote.
struct DcpItem {
  uint32_t file = 0;  // a place in DcpMetadata::files
  ByteRange range;
};

struct DcpChunk {
  // Places in DcpMetadata::numbers, with a number for each dimension.
  size_t begin = 0;
  size_t extent = 0;
  std::optional<DcpItem> item;  // none: the chunk has no elements, and is not stored
};

struct DcpTensor {
  std::string name;
  std::optional<DType> dtype;  // none: the tensor cannot be read
  std::string unsupported;     // why not
  Shape full;
  size_t first_chunk = 0;  // a place in DcpMetadata::chunks
  size_t chunk_count = 0;
};

struct DcpMetadata {
  std::vector<DcpTensor> tensors;  // each name once
  std::vector<DcpChunk> chunks;    // within their tensors
  // Names of objects that are no tensors, each once. They are not read.
  std::vector<std::string> objects;
  std::vector<std::string> files;  // paths below the folder, each once
  std::vector<int64_t> numbers;    // of chunks

  std::span<const DcpChunk> ChunksOf(const DcpTensor& tensor) const {
    return std::span(chunks).subspan(tensor.first_chunk, tensor.chunk_count);
  }
  Box BoxOf(const DcpTensor& tensor, const DcpChunk& chunk) const {
    const auto begin = numbers.begin() + static_cast<ptrdiff_t>(chunk.begin);
    const auto extent = numbers.begin() + static_cast<ptrdiff_t>(chunk.extent);
    const auto dims = static_cast<ptrdiff_t>(tensor.full.size());
    return {{begin, begin + dims}, {extent, extent + dims}};
  }
};

// Reads all of the file at once.
// Errors:
//   kCorrupt: breaks SPEC.md, or contradicts itself; names path, tensor, expected and found values
//   kUnsupported: entries of a class that is not known
//   kResourceExhausted: a larger file
//   as `file` and `memory`, which is called now and then
Result<DcpMetadata> ReadDcpMetadata(const FileBytes& file, const MemoryCheck& memory = {});

}  // namespace reshard

#endif  // RESHARD_FORMAT_DCP_DCP_READER_H_
