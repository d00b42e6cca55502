// Calls of the library that take long.
#ifndef RESHARD_TOOLS_CLI_STOPPABLE_CALL_H_
#define RESHARD_TOOLS_CLI_STOPPABLE_CALL_H_

#include "reshard/progress.h"
#include "tools/cli/progress_output.h"
#include "tools/cli/stop_on_signal.h"

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

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_STOPPABLE_CALL_H_
