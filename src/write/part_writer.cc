#include "src/write/part_writer.h"

#include <vector>

#include "src/base/status_macros.h"
#include "src/os/thread.h"
#include "src/write/chunk_feed.h"
#include "src/write/chunk_lane.h"

namespace reshard {

Status WriteParts(SourceFiles& files, const PartWork& work, const LaneOptions& options,
                  const std::stop_token& stop) {
  if (stop.stop_requested()) return CancelledError("stopped on request");
  ChunkFeed feed(work, options);
  std::vector<std::unique_ptr<ChunkLane>> lanes;
  for (size_t i = 0; i < options.lanes; ++i) {
    lanes.push_back(std::make_unique<ChunkLane>(files, work, feed, options));
  }
  {
    const std::stop_callback cancel(stop, [&feed] { feed.Cancel(); });
    std::vector<Thread> threads;
    threads.reserve(lanes.size());
    for (size_t i = 1; i < lanes.size(); ++i) {
      auto thread = Thread::Start([lane = lanes[i].get()] { lane->Run(); });
      if (!thread.ok()) break;  // those there are do the same work
      threads.push_back(std::move(*thread));
    }
    lanes[0]->Run();
    for (Thread& thread : threads) thread.Join();
  }
  return feed.TakeFailure();
}

}  // namespace reshard
