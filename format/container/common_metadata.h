// CommonMetadata: the metadata that files agree on, for a file that is made of them.
//
// A plain value.
#ifndef RESHARD_FORMAT_CONTAINER_COMMON_METADATA_H_
#define RESHARD_FORMAT_CONTAINER_COMMON_METADATA_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "format/container/container.h"

namespace reshard {

// Returns whether metadata of this key says how its own file, or the set of that, is laid out, or
// is a hash of it: other files must not repeat it.
bool IsOfOwnLayout(std::string_view key);

class CommonMetadata {
 public:
  // Adds the metadata of one more file.
  void Add(const std::shared_ptr<const FileStrings>& of_file);

  // Sets `format` and `others` of a file that is made of those that were added.
  void SetOn(FileMetadata& metadata) const;
  // The keys that such a file lacks: the files do not agree on them, or IsOfOwnLayout.
  std::set<std::string> LeftOut() const;
  // All keys of the files but `format`.
  std::set<std::string> Keys() const;

 private:
  std::shared_ptr<const FileStrings> last_;
  std::optional<FileStrings> agreed_;
  std::set<std::string> disagreed_;
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_CONTAINER_COMMON_METADATA_H_
