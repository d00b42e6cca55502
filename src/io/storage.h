// Storage: the place where files lie. Code that lists, probes or opens files to read asks it.
//
// It has no state that changes; any thread. Code that writes a target folder uses src/os instead.
#ifndef RESHARD_SRC_IO_STORAGE_H_
#define RESHARD_SRC_IO_STORAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/os/byte_source.h"
#include "src/os/file_identity.h"
#include "src/os/path_kind.h"
#include "src/os/path_location.h"

namespace reshard {

// Returns folder/name, or `name` if the folder is empty.
std::string PathIn(const std::string& folder, std::string_view name);

// Today there is one, the local file system. Functions that take a path return kUnsupported for a
// URL that names no file there. Symbolic links are followed. Calls that a network or FUSE file
// system fails for a moment are repeated (src/os/retries.h).
class Storage {
 public:
  // Returns the storage that `path` names a place in. It lives as long as the program.
  static const Storage& Of(const std::string& path);

  // Returns the entries of a folder, except "." and "..", sorted by the bytes of their names.
  // Errors: kNotFound, kIo.
  Result<std::vector<DirectoryEntry>> List(const std::string& folder) const;

  // Errors: kIo if the system does not tell the kind.
  Result<PathKind> KindOf(const std::string& path) const;

  // Returns ok if `path` leads to a folder. Errors: kNotFound for anything else; kIo.
  Status CheckIsFolder(const std::string& path) const;

  // Returns the identity of the file at `path`. Errors: kNotFound, kIo.
  Result<FileIdentity> Stat(const std::string& path) const;

  // As Stat, for a file that was chosen to be read. Notes the file (src/os/used_files.h). Errors:
  // those of Stat and NoteInput.
  Result<FileIdentity> Pin(const std::string& path) const;

  // Notes a file that was a candidate and was not chosen, so that no output replaces it. Errors:
  // those of NoteInput.
  Status KeepFromOutputs(const std::string& path) const;

  // Returns the place of `path` among the folders of this host. A place of another storage is in no
  // folder. Errors: kIo; kUnsupported for a URL.
  Result<PathLocation> Locate(const std::string& path) const;

  // Opens a file to read, and notes it. Never waits for another process. Errors: kNotFound;
  // kCorrupt for a folder, pipe, device or socket; kIo; as NoteInput.
  Result<std::unique_ptr<ByteSource>> Open(const std::string& path) const;

  // Returns the content of a small file. Errors: as Open and ByteSource::ReadAt; kCorrupt if it has
  // more than `limit` bytes.
  Result<std::string> ReadWhole(const std::string& path, uint64_t limit) const;

 private:
  Storage() = default;
};

}  // namespace reshard

#endif  // RESHARD_SRC_IO_STORAGE_H_
