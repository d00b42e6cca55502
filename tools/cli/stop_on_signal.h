// StopOnSignal: SIGINT, SIGTERM and SIGHUP as a stop request, and calls that they stop.
#ifndef RESHARD_TOOLS_CLI_STOP_ON_SIGNAL_H_
#define RESHARD_TOOLS_CLI_STOP_ON_SIGNAL_H_

#include <atomic>
#include <chrono>
#include <csignal>
#include <stop_token>
#include <thread>

#include "reshard/options.h"
#include "tools/cli/messages.h"

namespace reshard {

// While it lives, the first such signal requests a stop. If the call has not returned kGrace later,
// because a read takes long, the process ends with kExitCode and writes no more. The second signal
// of a kind has its default action. A conversion survives both as it survives kill -9: its
// target is then unfinished or untouched. A signal that was ignored before (nohup, a shell's
// background job) stays ignored. At most one object at a time in a process; not movable.
class StopOnSignal {
 public:
  static constexpr std::chrono::milliseconds kGrace{900};  // so that it takes no second in all
  static constexpr int kExitCode = 130;                    // of kCancelled

  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  std::stop_token token() const { return source_.get_token(); }

 private:
  void Wait();

  std::stop_source source_;
  // Of the thread before. It and its threads have the signals blocked. Otherwise the kernel might
  // give a signal to a thread that waits for a disk and cannot handle it meanwhile.
  sigset_t mask_ = {};
  std::atomic<bool> ending_ = false;
  std::jthread waiter_;
};

// Returns call(options), which a signal stops, with its progress in that style; a progress line is
// gone when this returns.
template <typename Options, typename Call>
auto CallStoppable(Options options, ProgressStyle style, Call call) {
  const StopOnSignal stop;
  options.run.stop = stop.token();
  ProgressOutput output(style);
  if (style != ProgressStyle::kNone) {
    options.run.progress = [&output](const Progress& progress) { output.Update(progress); };
  }
  return call(options);
}

// CallStoppable for a command: prints the report's warnings and returns finish(report, seconds), or
// prints the error. Returns the exit code.
template <typename Options, typename Call, typename Finish>
int RunStoppable(const Options& options, ProgressStyle style, Call call, Finish finish) {
  const auto start = std::chrono::steady_clock::now();
  const auto report = CallStoppable(options, style, call);
  if (!report.ok()) return Fail(report.status());
  PrintWarnings(report->warnings);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return finish(*report, seconds.count());
}

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_STOP_ON_SIGNAL_H_
