// convert_checkpoint SOURCE TARGET SOURCE_STRATEGY TARGET_STRATEGY [SECONDS]: converts, says how
// far it is and what was written. After SECONDS it is cancelled: then the target is as it was.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <thread>

#include "reshard/convert.h"

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) return 2;
  reshard::ConvertOptions options;
  options.source.path = argv[1];
  options.target.folder = argv[2];
  options.source.strategy = argv[3];
  options.target.strategy = argv[4];
  // Called from the threads of the call, one call at a time.
  options.run.progress = [](const reshard::Progress& progress) {
    std::fprintf(stderr, "\r%-7s %llu of %llu bytes", reshard::PhaseName(progress.phase).data(),
                 static_cast<unsigned long long>(progress.done_bytes),
                 static_cast<unsigned long long>(progress.total_bytes));
  };
  std::stop_source stop;
  options.run.stop = stop.get_token();
  std::jthread timer;  // any thread may ask the call to stop
  if (argc == 6) {
    const std::chrono::duration<double> time(std::atof(argv[5]));
    if (time.count() <= 0) stop.request_stop();
    timer = std::jthread([&stop, time](const std::stop_token& done) {
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any ended;
      ended.wait_for(lock, done, time, [] { return false; });
      if (!done.stop_requested()) stop.request_stop();
    });
  }

  const auto report = reshard::Convert(options);
  if (!report.ok()) {
    const reshard::Status status = report.status();
    std::fprintf(stderr, "\n%s\n", status.message().c_str());
    return reshard::ExitCode(status.code());
  }
  std::fprintf(stderr, "\n");
  for (const reshard::Warning& warning : report->warnings) {
    std::fprintf(stderr, "warning: %s\n", warning.message.c_str());
  }
  for (const reshard::ConvertReport::File& file : report->files) {
    std::printf("%s\n", file.path.c_str());
  }
  return 0;
}
