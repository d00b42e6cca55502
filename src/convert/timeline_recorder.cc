#include "src/convert/timeline_recorder.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace reshard {

double TimelineRecorder::Seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void TimelineRecorder::Begin(std::string_view phase) {
  if (!record_) return;
  const double now = timeline_.phases.empty() ? 0 : Seconds();
  if (!timeline_.phases.empty()) timeline_.phases.back().end_seconds = now;
  timeline_.phases.push_back({std::string(phase), now, now});
}

void TimelineRecorder::AddWritten(uint64_t bytes, uint64_t gathered, uint64_t read,
                                  uint64_t memory) {
  if (!record_) return;
  const std::scoped_lock lock(mutex_);
  written_ += bytes;
  std::vector<ConvertReport::Timeline::Sample>& samples = timeline_.samples;
  // Others may have asked earlier, and come later.
  gathered_ = std::max(gathered_, gathered);
  read_ = std::max(read_, read);
  latest_ = ConvertReport::Timeline::Sample{Seconds(), read_, gathered_, written_, memory};
  if (!samples.empty() && latest_->seconds - samples.back().seconds < interval_) return;
  samples.push_back(*std::exchange(latest_, std::nullopt));
  if (samples.size() >= kMostTimelineSamples) Thin();
}

void TimelineRecorder::Mark(uint64_t memory) {
  if (!record_) return;
  if (timeline_.samples.size() + 2 > kMostTimelineSamples) Thin();
  if (latest_) timeline_.samples.push_back(*std::exchange(latest_, std::nullopt));
  timeline_.samples.push_back({Seconds(), read_, gathered_, written_, memory});
}

void TimelineRecorder::Thin() {
  std::vector<ConvertReport::Timeline::Sample> kept;
  for (size_t i = 0; i < timeline_.samples.size(); i += 2) kept.push_back(timeline_.samples[i]);
  timeline_.samples = std::move(kept);
  interval_ *= 2;
}

std::optional<ConvertReport::Timeline> TimelineRecorder::Finish() {
  if (!record_) return std::nullopt;
  if (!timeline_.phases.empty()) timeline_.phases.back().end_seconds = Seconds();
  return std::move(timeline_);
}

}  // namespace reshard
