#include "src/os/write_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/output_directory.h"

namespace reshard {

Status WriteFile(const std::string& path, std::string_view bytes, bool replace) {
  const std::filesystem::path whole(path);
  const std::string name = whole.filename().string();
  const std::string parent = whole.has_parent_path() ? whole.parent_path().string() : ".";
  if (name.empty() || name == "." || name == "..") {
    return InvalidArgumentError(fmt::format("{}: is no name of a file", path));
  }
  std::vector<std::string> made;
  RESHARD_ASSIGN_OR_RETURN(const OutputDirectory folder, OutputDirectory::Create(parent, made));
  RESHARD_ASSIGN_OR_RETURN(const auto entry, folder.Look(name));
  if (entry && (!replace || entry->type != OutputDirectory::EntryType::kFile)) {
    return AlreadyExistsError(
        fmt::format("{}: exists; choose another name or pass --force to replace a file", path));
  }
  const std::string staged = name + ".reshard";
  if (Status status = folder.WriteFile(staged, bytes); !status.ok()) {
    if (status.code() == StatusCode::kAlreadyExists) {
      return AlreadyExistsError(fmt::format(
          "{}.reshard: exists; another run is writing {}, or one was killed: then remove it",
          Escape(path), Escape(path)));
    }
    (void)folder.RemoveFile(staged);
    return status;
  }
  if (Status status = folder.Rename(staged, folder, name); !status.ok()) {
    (void)folder.RemoveFile(staged);
    return status;
  }
  return folder.Sync();
}

}  // namespace reshard
