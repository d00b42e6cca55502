// Rename maps against a tree of the same JSON, and their names against the rules that SPEC.md has.

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "format/rename_map/rename_map_codec.h"
#include "format/rename_map/renaming.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/unique_json.h"

namespace reshard {
namespace {

constexpr size_t kLongestName = 64 << 10;

std::optional<Renames> ExpectedRenames(std::string_view bytes) {
  const auto tree = UniqueJson(bytes);
  if (!tree || !tree->is_object()) return std::nullopt;
  Renames renames;
  for (const auto& [name, value] : tree->items()) {
    if (name == "patterns" && value.is_object()) {
      for (const auto& [pattern, made] : value.items()) {
        if (!made.is_string()) return std::nullopt;
        renames.patterns.emplace(pattern, made.get<std::string>());
      }
      continue;
    }
    if (!value.is_string()) return std::nullopt;
    renames.names.emplace(name, value.get<std::string>());
  }
  return renames;
}

bool IsName(const std::string& name) { return !name.empty() && name.size() <= kLongestName; }

bool MayBeNames(const Renames& renames) {
  std::set<std::string> values;
  for (const auto& [from, to] : renames.names) {
    if (from.empty() || !IsName(to) || !values.insert(to).second) return false;
  }
  return std::all_of(renames.patterns.begin(), renames.patterns.end(), [](const auto& rename) {
    const auto& [from, to] = rename;
    const auto stars = std::count(from.begin(), from.end(), '*');
    return IsName(to) && stars > 0 && stars == std::count(to.begin(), to.end(), '*');
  });
}

}  // namespace

std::string FuzzRenameMap(std::string_view bytes) {
  const auto expected = ExpectedRenames(bytes);
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
