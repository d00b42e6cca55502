#include "tools/cli/completion_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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

// The words right behind an option that takes a value.
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

constexpr std::string_view kZshBegin = R"(#compdef reshard
# Completion of reshard for zsh, made by `reshard completion zsh`.

)";

// Read by `source`, too, not only found in fpath.
constexpr std::string_view kZshEnd = R"(if [[ $funcstack[1] == _reshard ]]; then
  _reshard "$@"
else
  compdef _reshard reshard
fi
)";

std::string FunctionName(const CommandEntry& command) {
  std::string name = "_" + command.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

// For a word in single quotes, with a backslash before what _arguments or _describe would obey.
std::string ZshQuoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("[]:\\").find(c) != std::string_view::npos) out += '\\';
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out;
}

// "MESSAGE:ACTION" of a value.
std::string ZshValue(const ArgumentEntry& argument, const std::string& message) {
  return fmt::format("{}:{}", ZshQuoted(message),
                     argument.is_path ? "_files"
                     : argument.words.empty()
                         ? " "
                         : fmt::format("({})", fmt::join(argument.words, " ")));
}

std::string OptionSpec(const ArgumentEntry& option) {
  const bool may = option.takes_value == TakesValue::kMay;
  const std::string_view equals = option.takes_value == TakesValue::kNo ? "" : may ? "=-" : "=";
  std::string value;
  if (option.takes_value != TakesValue::kNo) {
    value = (may ? "::" : ":") + ZshValue(option, option.value_name);
  }
  const std::string description = ZshQuoted(ShortDescription(option.description));
  // One word each, as options that exclude their other name and themselves.
  std::string out;
  for (const std::string& name : option.names) {
    const std::string before =
        option.repeatable ? "*" : fmt::format("({})", fmt::join(option.names, " "));
    out += fmt::format(" \\\n    '{}{}{}[{}]{}'", before, name,
                       name.starts_with("--") ? equals : "", description, value);
  }
  return out;
}

std::string PositionalSpec(const ArgumentEntry& positional) {
  return fmt::format(" \\\n    '{}{}'",
                     positional.repeatable ? "*:"
                     : positional.required ? ":"
                                           : "::",
                     ZshValue(positional, positional.names[0]));
}

std::string Function(const CommandTable& table, const CommandEntry& command) {
  const std::vector<const CommandEntry*> children = Subcommands(table, command.name);
  std::string arguments;
  for (const ArgumentEntry& option : command.options) arguments += OptionSpec(option);
  for (const ArgumentEntry& positional : command.positionals)
    arguments += PositionalSpec(positional);
  if (children.empty()) {
    return fmt::format("{}() {{\n  _arguments -s -S :{}\n}}\n\n", FunctionName(command), arguments);
  }
  std::string list;
  std::string calls;
  for (const CommandEntry* child : children) {
    list += fmt::format("        '{}:{}'\n", LastWord(*child),
                        ZshQuoted(ShortDescription(child->description)));
    calls += fmt::format("        {}) {} ;;\n", LastWord(*child), FunctionName(*child));
  }
  return fmt::format(R"({}() {{
  local context state state_descr line
  typeset -A opt_args
  _arguments -s -C :{} \
    ': :->command' '*:: :->arguments'
  case $state in
    command)
      local -a commands=(
{}      )
      _describe -t commands command commands
      ;;
    arguments)
      case $words[1] in
{}      esac
      ;;
  esac
}}

)",
                     FunctionName(command), arguments, list, calls);
}

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

// File names if they are wanted; else the possible words, perhaps none.
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

std::string ZshCompletion(const CommandTable& table) {
  std::string out(kZshBegin);
  for (const CommandEntry& command : table) out += Function(table, command);
  return out.append(kZshEnd);
}

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
