// ChoiceOptions: --include, --exclude and --rename, of every command that plans a conversion.
#ifndef RESHARD_TOOLS_CLI_CHOICE_OPTIONS_H_
#define RESHARD_TOOLS_CLI_CHOICE_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "reshard/renames.h"
#include "reshard/status.h"

namespace reshard {

// A plain value that the parser writes into.
class ChoiceOptions {
 public:
  // `app` keeps pointers into this object. Returns the options added.
  std::vector<CLI::Option*> AddTo(CLI::App& app);

  // After parsing: the file of --rename, or nothing.
  const std::string& rename_file() const { return rename_file_; }

  // After parsing: sets include, exclude and renames of a library call's options.
  // Errors: those of ReadRenames.
  template <typename Options>
  Status Fill(Options& options) const {
    options.include = include_;
    options.exclude = exclude_;
    if (rename_file_.empty()) return {};
    Result<std::map<std::string, std::string>> renames = ReadRenames(rename_file_);
    if (!renames.ok()) return renames.status();
    options.renames = *std::move(renames);
    return {};
  }

 private:
  std::vector<std::string> include_;
  std::vector<std::string> exclude_;
  std::string rename_file_;
};

// Returns "3 parameters left out, 2 renamed", or "" where there are none of either.
std::string ChoiceText(uint64_t left_out, uint64_t renamed);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_CHOICE_OPTIONS_H_
