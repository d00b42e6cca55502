#include "src/io/shared_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "src/base/status_macros.h"
#include "src/os/threads.h"

namespace reshard {

Status ForEachPiece(std::span<const uint64_t> sizes, uint64_t piece_bytes, const SharedWork& work,
                    const PieceTask& task) {
  std::vector<uint64_t> ends;  // the number of the piece behind the last one of each thing
  uint64_t count = 0;
  for (const uint64_t size : sizes) {
    count += size / piece_bytes + (size % piece_bytes == 0 ? 0 : 1);
    ends.push_back(count);
  }
  const auto do_piece = [&](size_t number, const std::stop_token& stop) {
    const auto end = std::upper_bound(ends.begin(), ends.end(), number);
    const auto index = static_cast<size_t>(end - ends.begin());
    const uint64_t offset = (number - (index == 0 ? 0 : ends[index - 1])) * piece_bytes;
    return task(index, {offset, std::min(piece_bytes, sizes[index] - offset)}, stop);
  };
  return RunWorkers(work.workers, count, do_piece, work.stop);
}

Status InSteps(ByteRange piece, uint64_t step_bytes, const std::stop_token& stop,
               const std::function<void(uint64_t)>& progress,
               const std::function<Status(ByteRange)>& step) {
  for (uint64_t offset = piece.offset; offset < piece.end();) {
    if (stop.stop_requested()) return CancelledError("stopped on request");
    const uint64_t length = std::min(step_bytes - offset % step_bytes, piece.end() - offset);
    RESHARD_RETURN_IF_ERROR(step({offset, length}));
    if (progress) progress(length);
    offset += length;
  }
  return {};
}

Status CheckJobs(int jobs) {
  if (jobs >= 0) return {};
  return InvalidArgumentError(fmt::format("{} jobs; 0 stands for all cores", jobs));
}

size_t Workers(int jobs) {
  return jobs == 0 ? std::max<size_t>(1, std::thread::hardware_concurrency())
                   : static_cast<size_t>(jobs);
}

CountedWork::CountedWork(const RunOptions& run, const Progress& all)
    : report_(run.progress), sum_(all) {
  work_.workers = Workers(run.jobs);
  work_.stop = run.stop;
  if (!report_) return;
  work_.progress = [this](uint64_t bytes) {
    const std::scoped_lock lock(mutex_);
    sum_.done_bytes += bytes;
    report_(sum_);
  };
  work_.file_done = [this] {
    const std::scoped_lock lock(mutex_);
    ++sum_.done_files;
    report_(sum_);
  };
}

void CountedWork::Enter(Progress::Phase phase) const {
  if (!report_) return;
  const std::scoped_lock lock(mutex_);
  sum_.phase = phase;
  report_(sum_);
}

}  // namespace reshard
