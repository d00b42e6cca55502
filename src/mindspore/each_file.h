// The checkpoint files with one extension in a folder, each for itself, as MindSpore's
// ckpt_to_safetensors and safetensors_to_ckpt take them.
//
// No state; any thread.
#ifndef RESHARD_SRC_MINDSPORE_EACH_FILE_H_
#define RESHARD_SRC_MINDSPORE_EACH_FILE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"

namespace reshard {

struct LoneFile {
  std::string path;
  std::string relative_path;  // to the folder
};

struct LoneFiles {
  std::vector<LoneFile> files;
  std::string_view extension;  // all end in it
};

// Returns the file `path`, or the files in the folder `path` that end in the first of `extensions`
// that any of them has. In a folder these are the files in sub-folders that begin with "rank" or,
// if there are none, the files in the folder itself. Hidden files do not count. `pattern` is a
// regular expression (ECMAScript) that has to match a part of the name, or of the whole path for a
// single file; empty: all. In natural order.
// Errors:
//   kInvalidArgument: an invalid pattern, or a file of another extension
//   kNotFound: there are no such files
//   as Storage::List
Result<LoneFiles> FindEachFile(const std::string& path,
                               std::span<const std::string_view> extensions,
                               const std::string& pattern);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_EACH_FILE_H_
