#include "format/torch_zip/torch_zip_container.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "format/container/file_table.h"
#include "format/torch_zip/torch_table.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

// NOLINTNEXTLINE(performance-unnecessary-value-param): as Container has it
Result<TableOfFile> ReadTorchFile(const FileBytes& file, std::vector<std::byte> /*head*/,
                                  const MemoryCheck& memory,
                                  const std::shared_ptr<const FileTable>& /*like*/) {
  return ReadTorchTable(file, memory);
}

Result<std::optional<uint64_t>> CoveredByMembers(const FileBytes& file) {
  RESHARD_ASSIGN_OR_RETURN(const TableOfFile read, ReadTorchTable(file, {}));
  if (read.content_crcs.empty()) return std::optional<uint64_t>();
  uint64_t bytes = 0;
  for (const ContentCrc& crc : read.content_crcs) bytes += crc.covered.length;
  return std::optional(bytes);
}

bool WaitsForTorchHeaders(const FileTable& /*table*/) { return true; }

bool CanHoldNone(ArrayKind /*kind*/, DType /*dtype*/) { return false; }

MindSporeLoads LoadsNoTorch(DType /*dtype*/, const Shape& /*shape*/) {
  return MindSporeLoads::kNot;
}

Result<CrcText> NoCrcText(std::span<const std::byte> /*head*/, uint64_t /*file_size*/,
                          uint32_t /*crc*/) {
  return CorruptError("there is no place in it that states a CRC-32");
}

}  // namespace

constinit const Container kTorchZipContainer = {
    .name = "torch",
    .kind = "a file of torch.save (weights)",
    .extension = "",
    .has_one_header = false,
    .has_metadata = false,
    .has_other_values = true,
    .may_be_encrypted = false,
    .may_be_one_stage = false,
    .crc = {CrcPlace::kBehind, NoCrcText},
    .likeness = LikenessOfTorchZip,
    .read_table = ReadTorchFile,
    .covered_by_crc = CoveredByMembers,
    .waits_for_headers = WaitsForTorchHeaders,
    .can_hold = CanHoldNone,
    .loads = LoadsNoTorch,
    .encode = nullptr,
};

}  // namespace reshard
