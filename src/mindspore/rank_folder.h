// RankFolder: the checkpoint file of each rank in a sharded checkpoint.
//
// A sharded checkpoint is a folder with a folder rank_N for each rank N. Training runs leave
// PREFIX-EPOCH_STEP.ckpt there, or .safetensors, for several steps. It may also be given by a
// pattern (rank_pattern.h). Looks at names only, with one listing for each folder. Any number of
// threads may call it.
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
  // below the folder, or from the part of a pattern that tells ranks apart: "rank_3/net-1_100.ckpt"
  std::string relative_path;
  std::optional<TrainingStep> step;  // if the name ends in -EPOCH_STEP and the extension
};

// Stands for the suffix of the latest step that all ranks have.
inline constexpr std::string_view kCommonStep = "common";

struct RankFolderOptions {
  // If set, the name of each rank's file ends in this and the extension; or kCommonStep.
  std::string suffix;
};

struct RankFolder {
  std::vector<RankFile> files;  // ascending by rank, at least one; ranks may be missing
  std::vector<Warning> warnings;
};

// Returns N of a folder rank_N.
std::optional<int64_t> RankOfFolder(std::string_view name);

// Returns the files with these names that readers of a rank folder take, with the reason in words:
// the file that FindRankFiles takes, all files between which it cannot choose, and the file that
// MindSpore takes.
std::map<std::string, std::string> TakenInRankFolder(std::vector<std::string> names);

// Chooses one file of each folder rank_N of `source`, or of each file or folder that the pattern
// `source` names. Among files PREFIX-EPOCH_STEP.ckpt it takes the one of the greatest (epoch,
// step); without such files, the only file with this extension. The same holds for .safetensors.
// Hidden files, *.tmp, *-graph.meta and *_breakpoint.ckpt do not count, unless a pattern names
// them; the suffix may name the last kind. Folders with other names are ignored. Warns if MindSpore
// would take another file, and of folders without files.
// Errors:
//   kNotFound: no rank folders or no files
//   kMismatch: two folders for one rank, several candidates in a folder, both extensions, ranks
//     with different steps (names the greatest common one), or no common step for kCommonStep
//   kInvalidArgument: an invalid pattern
//   kIo
Result<RankFolder> FindRankFiles(const std::string& source, const RankFolderOptions& options);

// Takes the files of `paths`, one for each rank. The same rules hold for their names. Their
// relative paths are rank_N/NAME, for any place. Errors: kMismatch for different steps or formats.
Result<RankFolder> TakeRankFiles(const std::map<int64_t, std::string>& paths,
                                 const RankFolderOptions& options);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_RANK_FOLDER_H_
