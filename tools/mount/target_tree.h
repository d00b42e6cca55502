// TargetTree: the folders and files that a mounted target shows, by their numbers.
//
// Immutable; any thread.
#ifndef RESHARD_TOOLS_MOUNT_TARGET_TREE_H_
#define RESHARD_TOOLS_MOUNT_TARGET_TREE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/convert.h"

namespace reshard {

class TargetTree {
 public:
  using Number = uint64_t;
  // As FUSE has it.
  static constexpr Number kRoot = 1;
  // A file in the root with the present error.
  static constexpr Number kStatus = 2;
  static constexpr std::string_view kStatusName = ".reshard-status";

  struct Node {
    std::string name;
    Number parent = kRoot;
    bool is_folder = false;
    size_t file = 0;                    // of the view; of a file
    uint64_t size = 0;                  // of a file
    std::vector<Number> children = {};  // of a folder
  };

  explicit TargetTree(std::span<const PlanReport::TargetFile> files);

  // Returns null for a number that there is not.
  const Node* Find(Number number) const;
  // Returns the number of a name in a folder; 0: there is none.
  Number Look(Number folder, std::string_view name) const;
  size_t count() const { return nodes_.size() - 1; }
  // Of all files.
  uint64_t bytes() const { return bytes_; }

 private:
  Number Add(Number folder, Node node);

  std::vector<Node> nodes_;  // by number; the first one is none
  std::map<std::pair<Number, std::string>, Number, std::less<>> numbers_;
  uint64_t bytes_ = 0;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_MOUNT_TARGET_TREE_H_
