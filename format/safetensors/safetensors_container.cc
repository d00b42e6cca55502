#include "format/safetensors/safetensors_container.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "format/container/file_table.h"
#include "format/safetensors/safetensors_encoder.h"
#include "format/safetensors/safetensors_reader.h"
#include "format/safetensors/safetensors_types.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

Result<TableOfFile> ReadTable(const FileBytes& file, std::vector<std::byte> head,
                              const MemoryCheck& memory,
                              const std::shared_ptr<const FileTable>& /*like*/) {
  return ReadSafetensorsTable(file, head, memory);
}

Result<std::optional<uint64_t>> CoveredByCrc(const FileBytes& file) {
  const std::optional<uint64_t> none;
  RESHARD_ASSIGN_OR_RETURN(const bool may_state, MayStateCrc(file));
  if (!may_state) return none;
  std::vector<std::byte> head(std::min(file.size, kHeaderPage));
  RESHARD_RETURN_IF_ERROR(file.read(0, head));
  RESHARD_ASSIGN_OR_RETURN(const TableOfFile read, ReadSafetensorsTable(file, head, {}));
  return read.crc ? std::optional(read.crc->covered.length) : none;
}

bool HasTypeFor(ArrayKind kind, DType dtype) {
  return (kind == ArrayKind::kTensor || kind == ArrayKind::kPacked) &&
         SafetensorsTypeOf(dtype) != nullptr;
}

MindSporeLoads LoadAsWritten(DType /*dtype*/, const Shape& /*shape*/) {
  return MindSporeLoads::kAsWritten;
}

Result<CrcText> TextOfCrcMember(std::span<const std::byte> head, uint64_t /*file_size*/,
                                uint32_t crc) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const size_t member = text.find(kCrcMember);
  if (member != std::string_view::npos) {
    return CrcText{member + kCrcMember.size(), CrcMemberValue(crc)};
  }
  return CorruptError("there is no place in it that states a CRC-32");
}

}  // namespace

constinit const Container kSafetensorsContainer = {
    .name = "safetensors",
    .kind = "a safetensors file (weights)",
    .extension = ".safetensors",
    .has_one_header = true,
    .has_metadata = true,
    .crc = {CrcPlace::kInHeader, TextOfCrcMember},
    .likeness = LikenessOfSafetensors,
    .read_table = ReadTable,
    .covered_by_crc = CoveredByCrc,
    .can_hold = HasTypeFor,
    .loads = LoadAsWritten,
    .encode = EncodeSafetensors,
};

}  // namespace reshard
