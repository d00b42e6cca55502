// GlobList: which of many patterns is the first one that a name matches.
//
// Immutable; any thread.
#ifndef RESHARD_SRC_BASE_GLOB_LIST_H_
#define RESHARD_SRC_BASE_GLOB_LIST_H_

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace reshard {

// Compares a name only with patterns whose rarest literal part occurs in the name. With many
// patterns for many names, this takes about linear time as long as literals tell the patterns
// apart.
class GlobList {
 public:
  explicit GlobList(std::vector<std::string> patterns);
  GlobList(const GlobList&) = delete;
  GlobList& operator=(const GlobList&) = delete;

  // Returns the number of the first pattern that matches (reshard/parameters.h) all of `name`.
  std::optional<size_t> FirstMatch(std::string_view name) const;

 private:
  const std::vector<std::string> patterns_;
  // Ascending numbers of patterns by their part; those without one by an empty one.
  std::unordered_map<std::string_view, std::vector<size_t>> by_part_;
  std::set<size_t> lengths_;  // of the parts
};

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_GLOB_LIST_H_
