#include "src/convert/crc_files.h"

#include "src/base/status_macros.h"
#include "src/os/threads.h"
#include "src/source/read_file_table.h"
#include "src/verify/crc_check.h"

namespace reshard {

Result<CrcFiles> FindCrcFiles(OpenedSource& source, const std::set<int64_t>& ranks) {
  CrcFiles found;
  for (const OpenedSource::File& file : source.chosen()) {
    if (!ranks.contains(file.rank)) continue;
    RESHARD_ASSIGN_OR_RETURN(const auto covered, CoveredByCrc(source.files(), file.id));
    if (!covered) continue;
    found.files.push_back(file.id);
    found.bytes += covered->length;
  }
  return found;
}

Status CheckCrcFiles(OpenedSource& source, const CrcFiles& files, const SharedWork& work) {
  const auto check = [&](size_t i, const std::stop_token& stop) -> Status {
    RESHARD_ASSIGN_OR_RETURN(const TableHandle index, source.indexes().Get(files.files[i]));
    return CheckCrc(source.files(), *index, work.progress, stop);
  };
  return RunWorkers(work.workers, files.files.size(), check, work.stop);
}

}  // namespace reshard
