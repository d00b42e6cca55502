#include "tools/cli/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "src/frontend/report_fields.h"
#include "tools/cli/messages.h"
#include "tools/cli/stop_on_signal.h"
#include "tools/page/text_format.h"

namespace reshard {
namespace {

using State = StatusReport::State;
using Worker = StatusReport::Worker;

constexpr size_t kMostSingle = 8;  // of single workers of a state
constexpr size_t kWidestNumbers = 32;

int ExitCodeOf(State state) {
  switch (state) {
    case State::kPublished:
      return 0;
    case State::kRunning:
      return 1;
    case State::kNeedsAttention:
      break;
  }
  return 3;
}

int Percent(uint64_t done, uint64_t total) {
  return total == 0
             ? 100
             : static_cast<int>(100 * static_cast<double>(done) / static_cast<double>(total));
}

// "1.0 GiB of 3.0 GiB"
std::string BytesText(uint64_t done, uint64_t total) {
  return fmt::format("{} of {}", FormatBytes(done), FormatBytes(total));
}

std::string RateText(double bytes_per_second) {
  return bytes_per_second <= 0 ? "" : FormatRate(static_cast<uint64_t>(bytes_per_second), 1);
}

std::string LeftText(const std::optional<double>& seconds) {
  return seconds ? FormatClock(*seconds) : "";
}

// "34%, 1.0 GiB of 3.0 GiB, 2 of 8 files, 512.0 MiB/s, 0:04 left"
std::string AmountText(const StatusReport& report) {
  std::string text =
      fmt::format("{}%, {}, {} of {}", Percent(report.bytes_done, report.total_bytes),
                  BytesText(report.bytes_done, report.total_bytes), report.files_done,
                  FormatCount(report.total_files, report.alone ? "file" : "part"));
  if (report.bytes_per_second > 0) text += ", " + RateText(report.bytes_per_second);
  if (report.seconds_left) text += fmt::format(", {} left", FormatClock(*report.seconds_left));
  return text;
}

std::vector<const Worker*> WorkersOf(const StatusReport& report, Worker::State state) {
  std::vector<const Worker*> found;
  for (const Worker& worker : report.workers) {
    if (worker.state == state) found.push_back(&worker);
  }
  return found;
}

// "0-7, 9"; if that is long, the first, the last and their number.
std::string NumbersText(const std::vector<const Worker*>& workers) {
  std::vector<int64_t> numbers;
  numbers.reserve(workers.size());
  for (const Worker* worker : workers) numbers.push_back(static_cast<int64_t>(worker->shard.index));
  std::sort(numbers.begin(), numbers.end());
  std::string text = FormatRanks(numbers);
  if (text.size() <= kWidestNumbers) return text;
  return fmt::format("{}..{} ({})", numbers.front(), numbers.back(), numbers.size());
}

// "5 running, 2 finished, 1 not started"
std::string CountsText(const StatusReport& report) {
  std::vector<std::string> counts;
  for (const Worker::State state : {Worker::State::kFinished, Worker::State::kRunning,
                                    Worker::State::kDead, Worker::State::kNotStarted}) {
    const size_t count = WorkersOf(report, state).size();
    if (count > 0) counts.push_back(fmt::format("{} {}", count, StateName(state)));
  }
  return fmt::format("{}", fmt::join(counts, ", "));
}

// Rows of workers, of which several may share one.
class WorkerTable {
 public:
  WorkerTable()
      : table_({{"SHARE"},
                {"STATE"},
                {"DONE", Align::kRight},
                {"BYTES", Align::kRight},
                {"RATE", Align::kRight},
                {"LEFT", Align::kRight},
                {"PROCESS"}}) {}

  void AddEach(const std::vector<const Worker*>& workers) {
    for (const Worker* worker : workers) {
      std::string state(StateName(worker->state));
      if (worker->phase) state += fmt::format(", {}", PhaseName(*worker->phase));
      table_.AddRow({fmt::format("{}", worker->shard.index), std::move(state),
                     fmt::format("{}%", Percent(worker->bytes_done, worker->total_bytes)),
                     BytesText(worker->bytes_done, worker->total_bytes),
                     RateText(worker->bytes_per_second), LeftText(worker->seconds_left),
                     PrintableName(worker->process)});
    }
  }

  void AddTogether(const std::vector<const Worker*>& workers) {
    if (workers.empty()) return;
    uint64_t done = 0;
    uint64_t total = 0;
    double rate = 0;
    std::optional<double> left;
    for (const Worker* worker : workers) {
      done += worker->bytes_done;
      total += worker->total_bytes;
      rate += worker->bytes_per_second;
      if (worker->seconds_left) left = std::max(left.value_or(0), *worker->seconds_left);
    }
    table_.AddRow({NumbersText(workers), std::string(StateName(workers.front()->state)),
                   fmt::format("{}%", Percent(done, total)), BytesText(done, total), RateText(rate),
                   LeftText(left), ""});
  }

  std::string ToText() const { return table_.ToText(); }

 private:
  Table table_;
};

// The lines that a text takes on the terminal of standard output.
size_t LinesOf(std::string_view text) {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const size_t columns = known ? size.ws_col : std::numeric_limits<size_t>::max();
  size_t lines = 0;
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size());
    lines += length == 0 ? 1 : (length - 1) / columns + 1;
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return lines;
}

// Returns false if it is stopped.
bool Wait(const std::stop_token& stop, std::chrono::seconds time) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any stopped;
  stopped.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

// Returns "ckpt_4: running, 34%, 1.0 GiB of 3.0 GiB, 2 of 8 files, 512.0 MiB/s, 0:04 left" and, of
// several workers, how many there are of each state.
std::string StatusLine(std::string_view target, const StatusReport& report) {
  std::string line = PrintableName(target) + ": ";
  if (report.state == State::kPublished) {
    return line + fmt::format("published, {}, {}", FormatCount(report.total_files, "file"),
                              FormatBytes(report.total_bytes));
  }
  const bool runs = report.state == State::kRunning;
  if (runs && report.workers.empty()) return line + "running, a share is planning";
  line += runs && report.publishing ? "publishing" : std::string(StateName(report.state));
  if (!runs) line += fmt::format(": {}", PrintableText(AsTyped(report.attention)));
  line += (runs ? ", " : "; ") + AmountText(report);
  if (!report.alone) return line + fmt::format("; shares: {}", CountsText(report));
  const Worker& worker = report.workers.front();
  if (runs && !worker.process.empty()) line += "; " + PrintableName(worker.process);
  return line;
}

// Returns a table of the workers. Workers of one state share a row, except for some of those that
// run or are dead. "" for a conversion alone, and for a published set.
std::string WorkersAsText(const StatusReport& report) {
  if (report.alone || report.workers.empty()) return "";
  WorkerTable table;
  table.AddTogether(WorkersOf(report, Worker::State::kFinished));
  // The slowest first; one of which no rate is known counts as slow.
  std::vector<const Worker*> running = WorkersOf(report, Worker::State::kRunning);
  const auto time_of = [](const Worker* worker) {
    return worker->seconds_left.value_or(std::numeric_limits<double>::infinity());
  };
  std::stable_sort(running.begin(), running.end(),
                   [&](const Worker* a, const Worker* b) { return time_of(a) > time_of(b); });
  for (std::vector<const Worker*> workers : {running, WorkersOf(report, Worker::State::kDead)}) {
    const size_t single = std::min(workers.size(), kMostSingle);
    table.AddEach({workers.begin(), workers.begin() + static_cast<ptrdiff_t>(single)});
    table.AddTogether({workers.begin() + static_cast<ptrdiff_t>(single), workers.end()});
  }
  table.AddTogether(WorkersOf(report, Worker::State::kNotStarted));
  return table.ToText();
}

}  // namespace

StatusCommand::StatusCommand(CLI::App& parent)
    : Command(parent, "status",
              "Tell how far a conversion is; exit 1 while it runs, 3 if it needs attention",
              {"reshard status ckpt_4", "reshard status ckpt_4 --watch 10",
               "reshard status ckpt_4 --json"}) {
  constexpr size_t kMostDigits = 6;
  AddPositional(app(), "DST", target_, "Target folder of the conversion");
  app()
      .add_option("--watch", watch_,
                  "Print again every SECONDS until the set is published or needs attention")
      ->type_name("SECONDS")
      ->transform(WholeNumber(kMostDigits))
      ->check(CLI::Validator(
          [](const std::string& seconds) {
            return seconds == "0" ? "has to be 1 or more; found 0" : "";
          },
          ""));
}

Result<StatusReport> StatusCommand::Show(bool is_again) {
  Result<StatusReport> report = FindStatus(target_);
  if (!report.ok()) return report;
  if (!quiet()) PrintNotes(report->notes);
  if (json()) {
    PrintReport(*report, {.place = target_});
    return report;
  }
  // Whoever reads a watch from a pipe gets a line for each time.
  const bool is_screen = StdoutIsTerminal() && StderrIsTerminal();
  std::string text = StatusLine(target_, *report) + '\n';
  if (watch_ == 0 || is_screen) text += WorkersAsText(*report);
  if (is_screen && is_again && report->notes.empty()) {
    PrintData(fmt::format("\x1b[{}A\r\x1b[J", shown_lines_));
  }
  shown_lines_ = LinesOf(text);
  PrintData(text);
  return report;
}

int StatusCommand::Run() {
  const StopOnSignal stop;
  for (bool is_again = false;; is_again = true) {
    const Result<StatusReport> report = Show(is_again);
    if (!report.ok()) return Fail(report.status());
    if (watch_ == 0 || report->state != State::kRunning) return ExitCodeOf(report->state);
    if (const Status written = FinishData(); !written.ok()) return Fail(written);
    if (!Wait(stop.token(), std::chrono::seconds(watch_))) {
      return Fail(CancelledError("stopped on request"));
    }
  }
}

}  // namespace reshard
