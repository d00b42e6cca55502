// Rename maps against a tree of the same JSON, and their names against the rules that SPEC.md has.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "format/rename_map/rename_map_codec.h"
#include "src/plan/parameter_choice.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/unique_json.h"

namespace reshard {
namespace {

using Renames = std::map<std::string, std::string>;

constexpr size_t kLongestName = 64 << 10;

std::optional<Renames> Expected(std::string_view bytes) {
  const auto tree = UniqueJson(bytes);
  if (!tree || !tree->is_object()) return std::nullopt;
  Renames renames;
  for (const auto& [name, value] : tree->items()) {
    if (!value.is_string()) return std::nullopt;
    renames.emplace(name, value.get<std::string>());
  }
  return renames;
}

bool MayBeNames(const Renames& renames) {
  std::set<std::string> values;
  return std::all_of(renames.begin(), renames.end(), [&](const auto& rename) {
    const auto& [from, to] = rename;
    return !from.empty() && !to.empty() && to.size() <= kLongestName && values.insert(to).second;
  });
}

}  // namespace

std::string FuzzRenameMap(std::string_view bytes) {
  const auto expected = Expected(bytes);
  const auto found = ParseRenameMap("map.json", bytes);
  if (!found.ok()) {
    std::string fault = RefusalFault(found.status(), "map.json", StatusCode::kInvalidArgument);
    if (!fault.empty()) return fault;
    return expected ? "refused: " + found.status().message() : "";
  }
  if (!expected) return "what is no map of names is taken";
  if (*found != *expected) return "other names";
  const Status names = CheckRenames(*found);
  if (names.ok() != MayBeNames(*found)) return "names are judged wrongly: " + names.message();
  return names.ok() ? "" : MessageFault(names);
}

}  // namespace reshard
