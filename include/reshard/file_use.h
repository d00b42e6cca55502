// FileUse: the list of the files that calls read, and of the single files that are written besides.
//
// While one lives, each file that a call of its thread opens or chooses to read is noted where it
// is opened or chosen, in whatever threads the call works. An output that is one of these files, by
// whatever path or link, or that belongs to a checkpoint or a target folder, is refused: the call
// fails with kInvalidArgument before it writes anything. Leave to replace files does not change
// that. Pipes and devices are no outputs in this sense.
//
// A call has its own list unless its thread has one. One list serves one call, and what belongs to
// it: a report that is written afterwards, a log. An object is used by the thread that made it,
// which destroys its objects in the reverse order.
//
// Implemented in src/os.
#ifndef RESHARD_FILE_USE_H_
#define RESHARD_FILE_USE_H_

#include <memory>
#include <string>

#include "reshard/status.h"

namespace reshard {

class UsedFiles;

inline namespace v0_1 {

class FileUse {
 public:
  // Joins the thread's list, or begins one.
  FileUse();
  // Makes the list of `other` that of this thread.
  FileUse(const FileUse& other);
  FileUse& operator=(const FileUse&) = delete;
  // The thread has the list that it had before.
  ~FileUse();

  // Adds a file that is written or appended to besides what calls write; nothing of it may have
  // been written yet. Messages have `name`, such as "--log-file", before the path.
  // Errors: kInvalidArgument where the file was read already or is another output; kIo.
  Status AddOutput(const std::string& path, const std::string& name = "");

  // Returns what is wrong with an output, as far as files are known: ask before writing to it.
  Status Check() const;

 private:
  std::shared_ptr<UsedFiles> before_;
  std::shared_ptr<UsedFiles> files_;
};

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_FILE_USE_H_
