#include "src/os/single_output.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

// A lost attempt means that another run has just ended.
constexpr int kNameAttempts = 100;

std::string StagedName(const std::string& name) { return name + ".reshard"; }

Status CheckFree(const OutputDirectory& folder, const std::string& name, bool replace) {
  RESHARD_ASSIGN_OR_RETURN(const auto entry, folder.Look(name));
  if (!entry) return {};
  if (entry->type != OutputDirectory::EntryType::kFile) {
    return AlreadyExistsError(fmt::format("{}: is {}; choose another name",
                                          Escape(folder.PathOf(name)), DescribeType(entry->type)));
  }
  if (replace) return {};
  return AlreadyExistsError(
      fmt::format("{}: exists; pass --force to replace it, or choose another name",
                  Escape(folder.PathOf(name))));
}

// Makes the staged file, empty, and locks it.
Result<FileLock> ClaimStaged(const OutputDirectory& folder, const std::string& name) {
  const std::string staged = StagedName(name);
  for (int i = 0; i < kNameAttempts; ++i) {
    RESHARD_ASSIGN_OR_RETURN(FileLock lock, FileLock::Open(folder, staged));
    RESHARD_ASSIGN_OR_RETURN(const bool had, lock.Try(FileLock::Mode::kExclusive));
    if (!had) {
      return AlreadyExistsError(
          fmt::format("{}: another run is writing it", Escape(folder.PathOf(name))));
    }
    if (!lock.IsNamed(folder, staged)) continue;
    RESHARD_ASSIGN_OR_RETURN(const auto entry, folder.Look(staged));
    if (entry && entry->size == 0) return lock;
    RESHARD_RETURN_IF_ERROR(folder.RemoveFile(staged));  // a run was killed
  }
  return IoError(fmt::format("{}: is replaced again and again", Escape(folder.PathOf(staged))));
}

}  // namespace

SingleOutput::SingleOutput(OutputDirectory folder, std::vector<std::string> made, std::string name,
                           FileLock lock)
    : folder_(std::move(folder)),
      made_(std::move(made)),
      name_(std::move(name)),
      lock_(std::move(lock)) {}

Result<SingleOutput> SingleOutput::Claim(const std::string& path, bool replace) {
  const std::filesystem::path whole(path);
  std::string name = whole.filename().string();
  const std::string parent = whole.has_parent_path() ? whole.parent_path().string() : ".";
  if (name.empty() || name == "." || name == "..") {
    return InvalidArgumentError(fmt::format("{}: is no name of a file", Quote(path)));
  }
  std::vector<std::string> made;
  const auto claim = [&]() -> Result<SingleOutput> {
    RESHARD_ASSIGN_OR_RETURN(OutputDirectory folder, OutputDirectory::Create(parent, made));
    RESHARD_RETURN_IF_ERROR(CheckFree(folder, name, replace));
    RESHARD_ASSIGN_OR_RETURN(FileLock lock, ClaimStaged(folder, name));
    return SingleOutput(std::move(folder), made, std::move(name), std::move(lock));
  };
  auto claimed = claim();
  if (!claimed.ok()) OutputDirectory::RemoveMade(made);
  return claimed;
}

SingleOutput::~SingleOutput() {
  if (published_ || folder_.fd() < 0) return;  // or moved from
  // Nobody is left to tell of a failure; the next run for this place clears what stays behind.
  static_cast<void>(folder_.RemoveFile(StagedName(name_)));
  OutputDirectory::RemoveMade(made_);
}

Result<StagedFile> SingleOutput::Create(uint64_t size, const WriteOptions& options) const {
  return StagedFile::OpenPart(folder_, StagedName(name_), size, {0, size}, options);
}

Status SingleOutput::Publish() {
  RESHARD_RETURN_IF_ERROR(folder_.Rename(StagedName(name_), folder_, name_));
  published_ = true;
  return folder_.Sync();
}

}  // namespace reshard
