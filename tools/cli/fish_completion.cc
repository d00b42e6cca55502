#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/cli/completion_script.h"

namespace reshard {
namespace {

constexpr std::string_view kFishBegin =
    R"(# Completion of reshard for fish, made by `reshard completion fish`.

# Whether the words before the cursor are of that command.
function __reshard_at
    set -l command reshard
    for word in (commandline -opc)
        switch "$command $word"
            case)";

constexpr std::string_view kFishEnd = R"(
                set command "$command $word"
        end
    end
    test "$command" = "$argv"
end

function __reshard_no_option
    not string match -q -- '-*' (commandline -ct)
end

complete -c reshard -f
)";

std::string FishQuoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + '\'';
}

std::string Line(const CommandEntry& command, const std::string& what) {
  return fmt::format("complete -c reshard -n '__reshard_at {}' {}\n", command.name, what);
}

// Where files are wanted; else the words there are, perhaps none.
std::string FishValue(const ArgumentEntry& argument) {
  if (argument.is_path) return "-r -F";
  return "-x -a " + FishQuoted(fmt::format("{}", fmt::join(argument.words, " ")));
}

std::string OptionLines(const CommandEntry& command, const ArgumentEntry& option) {
  std::string names;
  for (const std::string& name : option.names) {
    names += name.starts_with("--") ? "-l " + name.substr(2) : "-s " + name.substr(1);
    names += ' ';
  }
  const std::string description = "-d " + FishQuoted(ShortDescription(option.description));
  if (option.takes_value == TakesValue::kMust) {
    return Line(command, names + FishValue(option) + ' ' + description);
  }
  std::string out = Line(command, names + description);
  for (const std::string& word : option.words) {
    out += Line(command, fmt::format("-a '{}={}' {}", option.names.back(), word, description));
  }
  return out;
}

}  // namespace

std::string FishCompletion(const CommandTable& table) {
  std::string patterns;
  std::string lines;
  for (const CommandEntry& command : table) {
    if (&command != &table[0]) patterns += " '" + command.name + '\'';
    for (const CommandEntry* child : Subcommands(table, command.name)) {
      lines += Line(command, fmt::format("-a {} -d {}", LastWord(*child),
                                         FishQuoted(ShortDescription(child->description))));
    }
    for (const ArgumentEntry& option : command.options) lines += OptionLines(command, option);
    bool paths = false;
    for (const ArgumentEntry& positional : command.positionals) {
      paths = paths || positional.is_path;
      if (!positional.words.empty()) {
        lines += Line(command, fmt::format("-a '{}'", fmt::join(positional.words, " ")));
      }
    }
    if (paths) {
      lines += fmt::format("complete -c reshard -n '__reshard_at {}; and __reshard_no_option' -F\n",
                           command.name);
    }
  }
  return fmt::format("{}{}{}{}", kFishBegin, patterns, kFishEnd, lines);
}

}  // namespace reshard
