// Reading of a file of torch.save as a checkpoint: its directory and data.pkl, never touching
// content (SPEC.md).
#ifndef RESHARD_FORMAT_TORCH_ZIP_TORCH_TABLE_H_
#define RESHARD_FORMAT_TORCH_ZIP_TORCH_TABLE_H_

#include <cstddef>
#include <span>

#include "format/container/container.h"
#include "format/container/file_table.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"

namespace reshard {

// Returns whether a file that begins with `head` is a zip.
Likeness LikenessOfTorchZip(std::span<const std::byte> head);

// Reads the table of a file. Arrays are in the order of their bytes, those without bytes first.
// Arrays may share bytes, as tied weights do. Holds data.pkl and its values meanwhile.
//
// Errors:
//   kCorrupt: as ReadTensorItem; two tensors with one name
//   kUnsupported: as ReadTensorItem; no dict of tensors
//   kResourceExhausted: beyond kMaxTableBytes
//   as `file` and `memory`, which is called now and then
Result<TableOfFile> ReadTorchTable(const FileBytes& file, const MemoryCheck& memory);

}  // namespace reshard

#endif  // RESHARD_FORMAT_TORCH_ZIP_TORCH_TABLE_H_
