// Timeline: how a run went: its phases, and what it had read, gathered and written at moments of
// it.
//
// Plain values. Recorded where ConvertOptions::record_timeline asks for it.
//
// Implemented in src/convert (header only).
#ifndef RESHARD_TIMELINE_H_
#define RESHARD_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace reshard {

// The most samples of a timeline: those of a long run are farther apart.
inline constexpr size_t kMostTimelineSamples = 512;

// Times are seconds since the call began. Bytes are sums from the beginning on.
struct TimelineSample {
  double seconds = 0;
  uint64_t bytes_read = 0;      // of the sources, brought into windows
  uint64_t bytes_gathered = 0;  // of the targets, put together in memory
  uint64_t bytes_written = 0;   // of the targets, given to the system
  uint64_t memory = 0;          // held at the moment, as ConvertReport::memory_peak counts
};

// "plan", "check", "write" or "publish".
struct TimelinePhase {
  std::string name;
  double begin_seconds = 0;
  double end_seconds = 0;
};

struct Timeline {
  std::vector<TimelinePhase> phases;    // in order, without gaps
  std::vector<TimelineSample> samples;  // in order
};

}  // namespace reshard

#endif  // RESHARD_TIMELINE_H_
