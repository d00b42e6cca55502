#include "format/torch_zip/torch_zip_container.h"

#include <cstddef>
#include <memory>
#include <vector>

#include "format/container/file_table.h"
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
    .has_other_values = true,
    .likeness = LikenessOfTorchZip,
    .read_table = ReadTorchFile,
};

}  // namespace reshard
