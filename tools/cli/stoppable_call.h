// Calls of the library that take long.
#ifndef RESHARD_TOOLS_CLI_STOPPABLE_CALL_H_
#define RESHARD_TOOLS_CLI_STOPPABLE_CALL_H_

#include <optional>

#include "reshard/progress.h"
#include "tools/cli/progress_line.h"
#include "tools/cli/stop_on_signal.h"
#include "tools/cli/terminal.h"

namespace reshard {

// Returns call(options), which a signal stops, with a progress line where `quiet` is not set and
// stderr is a terminal; it is gone when this returns.
template <typename Options, typename Call>
auto CallStoppable(Options options, bool quiet, Call call) {
  const StopOnSignal stop;
  options.stop = stop.token();
  std::optional<ProgressLine> line;
  if (!quiet && StderrIsTerminal()) {
    line.emplace();
    options.progress = [&line](const Progress& progress) { line->Update(progress); };
  }
  return call(options);
}

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_STOPPABLE_CALL_H_
