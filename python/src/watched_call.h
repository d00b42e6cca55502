// RunWatched: a long call of the library, which Ctrl-C and exceptions of callbacks stop.
#ifndef RESHARD_PYTHON_WATCHED_CALL_H_
#define RESHARD_PYTHON_WATCHED_CALL_H_

#include <nanobind/nanobind.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "python/src/interpreter.h"
#include "python/src/module.h"
#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard::python {

// Gives the options of a call the members that RunWatched sets. The others are keywords.
inline void SetWatched(RunOptions& options, const RunOptions& run) {
  options.jobs = run.jobs;
  options.stop = run.stop;
  options.progress = run.progress;
}

// Runs `call`, which takes RunOptions, in a thread of its own. The calling thread, which alone
// touches Python, waits without the GIL. Every 100 ms and at the end it looks for signals and calls
// `watch(phase, done bytes, total bytes, done files, total files)`. An exception of `watch` or of a
// signal's handler stops the call, and is raised once it has ended. If one of them forks, the call
// goes on in the parent, and in the child it ends with kCancelled. Called with the GIL held.
template <typename Call>
auto RunWatched(int jobs, const nanobind::object& watch, const Call& call) {
  struct Run {
    std::mutex mutex;
    std::condition_variable ended;
    Progress latest;  // guarded by `mutex`, as is `outcome`
    std::optional<decltype(call(std::declval<const RunOptions&>()))> outcome;
    std::jthread worker;
  };
  const uint64_t forks = fork_count;
  auto run = std::make_unique<Run>();
  std::exception_ptr raised;
  run->worker = std::jthread([&call, jobs, &run = *run](const std::stop_token& stop) {
    const RunOptions options{jobs, stop, [&run](const Progress& progress) {
                               const std::lock_guard lock(run.mutex);
                               run.latest = progress;
                             }};
    auto result = call(options);
    const std::lock_guard lock(run.mutex);
    run.outcome.emplace(std::move(result));
    run.ended.notify_one();
  });
  for (bool done = false; !done;) {
    Progress now;
    {
      const WithoutGil released;
      std::unique_lock lock(run->mutex);
      run->ended.wait_for(lock, std::chrono::milliseconds(100),
                          [&run] { return run->outcome.has_value(); });
      done = run->outcome.has_value();
      now = run->latest;
    }
    if (raised) continue;
    try {
      if (HeldCheckSignals() != 0) throw nanobind::python_error();
      CallPython(watch, nanobind::make_tuple(Text(PhaseName(now.phase)), now.done_bytes,
                                             now.total_bytes, now.done_files, now.total_files));
    } catch (...) {
      raised = std::current_exception();
    }
    if (fork_count != forks) {
      // The worker is not in this process. Its locks may be held, so the state is left as it is.
      static_cast<void>(run.release());
      if (raised) std::rethrow_exception(raised);
      throw StatusError(CancelledError(
          "the process was forked while this call ran; it goes on in the parent, not here"));
    }
    if (raised) run->worker.request_stop();
  }
  run->worker.join();
  if (raised) std::rethrow_exception(raised);
  return Take(*std::move(run->outcome));
}

}  // namespace reshard::python

#endif  // RESHARD_PYTHON_WATCHED_CALL_H_
