// The table of containers: all formats of checkpoint files that are read and written, a row each.
//
// Code above uses only the properties of the rows, and does not list containers or tell them apart.
// Code for one container, such as for folders of safetensors files, names its row.
#ifndef RESHARD_FORMAT_CONTAINER_TABLE_CONTAINER_TABLE_H_
#define RESHARD_FORMAT_CONTAINER_TABLE_CONTAINER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "format/container/container.h"
#include "format/container/file_table.h"
#include "reshard/byte_range.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"

namespace reshard {

// Returns the container with the extension of `file_name`, or null.
const Container* ContainerNamed(std::string_view file_name);

// Returns the extension of a checkpoint, ".ckpt" or ".safetensors", if `file_name` has one; else
// "".
std::string_view CheckpointExtension(std::string_view file_name);

// Returns the container of a file that begins with `head`, kSignatureBytes bytes or more, if there
// is no doubt; else null.
const Container* ContainerCertainlyOf(std::span<const std::byte> head);

// Returns the container of a file of `file_size` bytes that begins with `head`: its first
// kSignatureBytes bytes or more, or all of a smaller file. A checkpoint of MindSpore has no
// signature, so any file of unknown kind counts as one. Never null.
// Errors:
//   kUnsupported: an encrypted checkpoint (naming the mode), or another kind of file
//   kCorrupt: JSON text, or an empty file
Result<const Container*> ContainerOf(std::span<const std::byte> head, uint64_t file_size);

// Returns the container that files without a signature count as: MindSpore's.
const Container& DefaultContainer();

// Returns the container of the files that a target has.
const Container& ContainerOf(TargetFormat format);

// Returns the container in which files of `container` are written again: itself, or safetensors if
// its files are only read.
const Container& WrittenAs(const Container& container);

// Finds the container from the first bytes, and reads the table: Container::read_table. The bytes
// may come from another place than a file.
Result<TableOfFile> ReadTable(const FileBytes& bytes, const MemoryCheck& memory = {},
                              const std::shared_ptr<const FileTable>& like = nullptr);

// Finds the container from the first bytes, and returns the result of Container::covered_by_crc.
// Returns no value for bytes of no container; reading the file reports their kind.
Result<std::optional<uint64_t>> CoveredByCrc(const FileBytes& bytes);
// Returns how many bytes of contents the CRC-32s cover; no value if there are none.
std::optional<uint64_t> CoveredBytes(const std::vector<ContentCrc>& crcs);

}  // namespace reshard

#endif  // RESHARD_FORMAT_CONTAINER_TABLE_CONTAINER_TABLE_H_
