#include "format/torch_zip/torch_zip_container.h"

#include <cstddef>
#include <memory>
#include <vector>

#include "format/container/file_table.h"
#include "format/container/read_only.h"
#include "format/torch_zip/torch_table.h"

namespace reshard {
namespace {

// NOLINTNEXTLINE(performance-unnecessary-value-param): as Container has it
Result<TableOfFile> ReadTorchFile(const FileBytes& file, std::vector<std::byte> /*head*/,
                                  const MemoryCheck& memory,
                                  const std::shared_ptr<const FileTable>& /*like*/) {
  return ReadTorchTable(file, memory);
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
    .covered_by_crc = nullptr,
    .waits_for_headers = AlwaysWaitsForHeaders,
    .can_hold = CanHoldNone,
    .loads = LoadsNone,
    .encode = nullptr,
};

}  // namespace reshard
