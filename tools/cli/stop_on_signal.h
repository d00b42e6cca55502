// StopOnSignal: SIGINT and SIGTERM as a stop request.
#ifndef RESHARD_TOOLS_CLI_STOP_ON_SIGNAL_H_
#define RESHARD_TOOLS_CLI_STOP_ON_SIGNAL_H_

#include <stop_token>
#include <thread>

namespace reshard {

// While it lives, the first SIGINT or SIGTERM requests a stop; the second of a kind ends the
// process as if nobody listened, which a conversion survives (its target is then unfinished or
// untouched). A signal that was ignored before (nohup, a shell's background job) stays ignored. At
// most one at a time in a process; not movable.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread waiter_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_STOP_ON_SIGNAL_H_
