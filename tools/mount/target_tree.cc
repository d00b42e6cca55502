#include "tools/mount/target_tree.h"

#include <algorithm>

namespace reshard {

TargetTree::TargetTree(std::span<const PlanReport::TargetFile> files) : nodes_(2) {
  nodes_[kRoot].is_folder = true;
  Add(kRoot, {.name = std::string(kStatusName)});
  for (size_t i = 0; i < files.size(); ++i) {
    Number folder = kRoot;
    std::string_view path = files[i].path;
    for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/')) {
      const std::string_view name = path.substr(0, slash);
      const Number known = Look(folder, name);
      folder = known != 0 ? known : Add(folder, {.name = std::string(name), .is_folder = true});
      path.remove_prefix(slash + 1);
    }
    Add(folder, {.name = std::string(path), .file = i, .size = files[i].size});
    bytes_ += files[i].size;
  }
}

const TargetTree::Node* TargetTree::Find(Number number) const {
  return number == 0 || number >= nodes_.size() ? nullptr : &nodes_[number];
}

TargetTree::Number TargetTree::Look(Number folder, std::string_view name) const {
  const auto found = numbers_.find(std::pair(folder, std::string(name)));
  return found == numbers_.end() ? 0 : found->second;
}

TargetTree::Number TargetTree::Add(Number folder, Node node) {
  const Number number = nodes_.size();
  node.parent = folder;
  numbers_.emplace(std::pair(folder, node.name), number);
  nodes_[folder].children.push_back(number);
  nodes_.push_back(std::move(node));
  return number;
}

}  // namespace reshard
