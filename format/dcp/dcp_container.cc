#include "format/dcp/dcp_container.h"

#include <memory>
#include <optional>
#include <vector>

#include "format/container/file_table.h"

namespace reshard {
namespace {

Likeness LikeNone(std::span<const std::byte> /*head*/) { return Likeness::kNone; }

// NOLINTNEXTLINE(performance-unnecessary-value-param): as Container has it
Result<TableOfFile> ReadNoTable(const FileBytes& file, std::vector<std::byte> /*head*/,
                                const MemoryCheck& /*memory*/,
                                const std::shared_ptr<const FileTable>& /*like*/) {
  return InFile(file.path, UnsupportedError("a file of a DCP checkpoint is read by its metadata"));
}

Result<std::optional<uint64_t>> CoveredByNone(const FileBytes& /*file*/) {
  return std::optional<uint64_t>();
}

bool WaitsForItems(const FileTable& /*table*/) { return true; }

bool HoldsNone(ArrayKind /*kind*/, DType /*dtype*/) { return false; }

MindSporeLoads LoadsNoItem(DType /*dtype*/, const Shape& /*shape*/) { return MindSporeLoads::kNot; }

Result<CrcText> NoTextOfCrc(std::span<const std::byte> /*head*/, uint64_t /*file_size*/,
                            uint32_t /*crc*/) {
  return CorruptError("there is no place in it that states a CRC-32");
}

}  // namespace

constinit const Container kDcpContainer = {
    .name = "dcp",
    .kind = "a file of a DCP checkpoint (weights)",
    .extension = "",
    .has_one_header = false,
    .has_metadata = false,
    .has_other_values = false,
    .may_be_encrypted = false,
    .may_be_one_stage = false,
    .crc = {CrcPlace::kBehind, NoTextOfCrc},
    .likeness = LikeNone,
    .read_table = ReadNoTable,
    .covered_by_crc = CoveredByNone,
    .waits_for_headers = WaitsForItems,
    .can_hold = HoldsNone,
    .loads = LoadsNoItem,
    .encode = nullptr,
};

}  // namespace reshard
