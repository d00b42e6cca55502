// The checkpoint files of one format that a folder has, each for itself, as MindSpore's
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

// Returns the file `path`, or those of the folder `path` whose names end in `extension`: all in the
// folders that begin with "rank", or where there is no such folder, all in it; hidden ones are
// none. Only those in whose name the regular expression `pattern` (of ECMAScript) finds something,
// in the whole path for one file; empty: all. In natural order. Errors: kInvalidArgument for a
// pattern that is none, and for a file of another extension; kNotFound where none is found; those
// of Storage::List.
Result<std::vector<LoneFile>> FindEachFile(const std::string& path, std::string_view extension,
                                           const std::string& pattern);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_EACH_FILE_H_
