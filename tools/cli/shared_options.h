// Options that several commands have.
#ifndef RESHARD_TOOLS_CLI_SHARED_OPTIONS_H_
#define RESHARD_TOOLS_CLI_SHARED_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/convert.h"
#include "reshard/encryption.h"
#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard {

// Adds --src-strategy and --dst-strategy to `app`; parsing sets the paths.
void AddStrategyOptions(CLI::App& app, std::string& source, std::string& target);

// Adds --suffix, which chooses a checkpoint of each rank folder; parsing sets `suffix`.
CLI::Option* AddSuffixOption(CLI::App& app, std::string& suffix);

// Adds the ranks of `list`, such as "3" or "0-7,9", to `ranks`. Throws the parser's error, which
// names `option`.
void AddRanks(const std::string& option, std::string_view list, std::vector<int64_t>& ranks);

// Adds --rank, which takes such lists and may be given several times; parsing adds to `ranks`.
CLI::Option* AddRankOption(CLI::App& app, std::vector<int64_t>& ranks,
                           const std::string& description);

// Adds --source RANK=FILE, which names the file of a rank and may be given several times, each rank
// once. `app` keeps a pointer to `files`.
CLI::Option* AddSourceFilesOption(CLI::App& app, std::map<int64_t, std::string>& files);

// Adds --group-info FILE, which may be given several times. `app` keeps a pointer to `paths`.
CLI::Option* AddGroupInfoOption(CLI::App& app, std::vector<std::string>& paths);

// Adds --key-file and --key-env, one of which names the key of encrypted sources; parsing reads it
// into `key`.
std::vector<CLI::Option*> AddKeyOptions(CLI::App& app, std::shared_ptr<const EncryptionKey>& key);

// The same of encrypted targets: --encrypt-key-file and --encrypt-key-env.
std::vector<CLI::Option*> AddEncryptKeyOptions(CLI::App& app,
                                               std::shared_ptr<const EncryptionKey>& key);

// Adds --encrypt, which sets `mode`, and the options above.
void AddEncryptOptions(CLI::App& app, std::optional<EncryptionMode>& mode,
                       std::shared_ptr<const EncryptionKey>& key);

// Returns the path of the source, or where it is named by files, an object of them by rank.
nlohmann::ordered_json SourceAsJson(const std::string& source,
                                    const std::map<int64_t, std::string>& files);

// --include, --exclude, --rename and --dtype, of every command that plans a conversion. A plain
// value that the parser writes into.
class ChoiceOptions {
 public:
  // `app` keeps pointers into this object. Returns the options added.
  std::vector<CLI::Option*> AddTo(CLI::App& app);

  // After parsing: the file of --rename, or nothing.
  const std::string& rename_file() const { return rename_file_; }

  // After parsing: sets include, exclude, renames and casts of a library call's options.
  // Errors: those of ReadRenames.
  Status Fill(Selection& selection) const {
    selection.include = include_;
    selection.exclude = exclude_;
    selection.casts = casts_;
    if (rename_file_.empty()) return {};
    Result<Renames> renames = ReadRenames(rename_file_);
    if (!renames.ok()) return renames.status();
    selection.renames = *std::move(renames);
    return {};
  }

 private:
  std::vector<std::string> include_;
  std::vector<std::string> exclude_;
  std::string rename_file_;
  std::vector<CastRule> casts_;
};

// --name-map, of every command that takes a conversion's source. A plain value that the parser
// writes into.
class NameMapOption {
 public:
  // `app` keeps a pointer into this object.
  CLI::Option* AddTo(CLI::App& app);

  // After parsing: the file of the map, or nothing.
  const std::string& file() const { return file_; }

  // After parsing: sets the map of a library call's source. Errors: those of ReadRenames.
  Status Fill(SourceSpec& source) const;

 private:
  std::string file_;
};

// Which parameters are shown. A plain value that the parser writes into.
class NameFilter {
 public:
  // Adds --include and --exclude. `app` keeps pointers into this object. `include` has the other
  // names of --include, too.
  void AddTo(CLI::App& app, const std::string& include = "--include");

  // Whether any pattern was given.
  bool given() const { return !include_.empty() || !exclude_.empty(); }
  // After parsing: sets include and exclude of a library call's options.
  template <typename Options>
  void Fill(Options& options) const {
    options.include = include_;
    options.exclude = exclude_;
  }
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

// What a conversion says that found its set in `target`.
std::string AlreadyPublishedText(const std::string& target);

// Returns "3 parameters left out, 2 renamed", or "" where there are none of either.
std::string ChoiceText(uint64_t left_out, uint64_t renamed);

// Whether KB is 1024 bytes, as K and KiB are, or 1000.
enum class SizeUnits { kBinary, kBytesDecimal };

// Turns a number of bytes with one of the suffixes K, M, G, T, also as KB or KiB, into one without;
// with a suffix it may have decimals.
CLI::Validator ByteSize(SizeUnits units = SizeUnits::kBinary);

// Adds --memory-limit; parsing sets `bytes`.
CLI::Option* AddMemoryLimitOption(CLI::App& app, uint64_t& bytes);

// Adds --unmatched to `app`; parsing sets `policy`.
CLI::Option* AddUnmatchedOption(CLI::App& app, std::optional<UnmatchedPolicy>& policy);

// Adds --partial to `app`; `app` keeps a pointer to `partial`.
CLI::Option* AddPartialOption(CLI::App& app, bool& partial);

// Adds --wait to `app`, for commands that wait for other processes' locks. Whether or not it is
// given, `waiting` tells the user for whom the command waits.
CLI::Option* AddWaitOption(CLI::App& app, LockWaiting& waiting);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_SHARED_OPTIONS_H_
