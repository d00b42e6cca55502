#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/cli/completion_script.h"

namespace reshard {
namespace {

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

}  // namespace

std::string ZshCompletion(const CommandTable& table) {
  std::string out(kZshBegin);
  for (const CommandEntry& command : table) out += Function(table, command);
  return out.append(kZshEnd);
}

}  // namespace reshard
