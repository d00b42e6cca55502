// CommandTable: the commands and options of the command line as plain values, made from the tables
// that parse it and print --help. Completion scripts and the man page come from it.
//
// In the order of --help, without hidden entries. Pure; it keeps no pointers into the parser.
#ifndef RESHARD_TOOLS_CLI_COMMAND_TABLE_H_
#define RESHARD_TOOLS_CLI_COMMAND_TABLE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace reshard {

enum class TakesValue { kNo, kMay, kMust };  // kMay: only as --option=VALUE

// An option, or a positional argument, which always takes a value.
struct ArgumentEntry {
  std::vector<std::string> names;  // "-q", "--quiet"; of a positional "SRC"
  std::string value_name;          // "S", "copy|drop|error"; empty if there is none
  std::string group;
  std::string description;
  TakesValue takes_value = TakesValue::kNo;
  bool required = false;
  bool repeatable = false;
  std::vector<std::string> words;  // the values, if value_name lists some
  bool is_path = false;            // the value names a file or a folder
};

struct CommandEntry {
  std::string name;  // "reshard", "reshard strategy show"
  std::string description;
  std::string footer;
  std::vector<ArgumentEntry> options;
  std::vector<ArgumentEntry> positionals;
};

using CommandTable = std::vector<CommandEntry>;

// Returns `root` and all commands below it, each before its sub-commands.
CommandTable DescribeCommands(const CLI::App& root);

// Returns the direct sub-commands of the command with that name.
std::vector<const CommandEntry*> Subcommands(const CommandTable& table, const std::string& name);

// Returns the last word of a command's name, as it is typed.
std::string LastWord(const CommandEntry& command);

// Returns the first clause of a description, for a list of options beside one another.
std::string ShortDescription(const std::string& description);

// The headings of a command's common options, which come first, and of the options of all commands,
// which come last.
inline constexpr const char* kCommonGroup = "Options";
inline constexpr const char* kOutputGroup = "Output";

// Returns the name of a positional argument in help. It is the text of the option behind it,
// because CLI11 allows no spaces in names.
std::string ShownName(const CLI::Option& positional);

// Returns the heading of an option.
std::string GroupOf(const CLI::Option& option);

// Returns the headings of a command's options in the order of --help.
std::vector<std::string> OptionGroups(const CLI::App& app);

// Returns the option of this name, or nullptr. CLI::App's own ways to look up or count an option by
// its name end the process when they run out of memory.
const CLI::Option* FindOption(const CLI::App& app, const std::string& name);
CLI::Option* FindOption(CLI::App& app, const std::string& name);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_COMMAND_TABLE_H_
