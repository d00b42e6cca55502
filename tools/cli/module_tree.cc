#include "tools/cli/module_tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <list>
#include <utility>

#include "reshard/parameters.h"

namespace reshard {
namespace {

constexpr std::string_view kAnyNumber = "*";
constexpr size_t kMostTypes = 2;  // that a row names

std::string TypesText(const std::set<std::string_view>& types) {
  if (types.size() > kMostTypes) return fmt::format("{} dtypes", types.size());
  return fmt::format("{}", fmt::join(types, ", "));
}

}  // namespace

bool ModuleTree::IsNumber(std::string_view part) {
  return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
}

ModuleTree::Node& ModuleTree::Child(Node& node, std::string_view part) {
  const std::string_view label = IsNumber(part) ? kAnyNumber : part;
  const auto known = node.by_part.find(label);
  Node* child = known == node.by_part.end() ? nullptr : known->second;
  if (child == nullptr) {
    node.children.push_back(std::make_unique<Node>());
    child = node.children.back().get();
    child->label = label;
    node.by_part.emplace(label, child);
  }
  if (label != part && !child->numbers.contains(part)) child->numbers.emplace(part);
  return *child;
}

void ModuleTree::Add(std::string_view name, std::string_view type, uint64_t bytes) {
  const bool is_new = names_.emplace(name).second;
  Node* node = &root_;
  std::string_view rest = name;
  for (bool more = true; more;) {
    const size_t dot = rest.find('.');
    more = dot != std::string_view::npos;
    node = &Child(*node, rest.substr(0, dot));
    if (more) rest.remove_prefix(dot + 1);
    node->types.insert(type);
    if (is_new) ++node->names;
    node->bytes += bytes;
  }
}

const ModuleTree::Node* ModuleTree::Fork(const Node& node, std::string& label) {
  const Node* place = &node;
  label.clear();
  while (true) {
    if (!label.empty()) label += ".";
    label += PrintableName(place->label);
    if (!place->numbers.empty()) label += fmt::format(" x {}", place->numbers.size());
    // A name may be the begin of others.
    const bool same = place->children.size() == 1 && place->children[0]->names == place->names;
    if (!same || !place->numbers.empty()) return place;
    place = place->children[0].get();
  }
}

std::string ModuleTree::ToText(size_t most_rows) const {
  struct Row {
    const Node* node = nullptr;
    std::string label;
    size_t depth = 0;
  };
  std::list<Row> rows;
  std::deque<std::list<Row>::iterator> closed;  // that could be taken apart, in this order
  const auto open = [&](const Node& node, size_t depth, std::list<Row>::iterator before) {
    for (const auto& child : node.children) {
      Row row;
      row.node = Fork(*child, row.label);
      row.depth = depth;
      const auto place = rows.insert(before, std::move(row));
      const bool optimizer = depth == 0 && !OptimizerGroup(child->label + ".").empty();
      if (!optimizer && !place->node->children.empty()) closed.push_back(place);
    }
  };
  open(root_, 0, rows.end());
  while (!closed.empty()) {
    const auto next = closed.front();
    closed.pop_front();
    if (rows.size() + next->node->children.size() > most_rows) continue;
    open(*next->node, next->depth + 1, std::next(next));
  }
  Table table({{"MODULE"}, {"PARAMETERS", Align::kRight}, {"ALL FILES", Align::kRight}, {"DTYPE"}});
  size_t shown = 0;
  uint64_t left = 0;
  for (const Row& row : rows) {
    if (++shown > most_rows) {
      left += row.node->names;
      continue;
    }
    table.AddRow({std::string(2 * row.depth, ' ') + row.label, fmt::format("{}", row.node->names),
                  FormatBytes(row.node->bytes), TypesText(row.node->types)});
  }
  std::string text = table.ToText();
  if (left > 0) text += fmt::format("  and {} more\n", FormatCount(left, "parameter"));
  return text;
}

}  // namespace reshard
