#include "format/dcp/dcp_container.h"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "format/container/file_table.h"
#include "format/container/read_only.h"

namespace reshard {
namespace {

Likeness LikeNone(std::span<const std::byte> /*head*/) { return Likeness::kNone; }

// NOLINTNEXTLINE(performance-unnecessary-value-param): as Container has it
Result<TableOfFile> ReadNoTable(const FileBytes& file, std::vector<std::byte> /*head*/,
                                const MemoryCheck& /*memory*/,
                                const std::shared_ptr<const FileTable>& /*like*/) {
  return InFile(file.path, UnsupportedError("a file of a DCP checkpoint is read by its metadata"));
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
    .crc = {CrcPlace::kBehind, NoCrcText},
    .likeness = LikeNone,
    .read_table = ReadNoTable,
    .covered_by_crc = nullptr,
    .waits_for_headers = AlwaysWaitsForHeaders,
    .can_hold = CanHoldNone,
    .loads = LoadsNone,
    .encode = nullptr,
};

}  // namespace reshard
