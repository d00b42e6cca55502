#include "reshard/rank_files.h"

#include <utility>

#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"
#include "src/mindspore/rank_folder.h"

namespace reshard {

Result<RankFiles> ListRankFiles(const std::string& folder, const std::string& suffix) {
  return CatchOutOfMemory([&]() -> Result<RankFiles> {
    RESHARD_ASSIGN_OR_RETURN(RankFolder found, FindRankFiles(folder, {suffix}));
    RankFiles files;
    for (RankFile& file : found.files) files.files.push_back({file.rank, std::move(file.path)});
    files.warnings = std::move(found.warnings);
    return files;
  });
}

}  // namespace reshard
