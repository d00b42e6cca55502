// FileUse: the list of the files that calls read, and of additional single output files.
//
// While a FileUse lives, calls of its thread add each file that they open or choose to read. This
// holds for all threads that such a call uses. An output must not be one of these files, by any
// path or link, and must not belong to a checkpoint or a target folder. Otherwise the call fails
// with kInvalidArgument before it writes. `force` does not override this. Pipes and devices do not
// count as outputs.
//
// A call makes its own list unless its thread has one. Use one list for one call and the outputs
// that belong to it, such as a report or a log. Only the thread that made an object uses it. The
// thread destroys its objects in the reverse order.
#ifndef RESHARD_SRC_OS_FILE_USE_H_
#define RESHARD_SRC_OS_FILE_USE_H_

#include <memory>
#include <string>

#include "reshard/status.h"

namespace reshard {

class UsedFiles;

class FileUse {
 public:
  // Joins the thread's list, or begins one.
  FileUse();
  // Gives this thread the list of `other`.
  FileUse(const FileUse& other);
  FileUse& operator=(const FileUse&) = delete;
  // The thread has the list that it had before.
  ~FileUse();

  // Adds a file that the caller writes or appends to. The caller must not have written to it yet.
  // Messages have `name`, such as "--log-file", before the path. Errors: kInvalidArgument if the
  // file was read already or is another output; kIo.
  Status AddOutput(const std::string& path, const std::string& name = "");

  // Returns the error of an output against the files known so far. Call it before writing to an
  // output.
  Status Check() const;

 private:
  std::shared_ptr<UsedFiles> before_;
  std::shared_ptr<UsedFiles> files_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_OS_FILE_USE_H_
