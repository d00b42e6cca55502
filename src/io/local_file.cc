#include "src/io/local_file.h"

#include <fmt/format.h>

#include <cerrno>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/file_pages.h"
#include "src/os/storage_kind.h"

namespace reshard {

Result<LocalFile> LocalFile::Open(const std::string& path) {
  RESHARD_ASSIGN_OR_RETURN(InputFile file, Retried(path, [&] { return OpenInputFile(path); }));
  return LocalFile(path, std::move(file));
}

Status LocalFile::ReadAt(uint64_t offset, std::span<std::byte> destination) const {
  RESHARD_RETURN_IF_ERROR(CheckRange(offset, destination.size()));
  Result<size_t> count = ReadInputFile(descriptor_.get(), path(), offset, destination);
  if (!count.ok() && retries_ != nullptr) {
    const auto is_remote = [this] { return IsOnRemote(descriptor_.get()); };
    const auto read_again = [&](const Status& failed) -> Status {
      if (failed.system_error() == ESTALE) RESHARD_RETURN_IF_ERROR(Reopen());
      count = ReadInputFile(descriptor_.get(), path(), offset, destination);
      return count.status();
    };
    RESHARD_RETURN_IF_ERROR(retries_->Repeat(count.status(), is_remote, read_again));
  }
  if (!count.ok()) return count.status();
  if (*count == destination.size()) return {};
  return ChangedError(fmt::format(
      "{}: the file shrank from {} to at most {} bytes while it was read; start again when "
      "nothing writes to it",
      Escape(path()), size(), offset + *count));
}

Status LocalFile::Reopen() const {
  const Result<InputFile> opened = OpenInputFile(path());
  const bool is_gone = opened.status().code() == StatusCode::kNotFound;
  if (!opened.ok() && !is_gone) return opened.status();
  if (is_gone || opened->identity != identity()) {
    return ChangedError(fmt::format(
        "{}: the file changed while it was in use: {}; start again when no program writes to the "
        "sources",
        Escape(path()), is_gone ? "it is gone" : DescribeChange(identity(), opened->identity)));
  }
  return ReplaceDescriptor(opened->descriptor.get(), descriptor_.get(), path());
}

bool LocalFile::ReadPastCache(const FileDescriptor& opened, uint64_t offset,
                              std::span<std::byte> destination) const {
  const Result<size_t> count = ReadInputFile(opened.get(), path(), offset, destination);
  return count.ok() && *count == destination.size();
}

void LocalFile::Prefetch(ByteRange range) const {
  if (map_) {
    reshard::Prefetch(map_.get() + range.offset, range.length);
  } else {
    PrefetchInputFile(descriptor_.get(), range);
  }
}

bool LocalFile::IsRemote() const { return StorageOf(descriptor_.get()) == StorageKind::kRemote; }

bool LocalFile::HasCheapReads() const { return reshard::HasCheapReads(descriptor_.get()); }

Status LocalFile::Map(MapPages pages) {
  RESHARD_ASSIGN_OR_RETURN(map_, MapWhole(MapAccess::kRead));
  AdviseRandom(map_.get(), size());
  reads_large_pages_ = pages == MapPages::kLarge && AdviseLargePages(map_.get(), size());
  return {};
}

Result<std::shared_ptr<std::byte>> LocalFile::MapWhole(MapAccess access) const {
  return MapFile(descriptor_.get(), size(), path(), access);
}

Status LocalFile::Populate(ByteRange range) const {
  const std::optional<size_t> fault = reshard::Populate(map_.get() + range.offset, range.length);
  return fault ? ExplainFault(range.offset + *fault) : Status();
}

void LocalFile::Unmap(ByteRange range) const { DropPages(map_.get() + range.offset, range.length); }

Residency LocalFile::FindUncached(ByteRange range,
                                  const std::function<void(ByteRange)>& visit) const {
  return reshard::FindUncached(descriptor_.get(), size(), map(), range, visit);
}

bool LocalFile::DropCached(ByteRange range) const {
  return reshard::DropCached(descriptor_.get(), size(), range);
}

Status LocalFile::CheckUnchanged() const {
  RESHARD_ASSIGN_OR_RETURN(const FileIdentity now, IdentityOfOpen(descriptor_.get(), path()));
  if (now == identity()) return {};
  return ChangedError(
      fmt::format("{}: the file changed while it was in use: {}; start again when no program "
                  "writes to the sources",
                  Escape(path()), DescribeChange(identity(), now)));
}

Status LocalFile::ExplainFault(uint64_t offset) const {
  RESHARD_RETURN_IF_ERROR(CheckUnchanged());
  return IoError(
      fmt::format("{}: cannot read the page at offset {}: the disk or the file system does not "
                  "deliver it; look "
                  "at the kernel's log",
                  Escape(path()), offset),
      EIO);
}

}  // namespace reshard
