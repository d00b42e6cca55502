// OutputDirectory: a folder that is written to. It is held open, so that its path cannot be
// redirected to another folder.
//
// Names are single components. Below the folder that Create opens, symbolic links are never
// followed: a link in the place of our folder or file is refused. Move-only; distinct threads may
// use one object at the same time.
#ifndef RESHARD_SRC_OS_OUTPUT_DIRECTORY_H_
#define RESHARD_SRC_OS_OUTPUT_DIRECTORY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/os/file_identity.h"
#include "src/os/system_call.h"

namespace reshard {

class OutputDirectory {
 public:
  enum class EntryType { kFile, kFolder, kLink, kOther };
  struct Entry {
    EntryType type = EntryType::kFile;
    FileIdentity identity;
  };

  // Opens the folder at `path`, which may contain symbolic links. If it does not exist, it is made,
  // with the folders above, with ordinary permissions. Made folders are appended to `made`,
  // outermost first.
  // Errors: kAlreadyExists if another kind of entry is in the way, kIo; kUnsupported for a URL.
  static Result<OutputDirectory> Create(const std::string& path, std::vector<std::string>& made);

  // Opens a folder that exists; as Create. Errors: kNotFound, kAlreadyExists, kIo.
  static Result<OutputDirectory> Open(const std::string& path);

  // Removes the empty folders of `made`, innermost first.
  static void RemoveMade(const std::vector<std::string>& made);

  // For messages: the path when the folder was opened.
  const std::string& path() const { return path_; }
  // Returns the path of an entry, for messages.
  std::string PathOf(std::string_view name) const;
  int fd() const { return fd_.get(); }

  // Returns the entry, without following a link; no value if there is none.
  Result<std::optional<Entry>> Look(const std::string& name) const;
  // Returns the names of all entries, sorted.
  Result<std::vector<std::string>> Names() const;

  // Opens this folder once more.
  Result<OutputDirectory> Again() const;
  // Opens a folder in this one. Errors: kNotFound, kAlreadyExists for something else in its place.
  Result<OutputDirectory> OpenFolder(const std::string& name) const;
  // As OpenFolder, but makes the folder if it does not exist.
  Result<OutputDirectory> MakeFolder(const std::string& name) const;

  // Opens a file, or makes one, with ordinary permissions, if `flags` of open() say so. Without
  // one, the result owns nothing, and errno tells why.
  FileDescriptor OpenAt(const std::string& name, int flags) const;

  // Returns the content of a regular file. Errors: kNotFound, kCorrupt for anything else or for
  // more than `max_bytes`.
  Result<std::string> ReadFile(const std::string& name, uint64_t max_bytes) const;
  // Makes a file with these bytes, durable on return. Errors: kAlreadyExists if the name exists.
  Status WriteFile(const std::string& name, std::string_view bytes) const;
  // As above, of the bytes that `source` hands to its argument, piece by piece. Errors: its, too.
  using ByteSink = std::function<Status(std::string_view bytes)>;
  using ByteSource = std::function<Status(const ByteSink& sink)>;
  Status WriteFile(const std::string& name, const ByteSource& source) const;

  // Overwrites a file with `bytes` from `offset` on, durably. Errors: kNotFound, kIo.
  Status Overwrite(const std::string& name, uint64_t offset, std::string_view bytes) const;

  // Writes `bytes` over the beginning of a small file that is written again and again, for others
  // to read; makes it if there is none. Not durable. The bytes are sent to the server of a network
  // file system. Errors: kNotFound, kIo.
  Status WriteOver(const std::string& name, std::string_view bytes) const;

  // Makes an empty file if there is none; not durable.
  Status MakeFile(const std::string& name) const;

  // Moves `name` to `to_name` of `to`, in place of a file that is there.
  Status Rename(const std::string& name, const OutputDirectory& to,
                const std::string& to_name) const;
  // Returns false if a file system is mounted between this folder and `to`, so that no file can be
  // moved from the one to the other. Moves nothing.
  bool CanMoveTo(const OutputDirectory& to) const;
  // Removes a file or link; ok if there is none.
  Status RemoveFile(const std::string& name) const;
  // Removes an empty folder; returns false when it is not empty, true when it is gone.
  Result<bool> RemoveFolder(const std::string& name) const;
  // Removes a folder with all its contents, or a file or link; ok if there is none.
  Status RemoveTree(const std::string& name) const;

  // Makes the folder's entries durable.
  Status Sync() const;
  // Errors: kIo when no entries can be made or replaced here.
  Status CheckWritable() const;
  // Returns the bytes that can still be written here; no value if the file system does not say.
  Result<std::optional<uint64_t>> FreeBytes() const;

 private:
  OutputDirectory(FileDescriptor fd, std::string path);
  Status RemoveTree(const std::string& name, int depth) const;

  FileDescriptor fd_;
  std::string path_;
};

// Returns "a symbolic link", for messages.
std::string_view DescribeType(OutputDirectory::EntryType type);

// A name in a folder, whether such an entry exists or not. Places are given by relative paths. Each
// component is opened by itself, and no symbolic link is followed.
struct TargetPlace {
  OutputDirectory folder;
  std::string name;
};

// Returns the place of `path` below `root`, or no value if one of its folders does not exist.
// Errors: kAlreadyExists if another kind of entry is in the place of a folder; kIo.
Result<std::optional<TargetPlace>> FindPlace(const OutputDirectory& root, const std::string& path);

// As FindPlace, but makes the folders.
Result<TargetPlace> MakePlace(const OutputDirectory& root, const std::string& path);

// Returns the entry at `path`, or no value. Errors: as FindPlace.
Result<std::optional<OutputDirectory::Entry>> LookAt(const OutputDirectory& root,
                                                     const std::string& path);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_OUTPUT_DIRECTORY_H_
