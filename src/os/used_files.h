// The list behind FileUse, as the library fills it: all functions are about the calling thread's
// list, and do nothing where it has none.
//
// Any thread; a Thread has the list of the thread that started it.
#ifndef RESHARD_SRC_OS_USED_FILES_H_
#define RESHARD_SRC_OS_USED_FILES_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reshard/file_use.h"
#include "reshard/status.h"
#include "src/os/file_identity.h"

namespace reshard {

// Notes a file that is read, or may be. Whatever opens files for reading calls it.
// Errors: kInvalidArgument where it is an output; FileUse::Check returns the same from then on.
Status NoteInput(const std::string& path, const FileIdentity& identity);

// Notes the file that a key came from. Empty: none. What is wrong with it, FileUse::Check returns.
void NoteKeyFile(const std::string& path);

// As NoteInput, for a file that lies where a choice is made and was not chosen: no output replaces
// it either. Calls `look` for its identity, and only if there are outputs; a file that it fails for
// is let be.
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
  // What is there, and at the name that it is staged under.
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
