#include "src/convert/progress_recorder.h"

#include <algorithm>

#include "src/job/progress_record.h"

namespace reshard {
namespace {

ProgressRecorder::Clock::duration IntervalOf(const std::optional<WorkerShare>& worker) {
  return ProgressInterval(worker ? worker->count : 1);
}

}  // namespace

ProgressRecorder::ProgressRecorder(const Job& job, const std::optional<WorkerShare>& worker,
                                   const Share& share)
    : job_(job), worker_(worker), share_(share), interval_(IntervalOf(worker)) {}

void ProgressRecorder::Update(const Progress& progress) {
  const Clock::time_point now = Clock::now();
  const bool begins = phase_ != progress.phase;
  if (begins && progress.phase == Progress::Phase::kWrite) {
    write_begin_ = now;
    checked_bytes_ = progress.done_bytes;
  }
  phase_ = progress.phase;
  if (!begins && now - last_ < interval_) return;
  last_ = now;
  ProgressRecord record;
  record.phase = progress.phase;
  record.bytes_before = std::min(share_.bytes_before, share_.bytes);
  record.bytes_done = record.bytes_before;
  record.bytes_total = share_.bytes;
  record.parts_total = share_.parts;
  record.parts_done = std::min(share_.parts_before + progress.done_files, share_.parts);
  if (progress.phase != Progress::Phase::kCheck) {
    const uint64_t passed = progress.done_bytes - checked_bytes_;
    const uint64_t written = passed - std::min<uint64_t>(passed, kept_);
    record.bytes_done += std::min(written, record.bytes_total - record.bytes_before);
    record.write_ms = static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(now - write_begin_).count());
  }
  job_.LeaveProgress(worker_, record);
}

}  // namespace reshard
