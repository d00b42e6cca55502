#include "tools/cli/progress_output.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "tools/cli/messages.h"
#include "tools/cli/text_format.h"

namespace reshard {
namespace {

constexpr std::chrono::milliseconds kLineInterval{100};
constexpr std::chrono::milliseconds kStatusInterval{1000};

// Seconds, as far as there is anything to tell them from.
std::optional<double> TimeLeft(const Progress& progress, double seconds) {
  if (seconds <= 0 || progress.done_bytes == 0 || progress.done_bytes > progress.total_bytes) {
    return std::nullopt;
  }
  return seconds * static_cast<double>(progress.total_bytes - progress.done_bytes) /
         static_cast<double>(progress.done_bytes);
}

void ShowLine(const Progress& progress, double seconds, std::optional<double> left) {
  std::string line = fmt::format("reshard: {} of {}", FormatBytes(progress.done_bytes),
                                 FormatBytes(progress.total_bytes));
  if (left) {
    line +=
        fmt::format(", {}, {} left", FormatRate(progress.done_bytes, seconds), FormatClock(*left));
  }
  PrintProgressLine(line);
}

void PrintStatus(const Progress& progress, double seconds, std::optional<double> left) {
  const double done = progress.total_bytes == 0 ? 1.0
                                                : static_cast<double>(progress.done_bytes) /
                                                      static_cast<double>(progress.total_bytes);
  nlohmann::ordered_json remaining = nullptr;
  if (left) remaining = *left;
  PrintJsonLine("status", {{"percent_done", 100 * done},
                           {"bytes_done", progress.done_bytes},
                           {"total_bytes", progress.total_bytes},
                           {"seconds_elapsed", seconds},
                           {"seconds_remaining", remaining}});
}

}  // namespace

ProgressOutput::~ProgressOutput() {
  if (shown_ && style_ == ProgressStyle::kLine) PrintProgressLine("");
}

void ProgressOutput::Update(const Progress& progress) {
  const Clock::time_point now = Clock::now();
  if (!shown_) start_ = now;
  const bool line = style_ == ProgressStyle::kLine;
  if (shown_ && now - last_shown_ < (line ? kLineInterval : kStatusInterval)) return;
  shown_ = true;
  last_shown_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const std::optional<double> left = TimeLeft(progress, seconds);
  if (line) {
    ShowLine(progress, seconds, left);
  } else {
    PrintStatus(progress, seconds, left);
  }
}

}  // namespace reshard
