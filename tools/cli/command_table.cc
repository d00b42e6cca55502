#include "tools/cli/command_table.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string_view>
#include <utility>

namespace reshard {
namespace {

// Of "copy|drop|error" all three, of "[=verify]" the one; a word in capitals stands for something
// else, and in "I/N|auto" only auto is to be typed as it is.
std::vector<std::string> ValueWords(std::string_view value_name) {
  constexpr std::string_view kOfWords = "abcdefghijklmnopqrstuvwxyz0123456789-_";
  std::vector<std::string> words;
  while (!value_name.empty()) {
    const size_t bar = std::min(value_name.find('|'), value_name.size());
    std::string_view part = value_name.substr(0, bar);
    if (part.starts_with("[=")) part.remove_prefix(2);
    const std::string_view word = part.substr(0, part.find_first_not_of(kOfWords));
    if (!word.empty() && std::islower(static_cast<unsigned char>(word[0])) != 0) {
      words.emplace_back(word);
    }
    value_name.remove_prefix(std::min(bar + 1, value_name.size()));
  }
  return words;
}

// Whether a value with this name in --help is a file or a folder. Unknown names count as paths:
// useless file names in a completion are less of a nuisance than missing ones.
bool IsPath(const std::string& value_name) {
  constexpr std::string_view kNoPaths[] = {"N",    "J",   "P",    "SIZE",  "-E_S",
                                           "GLOB", "I/N", "RANK", "REGEX", "OFF:LEN"};
  return std::find(std::begin(kNoPaths), std::end(kNoPaths), value_name) == std::end(kNoPaths);
}

ArgumentEntry DescribeArgument(const CLI::Option& option) {
  ArgumentEntry entry;
  entry.value_name = option.get_type_name();
  entry.group = GroupOf(option);
  entry.description = option.get_description();
  entry.required = option.get_required();
  entry.repeatable = option.get_items_expected_max() > 1;
  entry.words = ValueWords(entry.value_name);
  if (option.get_positional()) {
    entry.names = {ShownName(option)};
    entry.takes_value = TakesValue::kMust;
    entry.is_path = entry.words.empty() && IsPath(entry.names[0]);
    return entry;
  }
  for (const std::string& name : option.get_snames()) entry.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) entry.names.push_back("--" + name);
  const bool flag = option.get_items_expected_min() == 0;
  entry.takes_value = !flag                      ? TakesValue::kMust
                      : entry.value_name.empty() ? TakesValue::kNo
                                                 : TakesValue::kMay;
  entry.is_path =
      entry.takes_value == TakesValue::kMust && entry.words.empty() && IsPath(entry.value_name);
  return entry;
}

void Describe(const CLI::App& app, const std::string& name, CommandTable& table) {
  CommandEntry command;
  command.name = name;
  command.description = app.get_description();
  command.footer = app.get_footer();
  for (const std::string& group : OptionGroups(app)) {
    for (const CLI::Option* option : app.get_options()) {
      if (GroupOf(*option) != group) continue;
      (option->get_positional() ? command.positionals : command.options)
          .push_back(DescribeArgument(*option));
    }
  }
  table.push_back(std::move(command));
  for (const CLI::App* child : app.get_subcommands({})) {
    if (!child->get_group().empty()) Describe(*child, name + ' ' + child->get_name(), table);
  }
}

}  // namespace

CommandTable DescribeCommands(const CLI::App& root) {
  CommandTable table;
  Describe(root, root.get_name(), table);
  return table;
}

std::vector<const CommandEntry*> Subcommands(const CommandTable& table, const std::string& name) {
  std::vector<const CommandEntry*> found;
  for (const CommandEntry& command : table) {
    const size_t blank = command.name.rfind(' ');
    if (blank != std::string::npos && command.name.substr(0, blank) == name) {
      found.push_back(&command);
    }
  }
  return found;
}

std::string LastWord(const CommandEntry& command) {
  return command.name.substr(command.name.rfind(' ') + 1);
}

std::string ShortDescription(const std::string& description) {
  return description.substr(0, std::min(description.find(';'), description.find(". ")));
}

std::string ShownName(const CLI::Option& positional) {
  return positional.get_name(true) + positional.get_option_text();
}

std::string GroupOf(const CLI::Option& option) {
  // CLI11's name for the group of options without one, from version 2.5 on.
  return option.get_group() == "OPTIONS" ? kCommonGroup : option.get_group();
}

std::vector<std::string> OptionGroups(const CLI::App& app) {
  std::vector<std::string> groups;
  for (const CLI::Option* option : app.get_options()) {
    const std::string group = GroupOf(*option);
    if (group.empty()) continue;  // of hidden options
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  const auto output = std::find(groups.begin(), groups.end(), kOutputGroup);
  if (output != groups.end()) std::rotate(output, output + 1, groups.end());
  return groups;
}

const CLI::Option* FindOption(const CLI::App& app, const std::string& name) {
  const std::vector<const CLI::Option*> options = app.get_options();
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&name](const auto* option) { return option->check_name(name); });
  return found == options.end() ? nullptr : *found;
}

CLI::Option* FindOption(CLI::App& app, const std::string& name) {
  return const_cast<CLI::Option*>(FindOption(std::as_const(app), name));
}

}  // namespace reshard
