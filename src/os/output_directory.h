// OutputDirectory: a folder that is written to, held open, so that nobody can slip another one in.
//
// Names are single components. Below the folder that Create opens, symbolic links are never
// followed: one that stands where a folder or a file of ours belongs is refused. Move-only;
// distinct threads may use one object at the same time.
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

  // Opens the folder at `path`, which may be given through symbolic links. Where it does not exist
  // it is made, and the folders above it, with ordinary permissions; those made are appended to
  // `made`, outermost first. Errors: kAlreadyExists for something else in the way, kIo;
  // kUnsupported for a URL.
  static Result<OutputDirectory> Create(const std::string& path, std::vector<std::string>& made);

  // Opens a folder that exists; as Create. Errors: kNotFound, kAlreadyExists, kIo.
  static Result<OutputDirectory> Open(const std::string& path);

  // Removes those of `made` that are empty, innermost first.
  static void RemoveMade(const std::vector<std::string>& made);

  // For messages: where the folder was when it was opened.
  const std::string& path() const { return path_; }
  // Returns the path of an entry, for messages.
  std::string PathOf(std::string_view name) const;
  int fd() const { return fd_.get(); }

  // Returns the entry, not followed if it is a link, or nothing where there is none.
  Result<std::optional<Entry>> Look(const std::string& name) const;
  // Returns the names of all entries, sorted.
  Result<std::vector<std::string>> Names() const;

  // Opens this folder once more.
  Result<OutputDirectory> Again() const;
  // Opens a folder in this one. Errors: kNotFound, kAlreadyExists for something else in its place.
  Result<OutputDirectory> OpenFolder(const std::string& name) const;
  // As OpenFolder, but makes the folder where there is none.
  Result<OutputDirectory> MakeFolder(const std::string& name) const;

  // Returns the content of a regular file. Errors: kNotFound, kCorrupt for anything else or for
  // more than `max_bytes`.
  Result<std::string> ReadFile(const std::string& name, uint64_t max_bytes) const;
  // Makes a file of these bytes, durable when it returns. Errors: kAlreadyExists when there is one.
  Status WriteFile(const std::string& name, std::string_view bytes) const;
  // As above, of the bytes that `source` hands to its argument, piece by piece. Errors: its, too.
  using ByteSink = std::function<Status(std::string_view bytes)>;
  using ByteSource = std::function<Status(const ByteSink& sink)>;
  Status WriteFile(const std::string& name, const ByteSource& source) const;

  // Writes `bytes` over those of a file from `offset` on, durably. Errors: kNotFound, kIo.
  Status Overwrite(const std::string& name, uint64_t offset, std::string_view bytes) const;

  // Makes an empty file where there is no file; not durable.
  Status MakeFile(const std::string& name) const;

  // Moves `name` to `to_name` of `to`, in place of a file that is there.
  Status Rename(const std::string& name, const OutputDirectory& to,
                const std::string& to_name) const;
  // Returns false where something is mounted between this folder and `to`, so that no file can be
  // moved from the one to the other. Moves nothing.
  bool CanMoveTo(const OutputDirectory& to) const;
  // Removes a file or link; ok where there is none.
  Status RemoveFile(const std::string& name) const;
  // Removes an empty folder; returns false when it is not empty, true when it is gone.
  Result<bool> RemoveFolder(const std::string& name) const;
  // Removes a folder with all that is in it, or a file or link; ok where there is none.
  Status RemoveTree(const std::string& name) const;

  // Makes the folder's entries durable.
  Status Sync() const;
  // Errors: kIo when no entries can be made or replaced here.
  Status CheckWritable() const;
  // Returns the bytes that can still be written here, or nothing where the file system does not
  // say.
  Result<std::optional<uint64_t>> FreeBytes() const;

 private:
  OutputDirectory(FileDescriptor fd, std::string path);
  Status RemoveTree(const std::string& name, int depth) const;

  FileDescriptor fd_;
  std::string path_;
};

// Returns "a symbolic link", for messages.
std::string_view DescribeType(OutputDirectory::EntryType type);

// A name in a folder, whether there is something of that name or not. Places are given by relative
// paths: each component is opened by itself, and no symbolic link is followed.
struct TargetPlace {
  OutputDirectory folder;
  std::string name;
};

// Returns the place of `path` below `root`, or nothing where one of its folders does not exist.
// Errors: kAlreadyExists for anything else in the place of a folder; kIo.
Result<std::optional<TargetPlace>> FindPlace(const OutputDirectory& root, const std::string& path);

// As FindPlace, but makes the folders.
Result<TargetPlace> MakePlace(const OutputDirectory& root, const std::string& path);

// Returns what is at `path`, or nothing. Errors: as FindPlace.
Result<std::optional<OutputDirectory::Entry>> LookAt(const OutputDirectory& root,
                                                     const std::string& path);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_OUTPUT_DIRECTORY_H_
