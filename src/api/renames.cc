#include "reshard/renames.h"

#include <fmt/format.h>

#include "format/rename_map/rename_map_codec.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/byte_source.h"
#include "src/plan/parameter_choice.h"

namespace reshard {

Result<std::map<std::string, std::string>> ReadRenames(const std::string& path) {
  using Renames = std::map<std::string, std::string>;
  return CatchOutOfMemory([&]() -> Result<Renames> {
    RESHARD_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kMaxRenameMapBytes));
    RESHARD_ASSIGN_OR_RETURN(Renames renames, ParseRenameMap(path, bytes));
    const Status status = CheckRenames(renames);
    if (!status.ok()) {
      return Status(status.code(), fmt::format("{}: {}", Escape(path), status.message()));
    }
    return renames;
  });
}

}  // namespace reshard
