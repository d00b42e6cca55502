// Options that several commands have.
#ifndef RESHARD_TOOLS_CLI_SHARED_OPTIONS_H_
#define RESHARD_TOOLS_CLI_SHARED_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/convert.h"
#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard {

// Adds --src-strategy and --dst-strategy to `app`; parsing sets the paths.
void AddStrategyOptions(CLI::App& app, std::string& source, std::string& target);

// Adds --suffix, which chooses a checkpoint of each rank folder; parsing sets `suffix`.
CLI::Option* AddSuffixOption(CLI::App& app, std::string& suffix);

// Adds --source RANK=FILE, which names the file of a rank and may be given several times, each rank
// once. `app` keeps a pointer to `files`.
CLI::Option* AddSourceFilesOption(CLI::App& app, std::map<int64_t, std::string>& files);

// Adds --group-info FILE, which may be given several times. `app` keeps a pointer to `paths`.
CLI::Option* AddGroupInfoOption(CLI::App& app, std::vector<std::string>& paths);

// Returns the path of the source, or where it is named by files, an object of them by rank.
nlohmann::ordered_json SourceAsJson(const std::string& source,
                                    const std::map<int64_t, std::string>& files);

// --include, --exclude and --rename, of every command that plans a conversion. A plain value that
// the parser writes into.
class ChoiceOptions {
 public:
  // `app` keeps pointers into this object. Returns the options added.
  std::vector<CLI::Option*> AddTo(CLI::App& app);

  // After parsing: the file of --rename, or nothing.
  const std::string& rename_file() const { return rename_file_; }

  // After parsing: sets include, exclude and renames of a library call's options.
  // Errors: those of ReadRenames.
  Status Fill(Selection& selection) const {
    selection.include = include_;
    selection.exclude = exclude_;
    if (rename_file_.empty()) return {};
    Result<std::map<std::string, std::string>> renames = ReadRenames(rename_file_);
    if (!renames.ok()) return renames.status();
    selection.renames = *std::move(renames);
    return {};
  }

 private:
  std::vector<std::string> include_;
  std::vector<std::string> exclude_;
  std::string rename_file_;
};

// Which parameters are shown. A plain value that the parser writes into.
class NameFilter {
 public:
  // Adds --include (and its other name, --filter) and --exclude. `app` keeps pointers into this
  // object.
  void AddTo(CLI::App& app);

  // Whether any pattern was given.
  bool given() const { return !include_.empty() || !exclude_.empty(); }
  // Whether one pattern of --include matches, or there is none, and none of --exclude.
  bool Takes(std::string_view name) const;
  // What to say where it takes none.
  Warning NothingTaken() const;

 private:
  std::vector<std::string> include_;
  std::vector<std::string> exclude_;
};

// Returns "files written:" and a line for each, with its size.
std::string WrittenFilesText(const std::vector<WrittenFile>& files);

// Returns "3 parameters left out, 2 renamed", or "" where there are none of either.
std::string ChoiceText(uint64_t left_out, uint64_t renamed);

// Adds --unmatched to `app`; parsing sets `policy`.
CLI::Option* AddUnmatchedOption(CLI::App& app, std::optional<UnmatchedPolicy>& policy);

// Adds --wait to `app`, for commands that wait for other processes' locks. Whether or not it is
// given, `waiting` tells the user for whom the command waits.
CLI::Option* AddWaitOption(CLI::App& app, LockWaiting& waiting);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_SHARED_OPTIONS_H_
