// The list behind FileUse, for the library. All functions use the calling thread's list, and have
// no effect if it has none.
//
// Any thread; a Thread has the list of the thread that started it.
#ifndef RESHARD_SRC_OS_USED_FILES_H_
#define RESHARD_SRC_OS_USED_FILES_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/os/file_identity.h"
#include "src/os/file_use.h"

namespace reshard {

// Notes a file that is or may be read. All code that opens files for reading calls it. Errors:
// kInvalidArgument if the file is an output; FileUse::Check returns the same from then on.
Status NoteInput(const std::string& path, const FileIdentity& identity);

// Notes the file that a key came from. Empty: none. FileUse::Check returns any error.
void NoteKeyFile(const std::string& path);

// As NoteInput, for a file that was a candidate and was not chosen: no output may replace it
// either. Calls `look` for its identity, but only if there are outputs. Ignores the file if `look`
// fails.
Status KeepFromOutputs(const std::string& path, const std::function<Result<FileIdentity>()>& look);

// As FileUse::Check.
Status CheckOutputs();

// Returns the path of the noted file that is this one, if one is.
std::optional<std::string> NotedInput(const FileIdentity& file);

// Returns the paths of all noted files.
std::vector<std::string> NotedInputs();

struct UsedOutput {
  std::string path;
  std::string name;  // as in FileUse::AddOutput
  // The files at the output's path and at its staging path.
  std::vector<FileIdentity> files;

  // "--log-file a.log", for messages.
  std::string InWords() const;
};

std::vector<UsedOutput> UsedOutputs();

// From now on CheckOutputs returns `status`, unless there is an error already. Returns it.
Status RefuseOutput(Status status);

// Makes `files`, which may be null, the list of this thread. It has to live until the thread has
// another one.
void SetUsedFiles(UsedFiles* files);

// Returns the list of this thread; null: it has none.
std::shared_ptr<UsedFiles> CurrentUsedFiles();

}  // namespace reshard

#endif  // RESHARD_SRC_OS_USED_FILES_H_
