#include "src/os/path_relation.h"

#include <filesystem>
#include <system_error>

#include "src/base/status_macros.h"
#include "src/os/errno_status.h"
#include "src/os/file_identity.h"

namespace reshard {

Result<bool> IsInside(const std::string& path, const std::string& folder) {
  std::error_code error;
  auto resolved = std::filesystem::absolute(path, error);
  if (!error) resolved = std::filesystem::weakly_canonical(resolved, error);
  if (error) return ErrnoStatus(error.value(), "resolve", path);
  RESHARD_ASSIGN_OR_RETURN(const FileIdentity outer, IdentityOf(folder));
  for (auto ancestor = resolved; !ancestor.empty(); ancestor = ancestor.parent_path()) {
    const auto inner = IdentityOf(ancestor.string());
    if (inner.ok() && inner->device == outer.device && inner->inode == outer.inode) return true;
    if (!inner.ok() && inner.status().code() != StatusCode::kNotFound) return inner.status();
    if (ancestor == ancestor.parent_path()) break;
  }
  return false;
}

}  // namespace reshard
