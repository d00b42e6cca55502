// ByteSource: bytes that do not change while they are read: a local file's, or what an encrypted
// one decrypts to (decrypted_file.h).
//
// Any number of threads may read from one.
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

enum class Decryption {
  kNone,      // the bytes stand so in the file
  kProven,    // decrypted, and a tag tells that they are what was encrypted, with this key
  kUnproven,  // decrypted; another key gives other bytes, without a sign
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  virtual const std::string& path() const = 0;
  // The identity of the file when it was opened: while it is the same, the bytes are.
  virtual const FileIdentity& identity() const = 0;
  // Of the bytes that are read; where a file is decrypted, fewer than the file has.
  virtual uint64_t size() const = 0;
  virtual Decryption decryption() const { return Decryption::kNone; }

  // Ok when it had these bytes when it was opened.
  // Errors: kCorrupt, naming path, offset, expected and found.
  Status CheckRange(uint64_t offset, uint64_t length) const;

  // Copies exactly `destination.size()` bytes at `offset`.
  // Errors: as CheckRange; kChanged when the file has shrunk; kIo.
  virtual Status ReadAt(uint64_t offset, std::span<std::byte> destination) const = 0;

  // The file, opened anew for ReadPastCache; owns nothing where there are no such reads.
  virtual FileDescriptor OpenPastCache() const { return {}; }
  // As ReadAt, past the page cache: in as few requests to a server as its file system makes, and
  // nothing is left to drop. Returns false where that does not work, or not for these bytes; ReadAt
  // tells why.
  virtual bool ReadPastCache(const FileDescriptor& /*opened*/, uint64_t /*offset*/,
                             std::span<std::byte> /*destination*/) const {
    return false;
  }

  // Starts reading these bytes, and does not wait for them. Where the system does not do that,
  // nothing happens.
  virtual void Prefetch(ByteRange range) const = 0;

  // Whether the file lies on a network or FUSE file system. There a map is slow, and a page that
  // the server does not deliver is a signal instead of an error.
  virtual bool IsRemote() const = 0;
  // Whether reads here and there cost about as much as reads in a row, as far as the kernel says.
  virtual bool HasCheapReads() const = 0;

  // Where it is mapped, its first byte, else null. Touch its bytes under the fault guard
  // (fault_guard.h), because a file that shrinks takes its pages away. In the last page, bytes
  // beyond the new end read as zeros without a sign: only the identity tells.
  virtual const std::byte* map() const { return nullptr; }
  // Whether the file is mapped, if only for who decrypts it.
  virtual bool IsMapped() const { return map() != nullptr; }

  // What follows is for who keeps windows of the bytes (file_windows.h). Ranges begin a page where
  // pages are meant.

  // Of what is mapped:
  // Why the byte at `offset` of the map cannot be read.
  virtual Status ExplainFault(uint64_t /*offset*/) const { return {}; }
  // Makes these bytes of the map present, and no others, if Prefetch was asked for them; else,
  // where the next one is true, with those of the large pages (file_pages.h) that they lie in.
  // Errors: kChanged; kIo.
  virtual Status Populate(ByteRange /*range*/) const { return {}; }
  virtual bool ReadsLargePages() const { return false; }
  // Gives the map's pages back that lie wholly within `range`; touching them brings them back.
  virtual void Unmap(ByteRange /*range*/) const {}
  // As FindUncached and DropCached of file_pages.h. What drops its pages by itself finds none.
  virtual Residency FindUncached(ByteRange /*range*/,
                                 const std::function<void(ByteRange)>& /*visit*/) const {
    return Residency::kAllCached;
  }
  virtual bool DropCached(ByteRange /*range*/) const { return false; }
  // Of what drops its pages by itself: whether these bytes are made of none but cached ones.
  virtual bool IsCached(ByteRange /*range*/) const { return false; }

 protected:
  ByteSource() = default;
  ByteSource(ByteSource&&) = default;
  ByteSource& operator=(ByteSource&&) = default;
};

// A regular file, open and perhaps mapped. Owns its descriptor and its map. Once made and mapped it
// does not change.
class LocalFile final : public ByteSource {
 public:
  // Opens without ever waiting for another process; symbolic links are followed. Reads will not
  // read ahead. Errors: kNotFound; kCorrupt for a folder, pipe, device or socket; kIo.
  static Result<LocalFile> Open(const std::string& path);

  LocalFile(LocalFile&& other) noexcept = default;
  LocalFile& operator=(LocalFile&& other) noexcept = default;

  const std::string& path() const override { return path_; }
  const FileIdentity& identity() const override { return file_.identity; }
  uint64_t size() const override { return file_.identity.size; }

  // The identity at this moment, of the file that is open and not of what lies at its path now.
  // Errors: kIo.
  Result<FileIdentity> CurrentIdentity() const;

  Status ReadAt(uint64_t offset, std::span<std::byte> destination) const override;
  FileDescriptor OpenPastCache() const override { return ReopenDirect(file_.descriptor.get()); }
  bool ReadPastCache(const FileDescriptor& opened, uint64_t offset,
                     std::span<std::byte> destination) const override;
  void Prefetch(ByteRange range) const override;
  bool IsRemote() const override;
  bool HasCheapReads() const override;

  // Maps the file, which must not be empty. The kernel reads ahead as it does for any map.
  // Errors: kIo, for want of address space or because its file system has no maps.
  Status Map();
  // From now on the kernel reads nothing around the pages of the map that are touched.
  void AdviseRandom() const;
  // As AdviseLargePages of file_pages.h, where that works.
  void AdviseLargePages();

  const std::byte* map() const override { return map_ ? map_->data() : nullptr; }
  Status ExplainFault(uint64_t offset) const override;
  Status Populate(ByteRange range) const override;
  bool ReadsLargePages() const override { return reads_large_pages_; }
  void Unmap(ByteRange range) const override;
  Residency FindUncached(ByteRange range,
                         const std::function<void(ByteRange)>& visit) const override;
  bool DropCached(ByteRange range) const override;

 private:
  LocalFile(std::string path, InputFile file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  InputFile file_;
  std::optional<FileMap> map_;
  bool reads_large_pages_ = false;
};

// Returns the content of a small file.
// Errors: as LocalFile::Open and ReadAt; kCorrupt when it has more than `limit` bytes.
Result<std::string> ReadFile(const std::string& path, uint64_t limit);

}  // namespace reshard

#endif  // RESHARD_SRC_IO_BYTE_SOURCE_H_
