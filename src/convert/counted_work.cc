#include "src/convert/counted_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace reshard {

Status CheckJobs(int jobs) {
  if (jobs >= 0) return {};
  return InvalidArgumentError(fmt::format("{} jobs; 0 stands for all cores", jobs));
}

size_t Workers(int jobs) {
  return jobs == 0 ? std::max<size_t>(1, std::thread::hardware_concurrency())
                   : static_cast<size_t>(jobs);
}

CountedWork::CountedWork(int jobs, const std::stop_token& stop,
                         const std::function<void(const Progress&)>& progress, uint64_t total_bytes)
    : sum_{0, total_bytes} {
  work_.workers = Workers(jobs);
  work_.stop = stop;
  if (!progress) return;
  work_.progress = [this, &progress](uint64_t bytes) {
    const std::scoped_lock lock(mutex_);
    sum_.done_bytes += bytes;
    progress(sum_);
  };
}

}  // namespace reshard
