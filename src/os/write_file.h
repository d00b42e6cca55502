// Files that are put in place whole, or not at all: staged beside their place as PATH.reshard,
// flushed, renamed.
//
// In two ways. WriteFile takes bytes that are in memory: what it stages is there for a moment, so
// it needs no locks, which some file systems do not have, and never removes what it did not make.
// SingleOutput is a file that is worth a lock: its place is claimed before the work for it begins,
// and what may be left of it when a run is killed is too much to be left.
#ifndef RESHARD_SRC_OS_WRITE_FILE_H_
#define RESHARD_SRC_OS_WRITE_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/os/job_lock.h"
#include "src/os/output_directory.h"
#include "src/os/staged_file.h"

namespace reshard {

// Returns the name under which `path` is written before it is put in place.
std::string StagedName(const std::string& path);

// Returns ok when there is nothing at `path`, or a file and `replace`. Its folder has to be there.
// Errors: kInvalidArgument where `path` is no name of a file; kAlreadyExists; kNotFound; kIo.
Status CheckWritable(const std::string& path, bool replace);

// Neither of the following begins while an output of the call's is refused (used_files.h): then
// they fail with what CheckOutputs returns.

// Makes `path` a file of these bytes, durable when it returns; its folder is made where there is
// none. Where it fails before the file is in place, nothing is left of it. Errors: those of
// CheckWritable; kAlreadyExists when there is a PATH.reshard, of another run or of one that was
// killed; kIo.
Status WriteFile(const std::string& path, std::string_view bytes, bool replace);

// SingleOutput: one large file to be put in place.
//
// The lock of PATH.reshard keeps other runs out and ends with the process, however that ends: what
// one that was killed leaves there, the next one for the same place clears. Move-only; one thread
// at a time.
class SingleOutput {
 public:
  // Claims the place; its folder is made where there is none. Errors: those of CheckWritable;
  // kAlreadyExists when another run has the place; kIo.
  static Result<SingleOutput> Claim(const std::string& path, bool replace);

  SingleOutput(SingleOutput&&) = default;
  SingleOutput& operator=(SingleOutput&&) = delete;
  // Unless it was published, removes what is staged, and the folders made for it.
  ~SingleOutput();

  const OutputDirectory& folder() const { return folder_; }

  // Returns the file to be written, `size` bytes. At most once. Errors: those of StagedFile.
  Result<StagedFile> Create(uint64_t size, const WriteOptions& options) const;

  // Puts the file in place, which is finished. At most once. Errors: kIo.
  Status Publish();

 private:
  SingleOutput(OutputDirectory folder, std::vector<std::string> made, std::string name,
               FileLock lock);

  OutputDirectory folder_;
  std::vector<std::string> made_;  // folders
  std::string name_;
  FileLock lock_;  // of the staged file
  bool published_ = false;
};

}  // namespace reshard

#endif  // RESHARD_SRC_OS_WRITE_FILE_H_
