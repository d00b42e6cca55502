#include "src/io/byte_source.h"

#include <fmt/format.h>

#include <cerrno>

#include "reshard/parameters.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/file_pages.h"
#include "src/os/storage_kind.h"

namespace reshard {

Result<LocalFile> LocalFile::Open(const std::string& path) {
  RESHARD_ASSIGN_OR_RETURN(InputFile file, OpenInputFile(path));
  return LocalFile(path, std::move(file));
}

Result<FileIdentity> LocalFile::CurrentIdentity() const {
  return IdentityOfOpen(descriptor_.get(), path());
}

Status ByteSource::CheckRange(uint64_t offset, uint64_t length) const {
  if (offset <= size() && length <= size() - offset) return {};
  return CorruptError(fmt::format(
      "{}: expected {} bytes at offset {}, found {}: the file ends at {}; is it cut off?",
      Escape(path()), length, offset, offset < size() ? size() - offset : 0, size()));
}

Status LocalFile::ReadAt(uint64_t offset, std::span<std::byte> destination) const {
  RESHARD_RETURN_IF_ERROR(CheckRange(offset, destination.size()));
  RESHARD_ASSIGN_OR_RETURN(const size_t count,
                           ReadInputFile(descriptor_.get(), path(), offset, destination));
  if (count == destination.size()) return {};
  return ChangedError(fmt::format(
      "{}: the file shrank from {} to at most {} bytes while it was read; start again when "
      "nothing writes to it",
      Escape(path()), size(), offset + count));
}

bool LocalFile::ReadPastCache(const FileDescriptor& opened, uint64_t offset,
                              std::span<std::byte> destination) const {
  const Result<size_t> count = ReadInputFile(opened.get(), path(), offset, destination);
  return count.ok() && *count == destination.size();
}

void LocalFile::Prefetch(ByteRange range) const {
  if (map_) {
    reshard::Prefetch(map_->data() + range.offset, range.length);
  } else {
    PrefetchInputFile(descriptor_.get(), range);
  }
}

bool LocalFile::IsRemote() const { return StorageOf(descriptor_.get()) == StorageKind::kRemote; }

bool LocalFile::HasCheapReads() const { return reshard::HasCheapReads(descriptor_.get()); }

Status LocalFile::Map() {
  RESHARD_ASSIGN_OR_RETURN(map_, FileMap::Make(descriptor_.get(), size(), path()));
  return {};
}

void LocalFile::AdviseRandom() const { reshard::AdviseRandom(map_->data(), size()); }

void LocalFile::AdviseLargePages() {
  reads_large_pages_ = reshard::AdviseLargePages(map_->data(), size());
}

Status LocalFile::Populate(ByteRange range) const {
  const std::optional<size_t> fault = reshard::Populate(map_->data() + range.offset, range.length);
  return fault ? ExplainFault(range.offset + *fault) : Status();
}

void LocalFile::Unmap(ByteRange range) const {
  DropPages(map_->data() + range.offset, range.length);
}

Residency LocalFile::FindUncached(ByteRange range,
                                  const std::function<void(ByteRange)>& visit) const {
  return reshard::FindUncached(descriptor_.get(), size(), map(), range, visit);
}

bool LocalFile::DropCached(ByteRange range) const {
  return reshard::DropCached(descriptor_.get(), size(), range);
}

Status LocalFile::ExplainFault(uint64_t offset) const {
  RESHARD_ASSIGN_OR_RETURN(const FileIdentity now, CurrentIdentity());
  if (now != identity()) {
    return ChangedError(fmt::format(
        "{}: the file changed while it was in use: {}; start again when nothing writes to the "
        "sources",
        Escape(path()), DescribeChange(identity(), now)));
  }
  return IoError(
      fmt::format("{}: cannot read the page at offset {}: the disk or the file system does not "
                  "deliver it; look "
                  "at the kernel's log",
                  Escape(path()), offset),
      EIO);
}

Result<std::string> ReadFile(const std::string& path, uint64_t limit) {
  RESHARD_ASSIGN_OR_RETURN(const LocalFile file, LocalFile::Open(path));
  if (file.size() > limit) {
    return CorruptError(fmt::format("{}: expected at most {}, found {}; is it the right file?",
                                    Escape(path), FormatBytes(limit), FormatBytes(file.size())));
  }
  std::string content(file.size(), '\0');
  RESHARD_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(content))));
  return content;
}

}  // namespace reshard
