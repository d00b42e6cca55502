#include "tools/cli/wait_option.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>

#include "tools/cli/command.h"
#include "tools/cli/messages.h"
#include "tools/cli/printable.h"

namespace reshard {

CLI::Option* AddWaitOption(CLI::App& app, LockWaiting& waiting) {
  constexpr size_t kMostDigits = 9;
  waiting.report = [](const Waiting& so_far) {
    PrintWarnings({fmt::format(
        "waiting for {}, which holds {}, for {} s so far",
        so_far.holder.empty() ? "another process" : so_far.holder, PrintableName(so_far.lock),
        std::chrono::duration_cast<std::chrono::seconds>(so_far.time).count())});
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
