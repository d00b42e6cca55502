// An item in a .distcp file: a zip of torch.save with a single tensor (SPEC.md).
#ifndef RESHARD_FORMAT_TORCH_ZIP_TENSOR_ITEM_H_
#define RESHARD_FORMAT_TORCH_ZIP_TENSOR_ITEM_H_

#include "format/container/container.h"
#include "format/container/file_table.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/base/memory_check.h"

namespace reshard {

struct TorchTensorItem {
  DType dtype = DType::kFloat32;
  Shape shape;
  ByteRange content;  // its row-major bytes, in the file
  // Of the member that has them, for TableOfFile::content_crcs. Not checked. It may cover more
  // bytes; it covers none if the tensor has no elements or the zip has no CRC-32s.
  ContentCrc crc;
};

// Reads the tensor in the bytes `item` of `file`: in an item of the usual form, the first
// kZipHeadBytes and the last kZipTailBytes (zip_directory.h), or all of a shorter item at once.
// Checks the CRC-32 of all bytes that it interprets, if the zip has CRC-32s. The content is not
// read.
//
// Errors, with file and offset:
//   kCorrupt: no zip of torch.save, a tensor that leaves its storage, another object
//   kUnsupported: a tensor whose row-major bytes are not there as they are; names its kind
//   kResourceExhausted; as `file` and `memory`
Result<TorchTensorItem> ReadTensorItem(const FileBytes& file, ByteRange item,
                                       const MemoryCheck& memory);

}  // namespace reshard

#endif  // RESHARD_FORMAT_TORCH_ZIP_TENSOR_ITEM_H_
