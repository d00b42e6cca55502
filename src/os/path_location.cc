#include "src/os/path_location.h"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "src/base/status_macros.h"
#include "src/os/paths.h"
#include "src/os/system_call.h"

namespace reshard {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // as the kernel has it
constexpr int kMaxAttempts = 1000;

// Returns the innermost link in `path` without a target; empty if there is none. All others have
// been followed.
fs::path DanglingLink(const fs::path& path) {
  for (fs::path link = path; link.has_relative_path(); link = link.parent_path()) {
    std::error_code none;  // an entry that cannot be examined is not a link
    if (fs::is_symlink(fs::symlink_status(link, none))) return link;
  }
  return {};
}

// Returns the path without links and without a slash at its end.
fs::path ResolveOnce(const std::string& path, std::error_code& error) {
  fs::path next = fs::absolute(path, error);
  for (int links = 0; links < kMaxLinks && !error; ++links) {
    fs::path resolved = fs::weakly_canonical(next, error);
    if (error) return {};
    if (!resolved.has_filename()) resolved = resolved.parent_path();
    const fs::path link = DanglingLink(resolved);
    if (link.empty()) return resolved;
    next = link.parent_path() / fs::read_symlink(link, error);
    if (link != resolved) next /= resolved.lexically_relative(link);
  }
  if (!error) error.assign(ELOOP, std::generic_category());
  return {};
}

// A path need not exist. If an entry vanishes while the path is resolved, as the work folder of
// another run does, the path is resolved again.
Result<fs::path> Resolve(const std::string& path) {
  std::error_code error;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    error.clear();
    fs::path resolved = ResolveOnce(path, error);
    if (!error) return resolved;
    if (error.value() != ENOENT) break;
  }
  return ErrnoStatus(error.value(), "resolve", path);
}

}  // namespace

Result<PathLocation> PathLocation::Of(const std::string& path) {
  RESHARD_RETURN_IF_ERROR(CheckIsPath(path));
  RESHARD_ASSIGN_OR_RETURN(const fs::path resolved, Resolve(path));
  PathLocation location;
  for (fs::path ancestor = resolved;; ancestor = ancestor.parent_path()) {
    const auto found = IdentityOf(ancestor.string());
    if (found.ok()) {
      std::string rest = resolved.lexically_relative(ancestor).string();
      if (rest == ".") rest.clear();
      location.ancestors_.push_back({found->key(), std::move(rest)});
    } else if (found.status().code() != StatusCode::kNotFound) {
      return found.status();
    }
    if (ancestor == ancestor.parent_path()) return location;
  }
}

std::optional<std::string> PathLocation::From(const PathLocation& folder) const {
  if (folder.ancestors_.empty()) return std::nullopt;
  const Ancestor& base = folder.ancestors_.front();
  for (const Ancestor& ancestor : ancestors_) {
    if (ancestor.key != base.key) continue;
    if (base.rest.empty()) return ancestor.rest;
    if (ancestor.rest == base.rest) return std::string();
    if (ancestor.rest.starts_with(base.rest + '/')) {
      return ancestor.rest.substr(base.rest.size() + 1);
    }
  }
  return std::nullopt;
}

std::string FolderOf(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace reshard
