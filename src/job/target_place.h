// The files of a target folder. Finds them by path without following symbolic links. Proves that
// staged files can be moved there, before existing files are given up.
//
// No state. Any thread, except for the proof: it needs the thread that holds the right to the
// target, while no other thread publishes.
#ifndef RESHARD_SRC_JOB_TARGET_PLACE_H_
#define RESHARD_SRC_JOB_TARGET_PLACE_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/os/output_directory.h"
#include "src/record/manifest_codec.h"

namespace reshard {

// Returns whether `file` lies below `root` as a regular file of its size. Errors: as FindPlace.
Result<bool> IsWhole(const OutputDirectory& root, const ManifestFile& file);

// Returns whether any path is in both lists, each sorted by path.
bool ShareAny(const std::vector<ManifestFile>& a, const std::vector<ManifestFile>& b);

// Adds all folders on the way to `path`.
void AddFolders(std::string_view path, std::set<std::string>& folders);

// Makes the entries of the existing `folders`, below `root`, durable. Errors: as FindPlace.
Status SyncFolders(const OutputDirectory& root, const std::set<std::string>& folders);

// The most bytes of a part record that is read back whole.
inline constexpr uint64_t kMaxRecordBytes = uint64_t{2} << 30;

// Returns the content of the regular file at `path`. Errors: kNotFound, and as
// OutputDirectory::ReadFile.
Result<std::string> ReadFileAt(const OutputDirectory& root, const std::string& path,
                               uint64_t max_bytes);

// Moves an empty file from `staging` into `target`, then through each folder of `files` and their
// part records, and removes it. Missing folders are skipped, as they will be made in `target`. If
// the process is killed meanwhile, the file stays in a folder; the next call for the same files
// removes it. Errors: kIo, naming the folder.
Status ProveMoves(const OutputDirectory& staging, const OutputDirectory& target,
                  const std::vector<ManifestFile>& files);

// Removes the file of a killed ProveMoves from `target`, its folders and the folders of part
// records.
// Errors: kIo.
Status RemoveProbes(const OutputDirectory& target);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_TARGET_PLACE_H_
