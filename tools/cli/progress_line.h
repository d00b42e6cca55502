// ProgressLine: how far a conversion is, on one line of the terminal.
#ifndef RESHARD_TOOLS_CLI_PROGRESS_LINE_H_
#define RESHARD_TOOLS_CLI_PROGRESS_LINE_H_

#include <chrono>

#include "reshard/progress.h"

namespace reshard {

// Bytes, rate and time left, written at most 10 times a second; the destructor clears the line.
// Update calls must not overlap; they may come from different threads.
class ProgressLine {
 public:
  ProgressLine() = default;
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Update(const Progress& progress);

 private:
  using Clock = std::chrono::steady_clock;

  bool shown_ = false;
  Clock::time_point start_;  // of the first update
  Clock::time_point last_shown_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_PROGRESS_LINE_H_
