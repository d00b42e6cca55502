// LocalFile: a regular file, open and perhaps mapped. Storage (src/io/storage.h) opens it.
//
// Owns its descriptor and its map. Once made and mapped it does not change. Reads are repeated by
// the retries of the thread that opened it (retries.h). Any number of threads may read from one.
// For code that keeps windows of the bytes (src/io/file_windows.h), it tells and changes which of
// its pages are mapped and in the page cache. Ranges of pages begin at a page.
#ifndef RESHARD_SRC_OS_LOCAL_FILE_H_
#define RESHARD_SRC_OS_LOCAL_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/os/byte_source.h"
#include "src/os/file_pages.h"
#include "src/os/mapped_file.h"
#include "src/os/retries.h"
#include "src/os/system_call.h"

namespace reshard {

class LocalFile final : public ByteSource {
 public:
  // Opens without ever waiting for another process; symbolic links are followed. Reads will not
  // read ahead. Errors: kNotFound; kCorrupt for a folder, pipe, device or socket; kIo.
  static Result<LocalFile> Open(const std::string& path);

  LocalFile(LocalFile&& other) noexcept = default;
  LocalFile& operator=(LocalFile&& other) noexcept = default;

  uint64_t size() const override { return identity().size(); }

  Status ReadAt(uint64_t offset, std::span<std::byte> destination) const override;
  void Prefetch(ByteRange range) const override;
  // Whether the file lies on a network or FUSE file system. There a map is slow, and a page that
  // the server does not deliver is a signal instead of an error.
  bool IsRemote() const override;
  bool HasCheapReads() const override;
  const LocalFile* pages() const override { return this; }
  LocalFile* pages() override { return this; }

  // Maps the file, which must not be empty. The kernel then reads only the touched pages of the
  // map. With kLarge, it reads the large pages (file_pages.h) around them, if the system can.
  // Errors: as MapFile.
  enum class MapPages { kSmall, kLarge };
  Status Map(MapPages pages);

  // Maps the file, which must not be empty. The map may outlive the source. Errors: as MapFile.
  Result<std::shared_ptr<std::byte>> MapWhole(MapAccess access) const;

  // Ok while the file is the one that was opened. It is asked about the file that is open, not the
  // one that lies at its path by now. Errors: kChanged; kIo.
  Status CheckUnchanged() const;

  // The first byte of the file's map; null: it is not mapped. Touch its bytes under the fault guard
  // (fault_guard.h), because a file that shrinks takes its pages away. In the last page, bytes
  // beyond the new end read as zeros without a sign: only the identity tells.
  const std::byte* map() const { return map_.get(); }

  // For a mapped file: why the byte at `offset` of the map cannot be read.
  Status ExplainFault(uint64_t offset) const;
  // Makes these bytes of the map present. If Prefetch was called for them, it makes only these
  // present; otherwise, if the next function returns true, also the rest of their large pages
  // (file_pages.h).
  // Errors: kChanged; kIo.
  Status Populate(ByteRange range) const;
  bool ReadsLargePages() const { return reads_large_pages_; }
  // Gives the map's pages back that lie wholly within `range`; touching them brings them back.
  void Unmap(ByteRange range) const;

  // As the functions of file_pages.h.
  Residency FindUncached(ByteRange range, const std::function<void(ByteRange)>& visit) const;
  bool DropCached(ByteRange range) const;

  // The file, opened again for ReadPastCache; owns no descriptor if such reads are not supported.
  // The sizes that may be read depend on the file system. Whole pages into whole pages always work.
  FileDescriptor OpenPastCache() const;
  // As ByteSource::ReadAt, past the page cache: in as few requests to a server as the file system
  // makes, and without pages to drop afterwards. Returns false if that fails, or is not possible
  // for these bytes. ReadAt then tells why.
  bool ReadPastCache(const FileDescriptor& opened, uint64_t offset,
                     std::span<std::byte> destination) const;

 private:
  LocalFile(std::string path, const FileIdentity& identity, FileDescriptor descriptor)
      : ByteSource(std::move(path), identity),
        descriptor_(std::move(descriptor)),
        retries_(CurrentRetries()) {}

  static Result<LocalFile> OpenOnce(const std::string& path);
  // Copies the bytes at `offset`, as far as the file has them, and returns how many. Errors: kIo.
  Result<size_t> ReadFrom(int descriptor, uint64_t offset, std::span<std::byte> destination) const;
  // Puts the file at its path behind the descriptor again, at once for all threads, if it is the
  // same one. Errors: kChanged; as Open.
  Status Reopen() const;

  FileDescriptor descriptor_;
  std::shared_ptr<Retries> retries_;  // null: none
  std::shared_ptr<const std::byte> map_;
  bool reads_large_pages_ = false;
};

}  // namespace reshard

#endif  // RESHARD_SRC_OS_LOCAL_FILE_H_
