// Files that are put in place whole, or not at all: a small one, and a large one that is staged.
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

// Returns ok when there is nothing at `path`, or a file and `replace`.
// Errors: kInvalidArgument where `path` is no name of a file; kAlreadyExists; kIo.
Status CheckWritable(const std::string& path, bool replace);

// Makes `path` a file of these bytes, durable when it returns; its folder is made where there is
// none. The bytes stand under a name of their own (PATH.reshard) until they are whole. Errors:
// kAlreadyExists when there is something at `path` and not `replace`, or when another run is
// writing it; kIo.
Status WriteFile(const std::string& path, std::string_view bytes, bool replace);

// SingleOutput: one large file to be put in place whole, or not at all.
//
// It is staged beside its place, under PATH.reshard, whose lock keeps other runs out and ends with
// the process, however that ends: what one that was killed leaves there, the next one for the same
// place clears. Move-only; one thread at a time.
class SingleOutput {
 public:
  // Claims the place; its folder is made where there is none. Errors: kInvalidArgument where
  // `path` is no name of a file; kAlreadyExists when there is something that is no file, or a file
  // and not `replace`, or when another run has the place; kIo.
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
