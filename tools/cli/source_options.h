// Options on where the source is: --source RANK=FILE, which names the file of a rank, and
// --group-info FILE.
#ifndef RESHARD_TOOLS_CLI_SOURCE_OPTIONS_H_
#define RESHARD_TOOLS_CLI_SOURCE_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace reshard {

// Adds it; it may be given several times, each rank once. `app` keeps a pointer to `files`.
CLI::Option* AddSourceFilesOption(CLI::App& app, std::map<int64_t, std::string>& files);

// Adds --group-info FILE, which may be given several times. `app` keeps a pointer to `paths`.
CLI::Option* AddGroupInfoOption(CLI::App& app, std::vector<std::string>& paths);

// Returns the path of the source, or where it is named by files, an object of them by rank.
nlohmann::ordered_json SourceAsJson(const std::string& source,
                                    const std::map<int64_t, std::string>& files);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_SOURCE_OPTIONS_H_
