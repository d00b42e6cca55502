#include "format/container/read_only.h"

namespace reshard {

bool CanHoldNone(ArrayKind /*kind*/, DType /*dtype*/) { return false; }

MindSporeLoads LoadsNone(DType /*dtype*/, const Shape& /*shape*/) { return MindSporeLoads::kNot; }

Result<CrcText> NoCrcText(std::span<const std::byte> /*head*/, uint64_t /*file_size*/,
                          uint32_t /*crc*/) {
  return CorruptError("there is no place in it that states a CRC-32");
}

bool AlwaysWaitsForHeaders(const FileTable& /*table*/) { return true; }

}  // namespace reshard
