#include "tools/cli/progress_line.h"

#include <fmt/format.h>

#include <string>

#include "tools/cli/messages.h"
#include "tools/cli/text_format.h"

namespace reshard {
namespace {

constexpr std::chrono::milliseconds kInterval{100};

}  // namespace

ProgressLine::~ProgressLine() {
  if (shown_) PrintProgressLine("");
}

void ProgressLine::Update(const Progress& progress) {
  const Clock::time_point now = Clock::now();
  if (!shown_) start_ = now;
  if (shown_ && now - last_shown_ < kInterval) return;
  shown_ = true;
  last_shown_ = now;
  std::string line = fmt::format("reshard: {} of {}", FormatBytes(progress.done_bytes),
                                 FormatBytes(progress.total_bytes));
  const double seconds = std::chrono::duration<double>(now - start_).count();
  if (seconds > 0 && progress.done_bytes > 0 && progress.done_bytes <= progress.total_bytes) {
    const double left = seconds * static_cast<double>(progress.total_bytes - progress.done_bytes) /
                        static_cast<double>(progress.done_bytes);
    line +=
        fmt::format(", {}, {} left", FormatRate(progress.done_bytes, seconds), FormatClock(left));
  }
  PrintProgressLine(line);
}

}  // namespace reshard
