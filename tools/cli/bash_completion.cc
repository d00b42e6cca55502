#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/cli/completion_script.h"

namespace reshard {
namespace {

constexpr std::string_view kBashBegin =
    R"(# Completion of reshard for bash, made by `reshard completion bash`.

_reshard() {
  local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}
  # Bash takes --option=value for three words.
  if [[ $cur == = ]]; then
    cur=
    option+==
  elif [[ $option == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}=
  fi
  COMPREPLY=()
  local command=reshard i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command ${COMP_WORDS[i]}" in
)";

// After the words of all commands.
constexpr std::string_view kBashMiddle = R"( command+=" ${COMP_WORDS[i]}" ;;
    esac
  done
  local words= options= paths=
  case $command in
)";

constexpr std::string_view kBashEnd = R"(  esac
  [[ $options && $cur == -* ]] && words=$options paths=
  if [[ $paths ]]; then
    compopt -o default
  else
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  fi
}

complete -F _reshard reshard
)";

// What comes right after an option that takes a value.
std::string ValueCase(const ArgumentEntry& option) {
  if (option.takes_value == TakesValue::kNo) return "";
  std::string patterns;
  for (const std::string& name : option.names) {
    if (!patterns.empty()) patterns += " | ";
    patterns +=
        option.takes_value == TakesValue::kMay ? name + "=" : fmt::format("{0} | {0}=", name);
  }
  return fmt::format("        {}) options= paths={} words='{}' ;;\n", patterns,
                     option.is_path ? "1" : "", fmt::join(option.words, " "));
}

std::string CommandCase(const CommandTable& table, const CommandEntry& command) {
  std::vector<std::string> words;
  for (const CommandEntry* child : Subcommands(table, command.name))
    words.push_back(LastWord(*child));
  bool paths = false;
  for (const ArgumentEntry& positional : command.positionals) {
    words.insert(words.end(), positional.words.begin(), positional.words.end());
    paths = paths || positional.is_path;
  }
  std::vector<std::string> options;
  std::string cases;
  for (const ArgumentEntry& option : command.options) {
    options.insert(options.end(), option.names.begin(), option.names.end());
    cases += ValueCase(option);
    if (option.takes_value != TakesValue::kMay) continue;
    for (const std::string& word : option.words)
      options.push_back(option.names.back() + "=" + word);
  }
  std::string out =
      fmt::format("    '{}')\n      words='{}' paths={}\n      options='{}'\n", command.name,
                  fmt::join(words, " "), paths ? "1" : "", fmt::join(options, " "));
  if (!cases.empty()) out += "      case $option in\n" + cases + "      esac\n";
  return out + "      ;;\n";
}

}  // namespace

std::string BashCompletion(const CommandTable& table) {
  std::vector<std::string> patterns;
  std::string cases;
  for (const CommandEntry& command : table) {
    if (&command != &table[0]) patterns.push_back('\'' + command.name + '\'');
    cases += CommandCase(table, command);
  }
  return fmt::format("{}      {}){}{}{}", kBashBegin, fmt::join(patterns, " | "), kBashMiddle,
                     cases, kBashEnd);
}

}  // namespace reshard
