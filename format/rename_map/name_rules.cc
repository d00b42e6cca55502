#include "format/rename_map/name_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "format/rename_map/rename_map_codec.h"
#include "format/rename_map/renaming.h"
#include "src/base/quote.h"

namespace reshard {
namespace {

struct NameRuleFile {
  std::string_view model;
  std::string_view json;
};

constexpr NameRuleFile kNameRuleFiles[] = {
#include "format/rename_map/name_rule_files.inc"
};

constexpr std::string_view kToMindFormers = ":hf-to-mindformers";

using AllRules = std::map<std::string, Renames, std::less<>>;

AllRules ReadAllRules() {
  AllRules all;
  for (const auto& [model, json] : kNameRuleFiles) {
    // A test parses all, and goes both ways.
    Renames rules = ParseRenameMap(std::string(model), json).value();
    all.emplace(std::string(model).append(kToHuggingFace), InverseOf(rules).value());
    all.emplace(std::string(model).append(kToMindFormers), std::move(rules));
  }
  return all;
}

const AllRules& RulesByName() {
  static const AllRules kAll = ReadAllRules();
  return kAll;
}

}  // namespace

const Renames* FindNameRules(std::string_view named) {
  const auto found = RulesByName().find(named);
  return found == RulesByName().end() ? nullptr : &found->second;
}

Status UnknownNameRules(std::string_view named) {
  return InvalidArgumentError(fmt::format("`name_rules` has to be one of {}; found {}",
                                          fmt::join(AllNameRules(), ", "),
                                          Quote(std::string(named))));
}

std::string OppositeRules(std::string_view named) {
  const bool to_hugging_face = named.ends_with(kToHuggingFace);
  named.remove_suffix((to_hugging_face ? kToHuggingFace : kToMindFormers).size());
  return std::string(named).append(to_hugging_face ? kToMindFormers : kToHuggingFace);
}

std::vector<std::string> AllNameRules() {
  std::vector<std::string> names;
  for (const auto& [name, rules] : RulesByName()) names.push_back(name);
  return names;
}

}  // namespace reshard
