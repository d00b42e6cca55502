// CommonMetadata: the metadata that several files agree on, for a file that is made from them.
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

// Returns whether metadata with this key describes the layout of its own file or its set of files,
// or is a hash of the file. Other files must not repeat it.
bool IsOfOwnLayout(std::string_view key);

class CommonMetadata {
 public:
  // Adds the metadata of a further file.
  void Add(const std::shared_ptr<const FileStrings>& of_file);

  // Sets `format` and `others` of a file that is made from the added files.
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
