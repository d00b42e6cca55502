// The options of the option table on a command line.
#ifndef RESHARD_TOOLS_CLI_TABLE_OPTIONS_H_
#define RESHARD_TOOLS_CLI_TABLE_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/status.h"
#include "src/options/option_table.h"

namespace reshard {

// The values given for options of the table. A plain value that the parser writes into.
class TableOptions {
 public:
  // Adds the options that `call` takes, all to `group` if it is given. `app` keeps pointers into
  // this object, and throws errors in a text as the parser's error.
  void AddTo(CLI::App& app, Call call, const std::string& group = {});

  // After parsing: whether the option of this name was given.
  bool Has(std::string_view name) const;

  // After parsing: throws the parser's error unless there is either SRC, `path`, or --source.
  void RequireOneSource(const std::string& path) const;

  // After parsing: stores the values in their places. Reads files of names. Errors: as ReadRenames.
  Status ApplyTo(const OptionParts& parts) const;

 private:
  struct Given {
    const Option* option;
    std::vector<std::string> texts;
    OptionValue value;  // unless it is in a file of names, which is read later
  };
  CLI::Option* Add(CLI::App& app, const Option& option);
  void Take(const Option& option, const std::vector<std::string>& texts);

  std::vector<Given> given_;
  // The texts of switches with a word; a deque, so that texts stay at their addresses.
  std::deque<std::pair<const Option*, std::string>> flags_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_TABLE_OPTIONS_H_
