#include "tools/cli/strategy_options.h"

namespace reshard {

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

}  // namespace reshard
