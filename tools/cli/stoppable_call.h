// Calls of the library that take long.
#ifndef RESHARD_TOOLS_CLI_STOPPABLE_CALL_H_
#define RESHARD_TOOLS_CLI_STOPPABLE_CALL_H_

#include <utility>

#include "reshard/progress.h"
#include "tools/cli/progress_output.h"
#include "tools/cli/stop_on_signal.h"
#include "tools/cli/terminal.h"

namespace reshard {

// Returns call(options), which a signal stops, with its progress in that style; a progress line is
// gone when this returns.
template <typename Options, typename Call>
auto CallStoppable(Options options, ProgressStyle style, Call call) {
  const StopOnSignal stop;
  options.stop = stop.token();
  ProgressOutput output(style);
  if (style != ProgressStyle::kNone) {
    options.progress = [&output](const Progress& progress) { output.Update(progress); };
  }
  return call(options);
}

// As above, with a progress line where `quiet` is not set and stderr is a terminal.
template <typename Options, typename Call>
auto CallStoppable(Options options, bool quiet, Call call) {
  const bool shown = !quiet && StderrIsTerminal();
  return CallStoppable(std::move(options), shown ? ProgressStyle::kLine : ProgressStyle::kNone,
                       call);
}

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_STOPPABLE_CALL_H_
