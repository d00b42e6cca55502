// ByteSource: bytes that do not change while they are read. They come from a file that Storage
// opened (src/io/storage.h), or from an encrypted file, decrypted (src/io/decrypted_file.h).
//
// Any number of threads may read from one.
#ifndef RESHARD_SRC_OS_BYTE_SOURCE_H_
#define RESHARD_SRC_OS_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/os/file_identity.h"

namespace reshard {

enum class Decryption {
  kNone,      // the bytes stand so in the file
  kProven,    // decrypted, and a tag proves the bytes and the key
  kUnproven,  // decrypted; another key gives other bytes, without a sign
};

class LocalFile;

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
  virtual const LocalFile* pages() const { return nullptr; }
  virtual LocalFile* pages() { return nullptr; }

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

#endif  // RESHARD_SRC_OS_BYTE_SOURCE_H_
