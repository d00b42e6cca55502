// RankFolder: which checkpoint file each rank of a sharded checkpoint contributes.
//
// A sharded checkpoint is a folder with a folder rank_N for each rank N, where training runs leave
// PREFIX-EPOCH_STEP.ckpt, or .safetensors, for several steps; or what a pattern names
// (rank_pattern.h). Looks at names only, at one listing for each folder. Any number of threads may
// call it.
#ifndef RESHARD_SRC_MINDSPORE_RANK_FOLDER_H_
#define RESHARD_SRC_MINDSPORE_RANK_FOLDER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/mindspore/rank_pattern.h"

namespace reshard {

struct RankFile {
  int64_t rank = 0;
  std::string path;
  std::string relative_path;         // below the folder, or where a pattern begins to tell ranks
                                     // apart: "rank_3/net-1_100.ckpt"
  std::optional<TrainingStep> step;  // where the name ends in -EPOCH_STEP and the extension
};

struct RankFolderOptions {
  // Not empty: the file of each rank is the one whose name ends in this and the extension.
  std::string suffix;
};

struct RankFolder {
  std::vector<RankFile> files;  // ascending by rank, at least one; ranks may be missing
  std::vector<Warning> warnings;
};

// Returns N of a folder rank_N.
std::optional<int64_t> RankOfFolder(std::string_view name);

// Returns which of the files of these names readers of a rank folder take, and why, in words: what
// FindRankFiles takes, all that leave its choice open, and what MindSpore takes.
std::map<std::string, std::string> TakenInRankFolder(std::vector<std::string> names);

// Chooses one file of each folder rank_N of `source`, or of each file or folder that the pattern
// `source` names: of the files PREFIX-EPOCH_STEP.ckpt that of the greatest (epoch, step); where
// there are none, the only file of this extension. Files of .safetensors likewise. Hidden files,
// *.tmp, *-graph.meta and *_breakpoint.ckpt do not count, unless a pattern names them or, of the
// last ones, the suffix does; folders of other names are ignored. Warns where MindSpore would take
// another file, and of folders without files. Errors: kNotFound where there are no rank folders or
// no files; kMismatch where two folders name one rank, the choice in a folder is open, files have
// both extensions, or the ranks have different steps (names the greatest common one);
// kInvalidArgument for a pattern that cannot be; kIo.
Result<RankFolder> FindRankFiles(const std::string& source, const RankFolderOptions& options);

// Takes the files of `paths`, one for each rank, whose names obey the same rules; their relative
// paths are rank_N/NAME, wherever they lie. Errors: kMismatch for different steps or formats.
Result<RankFolder> TakeRankFiles(const std::map<int64_t, std::string>& paths,
                                 const RankFolderOptions& options);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_RANK_FOLDER_H_
