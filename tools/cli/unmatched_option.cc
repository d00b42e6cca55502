#include "tools/cli/unmatched_option.h"

#include <string>

namespace reshard {

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

}  // namespace reshard
