// RunWatched: a long call of the library, which Ctrl-C and exceptions of callbacks stop.
#ifndef RESHARD_PYTHON_WATCHED_CALL_H_
#define RESHARD_PYTHON_WATCHED_CALL_H_

#include <nanobind/nanobind.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "python/src/module.h"
#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard::python {

// Runs `call`, which takes RunOptions, in a thread of its own. The calling thread, which alone
// touches Python, waits without the GIL. Every 100 ms and at the end it looks for signals and calls
// `watch(phase, done bytes, total bytes, done files, total files)`. What that or a signal's handler
// raises stops the call and is raised once it has ended. Called with the GIL held.
template <typename Call>
auto RunWatched(int jobs, const nanobind::object& watch, const Call& call) {
  using Outcome = decltype(call(std::declval<const RunOptions&>()));
  std::mutex mutex;
  std::condition_variable ended;
  Progress latest;
  std::optional<Outcome> outcome;  // guarded by `mutex`, as is `latest`
  std::exception_ptr raised;
  {
    std::jthread worker([&](const std::stop_token& stop) {
      const RunOptions run{jobs, stop, [&](const Progress& progress) {
                             const std::lock_guard lock(mutex);
                             latest = progress;
                           }};
      Outcome result = call(run);
      const std::lock_guard lock(mutex);
      outcome.emplace(std::move(result));
      ended.notify_one();
    });
    for (bool done = false; !done;) {
      Progress now;
      {
        const nanobind::gil_scoped_release released;
        std::unique_lock lock(mutex);
        ended.wait_for(lock, std::chrono::milliseconds(100), [&] { return outcome.has_value(); });
        done = outcome.has_value();
        now = latest;
      }
      if (raised) continue;
      try {
        if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
        watch(Text(PhaseName(now.phase)), now.done_bytes, now.total_bytes, now.done_files,
              now.total_files);
      } catch (...) {
        raised = std::current_exception();
        worker.request_stop();
      }
    }
  }
  if (raised) std::rethrow_exception(raised);
  return Take(*std::move(outcome));
}

}  // namespace reshard::python

#endif  // RESHARD_PYTHON_WATCHED_CALL_H_
