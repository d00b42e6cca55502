#include "tools/cli/source_options.h"

#include <fmt/format.h>

#include <string_view>

#include "tools/cli/command.h"
#include "tools/cli/printable.h"

namespace reshard {
namespace {

constexpr const char* kName = "--source";

}  // namespace

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

}  // namespace reshard
