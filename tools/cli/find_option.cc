#include "tools/cli/find_option.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace reshard {

const CLI::Option* FindOption(const CLI::App& app, const std::string& name) {
  const std::vector<const CLI::Option*> options = app.get_options();
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&name](const auto* option) { return option->check_name(name); });
  return found == options.end() ? nullptr : *found;
}

CLI::Option* FindOption(CLI::App& app, const std::string& name) {
  return const_cast<CLI::Option*>(FindOption(std::as_const(app), name));
}

}  // namespace reshard
