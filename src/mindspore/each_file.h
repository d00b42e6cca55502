// The checkpoint files with one format in a folder, each for itself, as MindSpore's
// ckpt_to_safetensors and safetensors_to_ckpt take them.
//
// No state; any thread.
#ifndef RESHARD_SRC_MINDSPORE_EACH_FILE_H_
#define RESHARD_SRC_MINDSPORE_EACH_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"

namespace reshard {

struct LoneFile {
  std::string path;
  std::string relative_path;  // to the folder
};

// Returns the file `path`, or the files in the folder `path` that end in `extension`. In a folder
// these are the files in sub-folders that begin with "rank" or, if there are none, the files in the
// folder itself. Hidden files do not count. `pattern` is a regular expression (ECMAScript) that has
// to match a part of the name, or of the whole path for a single file; empty: all. In natural
// order.
// Errors:
//   kInvalidArgument: an invalid pattern, or a file of another extension
//   kNotFound: there are no such files
//   as Storage::List
Result<std::vector<LoneFile>> FindEachFile(const std::string& path, std::string_view extension,
                                           const std::string& pattern);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_EACH_FILE_H_
