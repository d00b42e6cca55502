// The table of containers: all formats of checkpoint files that are read and written, a row each.
//
// Nothing above this lists containers or tells them apart but by the properties of their rows; code
// that is about one container, such as folders of safetensors files, names that one's row.
#ifndef RESHARD_FORMAT_CONTAINER_TABLE_CONTAINER_TABLE_H_
#define RESHARD_FORMAT_CONTAINER_TABLE_CONTAINER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "format/container/container.h"
#include "format/container/file_table.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"

namespace reshard {

// Returns the container whose extension `file_name` has, or null.
const Container* ContainerNamed(std::string_view file_name);

// Returns the extension of a checkpoint, ".ckpt" or ".safetensors", if `file_name` has one; else
// nothing.
std::string_view CheckpointExtension(std::string_view file_name);

// Returns the container of a file that begins with `head`, kSignatureBytes bytes or more, where
// they leave no doubt; else null.
const Container* ContainerCertainlyOf(std::span<const std::byte> head);

// Returns the container of a file of `file_size` bytes that begins with `head`: its first
// kSignatureBytes bytes or more, or all of a smaller one. A checkpoint of MindSpore has no
// signature: any file that nothing else knows is taken for one. Never null.
// Errors: kUnsupported for an encrypted checkpoint (naming the mode) and for files of other kinds,
// kCorrupt for JSON text and an empty file.
Result<const Container*> ContainerOf(std::span<const std::byte> head, uint64_t file_size);

// Returns the container in which files of `container` are written again: itself, or where its files
// are only read, safetensors.
const Container& WrittenAs(const Container& container);

// Finds the container by the first bytes, and reads the table: Container::read_table. The bytes
// need not be those of a file.
Result<TableOfFile> ReadTable(const FileBytes& bytes, const MemoryCheck& memory = {},
                              const std::shared_ptr<const FileTable>& like = nullptr);

// Finds the container by the first bytes, and returns what Container::covered_by_crc does; nothing
// for bytes that are in no container: reading the file says what they are.
Result<std::optional<ByteRange>> CoveredByCrc(const FileBytes& bytes);

}  // namespace reshard

#endif  // RESHARD_FORMAT_CONTAINER_TABLE_CONTAINER_TABLE_H_
