#include "src/io/storage.h"

#include <fmt/format.h>

#include <filesystem>
#include <span>
#include <utility>

#include "reshard/parameters.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/local_file.h"
#include "src/os/paths.h"
#include "src/os/retries.h"
#include "src/os/used_files.h"

namespace reshard {

std::string PathIn(const std::string& folder, std::string_view name) {
  return (std::filesystem::path(folder) / name).string();
}

const Storage& Storage::Of(const std::string& /*path*/) {
  static const Storage kLocal{};
  return kLocal;
}

Result<std::vector<DirectoryEntry>> Storage::List(const std::string& folder) const {
  return Retried(folder, [&] { return ListDirectory(folder); });
}

Result<PathKind> Storage::KindOf(const std::string& path) const {
  return Retried(path, [&] { return reshard::KindOf(path); });
}

Status Storage::CheckIsFolder(const std::string& path) const {
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, KindOf(path));
  if (kind == PathKind::kDirectory) return {};
  return NotFoundError(fmt::format("{}: expected a folder, found {}", Escape(path),
                                   kind == PathKind::kMissing ? "nothing"
                                   : kind == PathKind::kFile  ? "a file"
                                                              : "a device, socket or pipe"));
}

Result<FileIdentity> Storage::Stat(const std::string& path) const {
  return Retried(path, [&] { return IdentityOf(path); });
}

Result<FileIdentity> Storage::Pin(const std::string& path) const {
  RESHARD_ASSIGN_OR_RETURN(const FileIdentity identity, Stat(path));
  RESHARD_RETURN_IF_ERROR(NoteInput(path, identity));
  return identity;
}

Status Storage::KeepFromOutputs(const std::string& path) const {
  return reshard::KeepFromOutputs(path, [&] { return Stat(path); });
}

Result<PathLocation> Storage::Locate(const std::string& path) const {
  return Retried(path, [&] { return PathLocation::Of(path); });
}

Result<std::unique_ptr<ByteSource>> Storage::Open(const std::string& path) const {
  RESHARD_ASSIGN_OR_RETURN(LocalFile file, LocalFile::Open(path));
  RESHARD_RETURN_IF_ERROR(NoteInput(path, file.identity()));
  return std::unique_ptr<ByteSource>(std::make_unique<LocalFile>(std::move(file)));
}

Result<std::string> Storage::ReadWhole(const std::string& path, uint64_t limit) const {
  RESHARD_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> file, Open(path));
  if (file->size() > limit) {
    return CorruptError(fmt::format("{}: expected at most {}, found {}; is it the right file?",
                                    Escape(path), FormatBytes(limit), FormatBytes(file->size())));
  }
  std::string content(file->size(), '\0');
  RESHARD_RETURN_IF_ERROR(file->ReadAt(0, std::as_writable_bytes(std::span(content))));
  return content;
}

}  // namespace reshard
