#include "src/mindspore/layout_table.h"

#include <algorithm>

namespace reshard {

LayoutTable::LayoutTable(const std::vector<NamedLayout>& layouts) {
  entries_.reserve(layouts.size());
  for (const NamedLayout& named : layouts) push_back(named);
}

void LayoutTable::push_back(const LayoutEntry& entry) {
  const uint32_t layout = Intern(entry.layout);
  const std::string_view name = names_.Keep(entry.name);
  entries_.push_back({name.data(), static_cast<uint32_t>(name.size()), layout});
}

void LayoutTable::Replace(size_t place, const ParameterLayout& layout) {
  entries_[place].layout = Intern(layout);
}

uint32_t LayoutTable::Intern(const ParameterLayout& layout) {
  // Those side by side are often equal.
  if (!entries_.empty() && *layouts_[entries_.back().layout] == layout) {
    return entries_.back().layout;
  }
  const auto known = by_value_.find(&layout);
  if (known != by_value_.end()) return known->second;
  layouts_.push_back(std::make_shared<const ParameterLayout>(layout));
  const auto place = static_cast<uint32_t>(layouts_.size() - 1);
  by_value_.emplace(layouts_.back().get(), place);
  return place;
}

bool operator==(const LayoutTable& a, const LayoutTable& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

}  // namespace reshard
