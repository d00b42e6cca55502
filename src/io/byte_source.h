// ByteSource: bytes that do not change while they are read. They come from a file that Storage
// opened (storage.h), or from an encrypted file, decrypted (decrypted_file.h).
//
// Any number of threads may read from one.
#ifndef RESHARD_SRC_IO_BYTE_SOURCE_H_
#define RESHARD_SRC_IO_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/os/file_identity.h"
#include "src/os/file_pages.h"
#include "src/os/mapped_file.h"
#include "src/os/system_call.h"

namespace reshard {

enum class Decryption {
  kNone,      // the bytes stand so in the file
  kProven,    // decrypted, and a tag proves the bytes and the key
  kUnproven,  // decrypted; another key gives other bytes, without a sign
};

// FilePages: the system's treatment of the pages of a source that is a local file. They can be
// mapped, and are in the page cache or not. Other sources do not have this capability.
//
// For code that keeps windows of the bytes (file_windows.h). Ranges of pages begin at a page.
class FilePages {
 public:
  // Maps the file, which must not be empty. The kernel then reads only the touched pages of the
  // map. With kLarge, it reads the large pages (file_pages.h) around them, if the system can.
  // Errors: as MapFile.
  enum class MapPages { kSmall, kLarge };
  virtual Status Map(MapPages pages) = 0;

  // Maps the file, which must not be empty. The map may outlive the source. Errors: as MapFile.
  virtual Result<std::shared_ptr<std::byte>> MapWhole(MapAccess access) const = 0;

  // Ok while the file is the one that was opened. It is asked about the file that is open, not the
  // one that lies at its path by now. Errors: kChanged; kIo.
  virtual Status CheckUnchanged() const = 0;

  // The first byte of the file's map; null: it is not mapped. Touch its bytes under the fault guard
  // (fault_guard.h), because a file that shrinks takes its pages away. In the last page, bytes
  // beyond the new end read as zeros without a sign: only the identity tells.
  virtual const std::byte* map() const = 0;

  // For a mapped file: why the byte at `offset` of the map cannot be read.
  virtual Status ExplainFault(uint64_t offset) const = 0;
  // Makes these bytes of the map present. If Prefetch was called for them, it makes only these
  // present; otherwise, if the next function returns true, also the rest of their large pages
  // (file_pages.h).
  // Errors: kChanged; kIo.
  virtual Status Populate(ByteRange range) const = 0;
  virtual bool ReadsLargePages() const = 0;
  // Gives the map's pages back that lie wholly within `range`; touching them brings them back.
  virtual void Unmap(ByteRange range) const = 0;

  // As the functions of file_pages.h.
  virtual Residency FindUncached(ByteRange range,
                                 const std::function<void(ByteRange)>& visit) const = 0;
  virtual bool DropCached(ByteRange range) const = 0;

  // The file, opened again for ReadPastCache; owns no descriptor if such reads are not supported.
  virtual FileDescriptor OpenPastCache() const = 0;
  // As ByteSource::ReadAt, past the page cache: in as few requests to a server as the file system
  // makes, and without pages to drop afterwards. Returns false if that fails, or is not possible
  // for these bytes. ReadAt then tells why.
  virtual bool ReadPastCache(const FileDescriptor& opened, uint64_t offset,
                             std::span<std::byte> destination) const = 0;

 protected:
  FilePages() = default;
  FilePages(FilePages&&) = default;
  FilePages& operator=(FilePages&&) = default;
  ~FilePages() = default;
};

// A source has to have an identity, a size, ReadAt and Prefetch. The other virtual functions are
// optional abilities.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // For messages.
  const std::string& path() const { return path_; }
  // The identity of the file when it was opened: while it is the same, the bytes are.
  const FileIdentity& identity() const { return identity_; }
  // Of the bytes that are read. A decrypted file has fewer bytes than the file on disk.
  virtual uint64_t size() const = 0;

  // Ok when it had these bytes when it was opened.
  // Errors: kCorrupt, naming path, offset, expected and found.
  Status CheckRange(uint64_t offset, uint64_t length) const;

  // Copies exactly `destination.size()` bytes at `offset`.
  // Errors: as CheckRange; kChanged when the file has shrunk; kIo.
  virtual Status ReadAt(uint64_t offset, std::span<std::byte> destination) const = 0;

  // Starts reading these bytes, without waiting, for a later ReadAt. Has no effect if that does not
  // help.
  virtual void Prefetch(ByteRange range) const = 0;

  // Whether each read waits for a server, as on a network or FUSE file system.
  virtual bool IsRemote() const { return true; }
  // Whether reads here and there cost about as much as reads in a row, as far as that is known.
  virtual bool HasCheapReads() const { return false; }
  // Whether these bytes can be had without a wait for a disk or a server.
  virtual bool IsCached(ByteRange /*range*/) const { return false; }
  virtual Decryption decryption() const { return Decryption::kNone; }
  // Null if the source is not a local file, or manages its pages by itself.
  virtual const FilePages* pages() const { return nullptr; }
  virtual FilePages* pages() { return nullptr; }

 protected:
  ByteSource(std::string path, const FileIdentity& identity)
      : path_(std::move(path)), identity_(identity) {}
  ByteSource(ByteSource&&) = default;
  ByteSource& operator=(ByteSource&&) = default;

 private:
  std::string path_;
  FileIdentity identity_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_IO_BYTE_SOURCE_H_
