#include "tools/cli/shared_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "reshard/parameters.h"
#include "tools/cli/command.h"
#include "tools/cli/messages.h"
#include "tools/cli/text_format.h"

namespace reshard {
namespace {

constexpr const char* kName = "--source";

}  // namespace

void AddStrategyOptions(CLI::App& app, std::string& source, std::string& target) {
  app.add_option("--src-strategy", source,
                 "Strategy file of the source, or folder of stage files; without it the source "
                 "holds full tensors")
      ->type_name("S");
  app.add_option("--dst-strategy", target,
                 "Strategy file of the target, or folder of stage files; without it full tensors "
                 "are written, for one rank")
      ->type_name("D");
}

CLI::Option* AddSuffixOption(CLI::App& app, std::string& suffix) {
  return app
      .add_option("--suffix", suffix,
                  "Take the checkpoints that end in -EPOCH_STEP, as in --suffix=-1_100; without it "
                  "the latest")
      ->type_name("-E_S");
}

CLI::Option* AddSourceFilesOption(CLI::App& app, std::map<int64_t, std::string>& files) {
  const auto set = [&files](const std::vector<std::string>& entries) {
    for (const std::string& entry : entries) {
      const size_t equals = entry.find('=');
      std::string digits = entry.substr(0, equals);
      const CLI::Validator whole_number = WholeNumber();
      if (equals == std::string::npos || equals + 1 == entry.size() ||
          !whole_number(digits).empty()) {
        throw CLI::ValidationError(
            kName, fmt::format("has to be RANK=FILE, as in 3=rank_3/net-1_100.ckpt; found {}",
                               PrintableName(entry)));
      }
      const auto [place, added] = files.emplace(std::stoll(digits), entry.substr(equals + 1));
      if (!added) {
        throw CLI::ValidationError(kName, fmt::format("rank {} is given twice, as {} and as {}",
                                                      place->first, PrintableName(place->second),
                                                      PrintableName(entry.substr(equals + 1))));
      }
    }
  };
  return app
      .add_option_function<std::vector<std::string>>(
          kName, set,
          "In place of SRC the file of source rank RANK; may be given several times. With --rank "
          "those that the target ranks need will do")
      ->type_name("RANK=FILE")
      ->allow_extra_args(false);
}

CLI::Option* AddGroupInfoOption(CLI::App& app, std::vector<std::string>& paths) {
  return app
      .add_option("--group-info", paths,
                  "File group_info.pb of the training run, or pattern with {rank}: ranks of one "
                  "list stand in for each other; may be given several times")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

nlohmann::ordered_json SourceAsJson(const std::string& source,
                                    const std::map<int64_t, std::string>& files) {
  if (files.empty()) return source;
  nlohmann::ordered_json by_rank = nlohmann::ordered_json::object();
  for (const auto& [rank, path] : files) by_rank[std::to_string(rank)] = path;
  return by_rank;
}

std::vector<CLI::Option*> ChoiceOptions::AddTo(CLI::App& app) {
  return {app.add_option("--include", include_,
                         "Only parameters whose names in the source match a GLOB; may be given "
                         "several times")
              ->type_name("GLOB")
              ->allow_extra_args(false),
          app.add_option("--exclude", exclude_,
                         "And of those none that match a GLOB; may be given several times")
              ->type_name("GLOB")
              ->allow_extra_args(false),
          app.add_option("--rename", rename_file_,
                         "Names in the target: a JSON object {\"old name\": \"new name\", ...}")
              ->type_name("MAP.json")};
}

void NameFilter::AddTo(CLI::App& app) {
  app.add_option("--include,--filter", include_,
                 "Only parameters whose names match a GLOB; may be given several times")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  app.add_option("--exclude", exclude_,
                 "And of those none that match a GLOB; may be given several times")
      ->type_name("GLOB")
      ->allow_extra_args(false);
}

bool NameFilter::Takes(std::string_view name) const {
  const auto matches = [name](const std::string& pattern) { return GlobMatch(pattern, name); };
  return (include_.empty() || std::any_of(include_.begin(), include_.end(), matches)) &&
         std::none_of(exclude_.begin(), exclude_.end(), matches);
}

Warning NameFilter::NothingTaken() const {
  std::string message;
  if (include_.empty()) {
    message = "--exclude leaves out every parameter";
  } else if (include_.size() > 1 || !exclude_.empty()) {
    message =
        "--include and --exclude leave no parameter; a pattern has to match a whole name, as "
        "*head* does";
  } else {
    message = fmt::format(
        "--include matches no parameter: \"{}\"; a pattern has to match a whole name, as *head* "
        "does",
        PrintableName(include_.front()));
  }
  return {WarningCode::kUnusedPatterns, std::move(message)};
}

std::string WrittenFilesText(const std::vector<WrittenFile>& files) {
  Table table({{""}, {"", Align::kRight}});
  for (const WrittenFile& file : files) {
    table.AddRow({PrintableName(file.path), FormatBytes(file.size)});
  }
  return "files written:\n" + table.ToText();
}

std::string ChoiceText(uint64_t left_out, uint64_t renamed) {
  if (left_out == 0 && renamed == 0) return "";
  if (left_out == 0) return FormatCount(renamed, "parameter") + " renamed";
  std::string text = FormatCount(left_out, "parameter") + " left out";
  if (renamed > 0) text += fmt::format(", {} renamed", renamed);
  return text;
}

CLI::Option* AddUnmatchedOption(CLI::App& app, std::optional<UnmatchedPolicy>& policy) {
  const auto set = [&policy](const std::string& word) {
    policy = word == "drop"    ? UnmatchedPolicy::kDrop
             : word == "error" ? UnmatchedPolicy::kError
                               : UnmatchedPolicy::kCopy;
  };
  return app
      .add_option_function<std::string>(
          "--unmatched", set,
          "What becomes of parameters in only one of two given strategies (copy); error refuses "
          "tensors that have no layout at all, too; copy given explicitly allows names that do not "
          "fit the strategy")
      ->type_name("copy|drop|error")
      ->check(CLI::IsMember({"copy", "drop", "error"}).description(""));
}

CLI::Option* AddWaitOption(CLI::App& app, LockWaiting& waiting) {
  constexpr size_t kMostDigits = 9;
  waiting.report = [](const Waiting& so_far) {
    PrintWarnings(
        {{WarningCode::kWaiting,
          fmt::format("waiting for {}, which holds {}, for {} s so far",
                      so_far.holder.empty() ? "another process" : so_far.holder,
                      PrintableName(so_far.lock),
                      std::chrono::duration_cast<std::chrono::seconds>(so_far.time).count())}});
  };
  return app
      .add_option_function<int64_t>(
          "--wait", [&waiting](int64_t seconds) { waiting.most = std::chrono::seconds(seconds); },
          "Wait at most so long for a process that stands still or publishes; then exit 6 "
          "(for ever)")
      ->type_name("SECONDS")
      ->transform(WholeNumber(kMostDigits));
}

}  // namespace reshard
