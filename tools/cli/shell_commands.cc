#include "tools/cli/shell_commands.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "reshard/status.h"
#include "reshard/version.h"
#include "tools/cli/command_table.h"
#include "tools/cli/completion_script.h"
#include "tools/cli/messages.h"

namespace reshard {
namespace {

// Text as roff takes it: minus signs that can be copied, and no line that is a request.
std::string Escaped(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    line_begins = c == '\n';
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Bold(std::string_view text) { return "\\fB" + Escaped(text) + "\\fR"; }

std::string Italic(std::string_view text) { return "\\fI" + Escaped(text) + "\\fR"; }

// "reshard convert [OPTIONS] SRC DST"
std::string Usage(const CommandTable& table, const CommandEntry& command) {
  std::string usage = Bold(command.name);
  if (!command.options.empty()) usage += " [" + Italic("OPTIONS") + "]";
  for (const ArgumentEntry& positional : command.positionals) {
    // "FILES... OUT" says so itself.
    const bool dots = positional.repeatable && positional.names[0].find("...") == std::string::npos;
    const std::string name = Italic(positional.names[0]) + (dots ? Escaped("...") : "");
    usage += positional.required ? ' ' + name : " [" + name + "]";
  }
  if (!Subcommands(table, command.name).empty()) usage += ' ' + Italic("COMMAND");
  return usage;
}

// A paragraph with the argument's name as a hanging tag.
std::string Paragraph(const ArgumentEntry& argument) {
  std::string tag;
  for (const std::string& name : argument.names) {
    if (!tag.empty()) tag += ", ";
    tag += name.starts_with('-') ? Bold(name) : Italic(name);
  }
  if (!argument.value_name.empty()) {
    tag += (argument.takes_value == TakesValue::kMay ? "" : " ") + Italic(argument.value_name);
  }
  return fmt::format(".TP\n{}\n{}\n", tag, Escaped(argument.description));
}

std::string Section(const CommandTable& table, const CommandEntry& command) {
  std::string out = fmt::format(".SS {}\n{}.\n.PP\n{}\n", Escaped(command.name),
                                Escaped(command.description), Usage(table, command));
  for (const ArgumentEntry& positional : command.positionals) out += Paragraph(positional);
  std::string_view group = "Options";
  for (const ArgumentEntry& option : command.options) {
    if (option.group != group) out += fmt::format(".PP\n{}:\n", Escaped(option.group));
    group = option.group;
    out += Paragraph(option);
  }
  return out + fmt::format(".PP\n.nf\n{}\n.fi\n", Escaped(command.footer));
}

std::string ExitStatus() {
  std::map<int, std::string> kinds;
  for (int i = 1; i <= static_cast<int>(StatusCode::kCancelled); ++i) {
    const auto code = static_cast<StatusCode>(i);
    std::string& names = kinds[ExitCode(code)];
    names += (names.empty() ? "" : ", ") + std::string(StatusCodeName(code));
  }
  std::string out = ".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\ncompared, and something differs\n";
  for (const auto& [code, names] : kinds) out += fmt::format(".TP\n{}\n{}\n", code, Escaped(names));
  return out;
}

}  // namespace

std::string ManPage(const CommandTable& table) {
  const CommandEntry& root = table[0];
  std::string_view description = root.description;
  description.remove_suffix(description.ends_with('.') ? 1 : 0);
  // No date: the page has to be the same in each build.
  std::string out = fmt::format(
      ".TH RESHARD 1 \"\" \"reshard {}\" \"User Commands\"\n"
      ".SH NAME\n"
      "reshard \\- {}\n"
      ".SH SYNOPSIS\n"
      "{}\n"
      ".SH OPTIONS\n",
      kVersion, Escaped(description), Usage(table, root));
  for (const ArgumentEntry& option : root.options) out += Paragraph(option);
  out += ".SH COMMANDS\n";
  for (const CommandEntry& command : table) {
    // One that only has others says no more than they do.
    if (Subcommands(table, command.name).empty()) out += Section(table, command);
  }
  out += ExitStatus();
  return out + fmt::format(".SH EXAMPLES\n.nf\n{}\n.fi\n", Escaped(root.footer));
}

ShellCommands::ShellCommands(CLI::App& root)
    : root_(root),
      completion_(*root.add_subcommand("completion", "Print a completion script for a shell")),
      man_(*root.add_subcommand("man", "Print the manual page")->group("")) {
  completion_.add_option("SHELL", shell_, "Shell to complete in")
      ->required()
      ->type_name("bash|zsh|fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
  man_.footer(
      "Examples:\n"
      "  $ reshard man | man -l -");
  completion_.footer(
      "Examples:\n"
      "  $ source <(reshard completion bash)\n"
      "  $ reshard completion zsh > ~/.zfunc/_reshard       # a folder of fpath\n"
      "  $ reshard completion fish > ~/.config/fish/completions/reshard.fish");
}

int ShellCommands::Run() const {
  const CommandTable table = DescribeCommands(root_);
  PrintData(man_.parsed()      ? ManPage(table)
            : shell_ == "bash" ? BashCompletion(table)
            : shell_ == "zsh"  ? ZshCompletion(table)
                               : FishCompletion(table));
  return 0;
}

}  // namespace reshard
