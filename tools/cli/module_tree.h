// ModuleTree: the parameters of many files, summed up by module, in a few lines.
//
// Not for use from several threads at once.
#ifndef RESHARD_TOOLS_CLI_MODULE_TREE_H_
#define RESHARD_TOOLS_CLI_MODULE_TREE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tools/page/text_format.h"

namespace reshard {

// Names are cut at dots; parts that are numbers count as one, as in "layers.* x 36".
class ModuleTree {
 public:
  // An array in a file. `type` is a literal.
  void Add(std::string_view name, std::string_view type, uint64_t bytes);

  bool empty() const { return names_.empty(); }

  // Returns a table with a header and at most `most_rows` rows: each module with its distinct
  // names, its totals in all files, and its dtypes. Modules are split from the top down while there
  // is room, those of an optimizer last.
  std::string ToText(size_t most_rows) const;

 private:
  struct Node {
    std::string label;                            // of the parts from the parent on
    std::vector<std::unique_ptr<Node>> children;  // in the order of their first names
    std::map<std::string, Node*, std::less<>> by_part;
    std::set<std::string, std::less<>> numbers;  // that stand for the part "*"
    std::set<std::string_view> types;
    uint64_t names = 0;
    uint64_t bytes = 0;
  };

  static Node& Child(Node& node, std::string_view part);
  static bool IsNumber(std::string_view part);
  // The node below `node` at which names part, and its name from there.
  static const Node* Fork(const Node& node, std::string& label);

  Node root_;
  std::unordered_set<std::string> names_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_MODULE_TREE_H_
