// What the rows of containers have in common whose files are only read, never written. For members
// of Container.
//
// Pure functions; any thread.
#ifndef RESHARD_FORMAT_CONTAINER_READ_ONLY_H_
#define RESHARD_FORMAT_CONTAINER_READ_ONLY_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "format/container/container.h"
#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {

// can_hold: no array is written.
bool CanHoldNone(ArrayKind kind, DType dtype);

// loads: MindSpore does not know such files.
MindSporeLoads LoadsNone(DType dtype, const Shape& shape);

// CrcStatement::text: always fails with kCorrupt.
Result<CrcText> NoCrcText(std::span<const std::byte> head, uint64_t file_size, uint32_t crc);

// waits_for_headers: each array has a header of its own.
bool AlwaysWaitsForHeaders(const FileTable& table);

}  // namespace reshard

#endif  // RESHARD_FORMAT_CONTAINER_READ_ONLY_H_
