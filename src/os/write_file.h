// Files that appear whole, or not at all: staged beside their place as PATH.reshard, flushed,
// renamed.
//
// There are two ways. WriteFile takes bytes that are in memory. Its staged file exists for a
// moment, so it needs no locks, which some file systems lack, and it removes only its own files.
// SingleOutput is for a file that is worth a lock: it claims the place before the work begins, and
// clears the large leftovers of a killed run.
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

// Returns ok if `path` is free, or if it is a file and `replace` is set. Its folder has to exist.
// Errors: kInvalidArgument if `path` is not the name of a file; kAlreadyExists; kNotFound; kIo.
Status CheckWritable(const std::string& path, bool replace);

// The functions below do not begin if an output of the call was refused (used_files.h). Then they
// fail with the result of CheckOutputs.

// Makes `path` a file with these bytes, durable on return. Makes its folder if it does not exist.
// If it fails before the file is in place, it removes the staged file.
// Errors:
//   as CheckWritable
//   kAlreadyExists: there is a PATH.reshard, of another run or of a killed one
//   kIo
Status WriteFile(const std::string& path, std::string_view bytes, bool replace);

// SingleOutput: one large output file.
//
// The lock of PATH.reshard keeps other runs out and ends with the process, in any way that ends.
// The next run for the same place clears the leftovers of a killed one. Move-only; one thread at a
// time.
class SingleOutput {
 public:
  // Claims the place, and makes its folder if it does not exist. Errors: as CheckWritable;
  // kAlreadyExists if another run has the place; kIo.
  static Result<SingleOutput> Claim(const std::string& path, bool replace);

  SingleOutput(SingleOutput&&) = default;
  SingleOutput& operator=(SingleOutput&&) = delete;
  // Unless it was published, removes the staged file, and the folders made for it.
  ~SingleOutput();

  const OutputDirectory& folder() const { return folder_; }

  // Returns the file of `size` bytes to be written. At most once. Errors: as StagedFile.
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
