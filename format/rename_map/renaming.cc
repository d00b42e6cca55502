#include "format/rename_map/renaming.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "format/mindspore_checkpoint/value_parser.h"
#include "format/rename_map/name_rules.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

bool IsTooLong(const std::string& name) { return name.size() > kMaxTagBytes; }

Status TooLong(const std::string& from, const std::string& to) {
  return InvalidArgumentError(
      fmt::format("renaming {} to {}: expected a name of at most {} bytes, found {}", Quote(from),
                  Quote(to), kMaxTagBytes, to.size()));
}

auto Stars(std::string_view text) { return std::count(text.begin(), text.end(), '*'); }

// Returns whether a pattern matches, and then sets `made` to the new name. Errors: as
// Renaming::NewName.
Result<bool> ByPatterns(const std::map<std::string, std::string>& patterns, const std::string& name,
                        std::string& made) {
  const std::string* fitting = nullptr;
  for (const auto& [pattern, new_name] : patterns) {
    auto by_pattern = NameByPattern(pattern, new_name, name);
    if (!by_pattern) continue;
    if (fitting != nullptr) {
      return InvalidArgumentError(
          fmt::format("parameter {} fits the patterns {} and {}; make them fit different names, or "
                      "give its new name by itself",
                      Quote(name), Quote(*fitting), Quote(pattern)));
    }
    if (IsTooLong(*by_pattern)) return TooLong(name, *by_pattern);
    fitting = &pattern;
    made = *std::move(by_pattern);
  }
  return fitting != nullptr;
}

Result<std::map<std::string, std::string>> Inverse(const std::map<std::string, std::string>& map) {
  std::map<std::string, std::string> inverse;
  for (const auto& [from, to] : map) {
    const auto [other, is_new] = inverse.emplace(to, from);
    if (!is_new) {
      return InvalidArgumentError(fmt::format("{} stands for both {} and {}; remove one", Quote(to),
                                              Quote(other->second), Quote(from)));
    }
  }
  return inverse;
}

}  // namespace

Status CheckRenames(const Renames& renames) {
  std::map<std::string_view, std::string_view> old_names;  // by the new one
  for (const auto* map : {&renames.names, &renames.patterns}) {
    for (const auto& [from, to] : *map) {
      if (from.empty() || to.empty()) {
        return InvalidArgumentError(fmt::format(
            "renaming {} to {}: a parameter's name has at least one byte", Quote(from), Quote(to)));
      }
      if (IsTooLong(to)) return TooLong(from, to);
    }
  }
  for (const auto& [from, to] : renames.names) {
    const auto [other, is_new] = old_names.emplace(to, from);
    if (!is_new) {
      return InvalidArgumentError(fmt::format(
          "renaming gives the parameters {} and {} the same name {}; give them different ones",
          Quote(other->second), Quote(from), Quote(to)));
    }
  }
  for (const auto& [from, to] : renames.patterns) {
    if (Stars(from) > 0 && Stars(from) == Stars(to)) continue;
    return InvalidArgumentError(fmt::format(
        "renaming by the pattern {} to {}: expected one * or more, and as many in the new name, "
        "found {} and {}",
        Quote(from), Quote(to), Stars(from), Stars(to)));
  }
  if (!renames.rules.empty() && FindNameRules(renames.rules) == nullptr) {
    return UnknownNameRules(renames.rules);
  }
  return {};
}

std::optional<std::string> NameByPattern(std::string_view pattern, std::string_view new_name,
                                         std::string_view name) {
  std::string made;
  // Up to the next *, of the pattern and of the new name.
  const auto next = [](std::string_view& text) {
    const size_t star = text.find('*');
    const std::string_view part = text.substr(0, star);
    text.remove_prefix(std::min(text.size(), star == std::string_view::npos ? star : star + 1));
    return part;
  };
  const auto begin = next(pattern);
  if (!name.starts_with(begin)) return std::nullopt;
  name.remove_prefix(begin.size());
  made += next(new_name);
  for (auto stars = Stars(pattern) + 1; stars > 0; --stars) {
    const auto part = next(pattern);
    size_t place = name.find(part);
    if (stars == 1) {  // the end
      place = name.ends_with(part) ? name.size() - part.size() : std::string_view::npos;
    }
    if (place == std::string_view::npos) return std::nullopt;
    made += name.substr(0, place);
    made += next(new_name);
    name.remove_prefix(place + part.size());
  }
  return made;
}

Result<Renames> InverseOf(const Renames& renames) {
  Renames inverse;
  RESHARD_ASSIGN_OR_RETURN(inverse.names, Inverse(renames.names));
  RESHARD_ASSIGN_OR_RETURN(inverse.patterns, Inverse(renames.patterns));
  if (!renames.rules.empty()) inverse.rules = OppositeRules(renames.rules);
  return inverse;
}

Renaming::Renaming(Renames renames)
    : renames_(std::move(renames)), rules_(FindNameRules(renames_.rules)) {}

Result<const std::string*> Renaming::NewName(const std::string& name, std::string& made) const {
  RESHARD_ASSIGN_OR_RETURN(const std::string* const found, Find(name, made));
  return found != nullptr ? found : &name;
}

Result<std::string> Renaming::NewNameOf(std::string name) const {
  std::string made;
  RESHARD_ASSIGN_OR_RETURN(const std::string* const found, Find(name, made));
  if (found == nullptr) return name;
  return *found;
}

bool Renaming::Fits(const std::string& name) const {
  std::string made;
  const Result<const std::string*> found = Find(name, made);
  return !found.ok() || *found != nullptr;
}

Result<const std::string*> Renaming::Find(const std::string& name, std::string& made) const {
  for (const Renames* renames : {&renames_, rules_}) {
    if (renames == nullptr) continue;
    const auto renamed = renames->names.find(name);
    if (renamed != renames->names.end()) return &renamed->second;
    RESHARD_ASSIGN_OR_RETURN(const bool fits, ByPatterns(renames->patterns, name, made));
    if (fits) return &made;
  }
  return nullptr;
}

Status RulesDoNotFit(const std::string& rules, const std::string& name) {
  std::string opposite = OppositeRules(rules);
  const std::string advice = Renaming(Renames{{}, {}, opposite}).Fits(name)
                                 ? "give " + opposite
                                 : "give the rules of the model, or no rules";
  return InvalidArgumentError(fmt::format("`name_rules` {} does not fit parameters such as {}; {}",
                                          rules, Quote(name), advice));
}

Result<bool> Changes(const Renaming& renaming, const std::string& name) {
  RESHARD_ASSIGN_OR_RETURN(const std::string new_name, renaming.NewNameOf(name));
  return new_name != name;
}

}  // namespace reshard
