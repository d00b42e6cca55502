// TimelineRecorder: takes samples while a conversion runs.
//
// It has no thread: it takes a sample when a chunk was written, and when Mark is called. Has no
// effect if recording is off. Any number of threads may call AddWritten. One thread calls all other
// functions, while no other call is under way.
#ifndef RESHARD_SRC_CONVERT_TIMELINE_RECORDER_H_
#define RESHARD_SRC_CONVERT_TIMELINE_RECORDER_H_

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>

#include "reshard/convert.h"

namespace reshard {

class TimelineRecorder {
 public:
  explicit TimelineRecorder(bool record) : record_(record) {}
  TimelineRecorder(const TimelineRecorder&) = delete;
  TimelineRecorder& operator=(const TimelineRecorder&) = delete;

  bool records() const { return record_; }

  // Ends the phase before, if there is one.
  void Begin(std::string_view phase);

  // Counts written bytes, and takes a sample if it is time. `gathered` and `read` are the sums so
  // far; `memory` is held now.
  void AddWritten(uint64_t bytes, uint64_t gathered, uint64_t read, uint64_t memory);

  // Takes a sample in any case, of the sums so far: so that a run too short for others has some.
  void Mark(uint64_t memory);

  // Ends the last phase. Returns no value if recording is off.
  std::optional<ConvertReport::Timeline> Finish();

 private:
  double Seconds() const;
  // With mutex_ held: keeps every second sample, and takes them half as often.
  void Thin();

  const bool record_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;  // guards the members below
  uint64_t read_ = 0;
  uint64_t gathered_ = 0;
  uint64_t written_ = 0;
  double interval_ = 0.001;
  std::optional<ConvertReport::Timeline::Sample>
      latest_;  // not among the samples: it came too soon
  ConvertReport::Timeline timeline_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_TIMELINE_RECORDER_H_
