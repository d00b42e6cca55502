// ByteSource: bytes that do not change while they are read: a regular file, open and perhaps
// mapped.
//
// The only class that knows where source bytes come from. Owns its descriptor and its map. Once
// made and mapped it does not change: any number of threads may read from it.
#ifndef RESHARD_SRC_IO_BYTE_SOURCE_H_
#define RESHARD_SRC_IO_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/os/file_pages.h"
#include "src/os/input_file.h"
#include "src/os/paths.h"
#include "src/os/system_call.h"

namespace reshard {

class ByteSource {
 public:
  // Opens without ever waiting for another process; symbolic links are followed. Reads will not
  // read ahead. Errors: kNotFound; kCorrupt for a folder, pipe, device or socket; kIo.
  static Result<ByteSource> Open(const std::string& path);

  const std::string& path() const { return path_; }
  // The identity when it was opened: while it is the same, the bytes are.
  const FileIdentity& identity() const { return file_.identity; }
  uint64_t size() const { return file_.identity.size; }

  // The identity at this moment, of the file that is open and not of what lies at its path now.
  // Errors: kIo.
  Result<FileIdentity> CurrentIdentity() const;

  // Ok when the file had these bytes when it was opened.
  // Errors: kCorrupt, naming path, offset, expected and found.
  Status CheckRange(uint64_t offset, uint64_t length) const;

  // Copies exactly `destination.size()` bytes at `offset`.
  // Errors: as CheckRange; kChanged when the file has shrunk; kIo.
  Status ReadAt(uint64_t offset, std::span<std::byte> destination) const;

  // The file, opened anew for ReadPastCache; owns nothing where the file system has no such reads.
  FileDescriptor OpenPastCache() const { return ReopenDirect(file_.descriptor.get()); }
  // As ReadAt, past the page cache: in as few requests to a server as its file system makes, and
  // nothing is left to drop. Returns false where that does not work, or not for these bytes; ReadAt
  // tells why.
  bool ReadPastCache(const FileDescriptor& opened, uint64_t offset,
                     std::span<std::byte> destination) const;

  // Starts reading these bytes, and does not wait for them. Where the system does not do that,
  // nothing happens.
  void Prefetch(ByteRange range) const;

  // Whether the file lies on a network or FUSE file system. There a map is slow, and a page that
  // the server does not deliver is a signal instead of an error.
  bool IsRemote() const;
  // Whether reads here and there cost about as much as reads in a row, as far as the kernel says.
  bool HasCheapReads() const;

  // Maps the file, which must not be empty. The kernel reads ahead as it does for any map.
  // Errors: kIo, for want of address space or because its file system has no maps.
  Status Map();
  // From now on the kernel reads nothing around the pages of the map that are touched.
  void AdviseRandom() const;
  // The map, or null before Map(). Touch its bytes under the fault guard (fault_guard.h), because a
  // file that shrinks takes its pages away. In the last page, bytes beyond the new end read as
  // zeros without a sign: only the identity tells.
  const std::byte* map() const { return map_ ? map_->data() : nullptr; }

  // What follows is for who keeps windows of the bytes (window_cache.h). Ranges begin a page where
  // pages are meant.

  // Why the byte at `offset` of the map cannot be read.
  Status ExplainFault(uint64_t offset) const;
  // Makes these bytes of the map present, and no others.
  // Errors: kChanged; kIo.
  Status Populate(ByteRange range) const;
  // Gives the map's pages back that lie wholly within `range`; touching them brings them back.
  void Unmap(ByteRange range) const;
  // As FindUncached and DropCached of file_pages.h.
  Residency FindUncached(ByteRange range, const std::function<void(ByteRange)>& visit) const;
  bool DropCached(ByteRange range) const;

 private:
  ByteSource(std::string path, InputFile file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  InputFile file_;
  std::optional<FileMap> map_;
};

// Returns the content of a small file.
// Errors: as ByteSource::Open and ReadAt; kCorrupt when it has more than `limit` bytes.
Result<std::string> ReadFile(const std::string& path, uint64_t limit);

}  // namespace reshard

#endif  // RESHARD_SRC_IO_BYTE_SOURCE_H_
