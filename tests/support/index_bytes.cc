#include "tests/support/index_bytes.h"

#include <utility>

#include "src/source/indexed_file.h"
#include "tests/support/temporary_folder.h"

namespace reshard {

Result<IndexedFile> IndexBytes(std::string_view bytes) {
  const TemporaryFolder folder;
  SourceFiles files(1);
  Result<IndexedFile> index = ReadFileTable(files, files.Add(folder.Write("net.ckpt", bytes)));
  if (index.ok()) return index;
  // The folder's name differs from run to run.
  std::string message = index.status().message();
  const std::string prefix = folder.path().string() + "/";
  if (message.starts_with(prefix)) message.erase(0, prefix.size());
  return Status(index.status().code(), std::move(message));
}

}  // namespace reshard
