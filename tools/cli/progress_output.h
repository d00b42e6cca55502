// ProgressOutput: how far a call is, on one line of the terminal or as JSON lines.
#ifndef RESHARD_TOOLS_CLI_PROGRESS_OUTPUT_H_
#define RESHARD_TOOLS_CLI_PROGRESS_OUTPUT_H_

#include <chrono>

#include "reshard/progress.h"

namespace reshard {

enum class ProgressStyle {
  kNone,
  kLine,       // on stderr: bytes, rate and time left; at most 10 times a second
  kJsonLines,  // on stdout: a `status` at most once a second
};

// The destructor clears the line. Update calls must not overlap; they may come from different
// threads.
class ProgressOutput {
 public:
  explicit ProgressOutput(ProgressStyle style) : style_(style) {}
  ~ProgressOutput();
  ProgressOutput(const ProgressOutput&) = delete;
  ProgressOutput& operator=(const ProgressOutput&) = delete;

  void Update(const Progress& progress);

 private:
  using Clock = std::chrono::steady_clock;

  const ProgressStyle style_;
  bool shown_ = false;
  Clock::time_point start_;  // of the first update
  Clock::time_point last_shown_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_PROGRESS_OUTPUT_H_
