// CommandTable: the commands and options of the command line as plain values, out of the tables
// that parse it and print --help; what completion scripts and the man page are made of.
//
// In the order of --help; what that hides is not in it. Pure; nothing here keeps a pointer into the
// parser.
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
  std::string value_name;          // "S", "copy|drop|error"; empty where there is none
  std::string group;
  std::string description;
  TakesValue takes_value = TakesValue::kNo;
  bool required = false;
  bool repeatable = false;
  std::vector<std::string> words;  // the values that there are, where value_name lists some
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

// Returns `root` and all commands below it, each before those that it has.
CommandTable DescribeCommands(const CLI::App& root);

// Returns the commands right below the one of that name.
std::vector<const CommandEntry*> Subcommands(const CommandTable& table, const std::string& name);

// Returns the last word of a command's name, as it is typed.
std::string LastWord(const CommandEntry& command);

// Returns the first clause of a description, for a list of options beside one another.
std::string ShortDescription(const std::string& description);

// The headings of a command's common options, which come first, and of those that every command
// has, which come last.
inline constexpr const char* kCommonGroup = "Options";
inline constexpr const char* kOutputGroup = "Output";

// Returns what help calls an argument without a dash: its name, and the text of the option behind
// it, since CLI11 allows no space in a name.
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
