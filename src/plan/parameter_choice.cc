#include "src/plan/parameter_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "format/mindspore_checkpoint/value_parser.h"
#include "reshard/parameters.h"
#include "src/base/quote.h"

namespace reshard {
namespace {

bool MatchesAny(const std::vector<std::string>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [name](const std::string& pattern) { return GlobMatch(pattern, name); });
}

}  // namespace

Status CheckRenames(const std::map<std::string, std::string>& renames) {
  std::map<std::string_view, std::string_view> old_names;  // by the new one
  for (const auto& [from, to] : renames) {
    if (from.empty() || to.empty()) {
      return InvalidArgumentError(
          fmt::format("renaming {} to {}: a parameter needs a name of a byte at least", Quote(from),
                      Quote(to)));
    }
    if (to.size() > kMaxTagBytes) {
      return InvalidArgumentError(
          fmt::format("renaming {} to {}: expected a name of at most {} bytes, found {}",
                      Quote(from), Quote(to), kMaxTagBytes, to.size()));
    }
    const auto [other, is_new] = old_names.emplace(to, from);
    if (!is_new) {
      return InvalidArgumentError(fmt::format(
          "renaming gives the parameters {} and {} the same name {}; give them different ones",
          Quote(other->second), Quote(from), Quote(to)));
    }
  }
  return {};
}

ParameterChoice::ParameterChoice(std::vector<std::string> include, std::vector<std::string> exclude,
                                 std::map<std::string, std::string> renames)
    : include_(std::move(include)), exclude_(std::move(exclude)), renames_(std::move(renames)) {}

bool ParameterChoice::Takes(std::string_view name) const {
  return (include_.empty() || MatchesAny(include_, name)) && !MatchesAny(exclude_, name);
}

const std::string& ParameterChoice::TargetName(const std::string& name) const {
  const auto renamed = renames_.find(name);
  return renamed == renames_.end() ? name : renamed->second;
}

}  // namespace reshard
