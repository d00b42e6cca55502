#include "tools/cli/messages.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "tools/cli/json_report.h"
#include "tools/page/text_format.h"

namespace reshard {
namespace {

std::string_view Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

constexpr int kSchemaVersion = 2;

constexpr std::string_view kRed = "\x1b[1;31m";
constexpr std::string_view kYellow = "\x1b[1;33m";

// The requests of the command line for outputs, made once, before the first message.
struct Extras {
  std::string json_lines_command;  // empty: no JSON lines
  std::string document_command;    // empty: errors are in no JSON document
  bool data_printed = false;
  std::string log_path;
  // Set until the log is opened: whether it may be. Lines are kept meanwhile.
  std::function<Status()> log_check;
  std::string kept_lines;
  bool log_waits_for_end = false;
  std::FILE* log = nullptr;  // open until the process ends
  bool log_failed = false;
  OwnWords own_words;
};

Extras& AskedFor() {
  static Extras extras;
  return extras;
}

// Writes a line at once, so that lines of several processes do not mix. Flushes data first, so that
// they do not mix if both streams end in one file. FinishData reports a failure.
void WriteToStderr(std::string_view text) {
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void WriteToLog(const std::string& text) {
  Extras& to = AskedFor();
  const bool written = std::fwrite(text.data(), 1, text.size(), to.log) == text.size();
  if (std::fflush(to.log) != 0 || !written) to.log_failed = true;
}

// Appends the lines in one write, each with the time in UTC before it.
void Log(std::string_view lines) {
  Extras& to = AskedFor();
  if (to.log == nullptr && to.log_check == nullptr) return;
  const auto now =
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const std::time_t second = std::chrono::system_clock::to_time_t(now);
  const std::string time = fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z ", fmt::gmtime(second),
                                       now.time_since_epoch().count() % 1000);
  std::string text;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    text += fmt::format("{}{}\n", time, lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  if (to.log == nullptr) {
    to.kept_lines += text;
  } else {
    WriteToLog(text);
  }
}

Status CannotLogTo(const std::string& path, int error) {
  return IoError(fmt::format("--log-file {}: cannot be opened to append to: {}",
                             PrintableName(path), std::generic_category().message(error)));
}

// "reshard: LABEL: TEXT"
void Say(std::string_view label, std::string_view color, std::string_view text) {
  const std::string words = PrintableText(text);
  WriteToStderr(StderrTakesColor() ? fmt::format("reshard: {}{}:\x1b[0m {}\n", color, label, words)
                                   : fmt::format("reshard: {}: {}\n", label, words));
  Log(fmt::format("reshard: {}: {}", label, words));
}

constexpr std::chrono::milliseconds kLineInterval{100};
constexpr std::chrono::milliseconds kStatusInterval{1000};
constexpr std::chrono::milliseconds kLogInterval{30'000};

// Seconds, as far as there is anything to tell them from.
std::optional<double> TimeLeft(const Progress& progress, double seconds) {
  if (seconds <= 0 || progress.done_bytes == 0 || progress.done_bytes > progress.total_bytes) {
    return std::nullopt;
  }
  return seconds * static_cast<double>(progress.total_bytes - progress.done_bytes) /
         static_cast<double>(progress.done_bytes);
}

double PercentDone(const Progress& progress) {
  if (progress.phase == Progress::Phase::kPlan) return 0;
  return progress.total_bytes == 0 ? 100.0
                                   : 100 * (static_cast<double>(progress.done_bytes) /
                                            static_cast<double>(progress.total_bytes));
}

// "write 34%, 1.0 GiB of 3.0 GiB, 2 of 8 files, 512.0 MiB/s, 0:04 left". If this exceeds `columns`,
// the last parts are left out. The call may continue after all bytes.
std::string ProgressText(const Progress& progress, double seconds, std::optional<double> left,
                         size_t columns) {
  std::string line = fmt::format("reshard: {}", PhaseName(progress.phase));
  if (progress.phase == Progress::Phase::kPlan) return line;
  std::vector<std::string> parts = {fmt::format(" {}%", static_cast<int>(PercentDone(progress))),
                                    fmt::format(", {} of {}", FormatBytes(progress.done_bytes),
                                                FormatBytes(progress.total_bytes))};
  if (progress.total_files > 0) {
    parts.push_back(
        fmt::format(", {} of {}", progress.done_files, FormatCount(progress.total_files, "file")));
  }
  if (progress.done_bytes < progress.total_bytes && left) {
    parts.push_back(fmt::format(", {}", FormatRate(progress.done_bytes, seconds)));
    parts.push_back(fmt::format(", {} left", FormatClock(*left)));
  }
  for (const std::string& part : parts) {
    if (line.size() + part.size() > columns) break;
    line += part;
  }
  return line;
}

// Of the terminal, one less so that the cursor stays on the line.
size_t Columns() {
  constexpr size_t kUsual = 80;
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return (known ? size.ws_col : kUsual) - 1;
}

void PrintStatus(const Progress& progress, double seconds, std::optional<double> left) {
  nlohmann::ordered_json remaining = nullptr;
  if (left) remaining = *left;
  PrintJsonLine("status", {{"phase", PhaseName(progress.phase)},
                           {"percent_done", PercentDone(progress)},
                           {"bytes_done", progress.done_bytes},
                           {"total_bytes", progress.total_bytes},
                           {"files_done", progress.done_files},
                           {"total_files", progress.total_files},
                           {"seconds_elapsed", seconds},
                           {"seconds_remaining", remaining}});
}

}  // namespace

bool StderrIsTerminal() { return isatty(STDERR_FILENO) == 1 && Variable("TERM") != "dumb"; }

bool StdoutIsTerminal() { return isatty(STDOUT_FILENO) == 1; }

bool StderrTakesColor() { return StderrIsTerminal() && Variable("NO_COLOR").empty(); }

nlohmann::ordered_json JsonHead(const std::string& command) {
  return {{"schema_version", kSchemaVersion}, {"command", command}};
}

std::string ToJsonText(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

void PrintData(std::string_view data) {
  AskedFor().data_printed = true;
  std::fwrite(data.data(), 1, data.size(), stdout);
}

void AlsoPrintJsonLines(std::string command) { AskedFor().json_lines_command = std::move(command); }

void AlsoPrintErrorDocument(std::string command) {
  AskedFor().document_command = std::move(command);
}

void PrintJsonLine(std::string_view message_type, const nlohmann::ordered_json& fields) {
  nlohmann::ordered_json line = JsonHead(AskedFor().json_lines_command);
  line["message_type"] = message_type;
  line.update(fields);
  PrintData(ToJsonText(line) + '\n');
  std::fflush(stdout);  // a failure shows in FinishData
}

Status AlsoLogTo(const std::string& path, bool at_end, std::function<Status()> check) {
  Extras& to = AskedFor();
  // Not opened before its time: a new file in a folder of checkpoints might be taken for one.
  const std::filesystem::path file(path);
  std::error_code error;
  const bool exists = std::filesystem::exists(file, error);
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  const int allowed = exists ? access(path.c_str(), W_OK) : access(folder.c_str(), W_OK | X_OK);
  if (allowed != 0) error.assign(errno, std::generic_category());
  if (exists && std::filesystem::is_directory(file)) error.assign(EISDIR, std::generic_category());
  if (error || path.empty()) return CannotLogTo(path, path.empty() ? ENOENT : error.value());
  to.log_path = path;
  to.log_check = std::move(check);
  to.log_waits_for_end = at_end;
  return {};
}

void FinishLog() {
  Extras& to = AskedFor();
  const std::function<Status()> check = std::exchange(to.log_check, nullptr);
  if (check == nullptr) return;
  const std::string kept = std::exchange(to.kept_lines, {});
  if (!check().ok()) return;  // the command says so
  to.log = std::fopen(to.log_path.c_str(), "ae");
  if (to.log == nullptr) {
    to.log_failed = true;
  } else {
    WriteToLog(kept);
  }
}

Status FinishData() {
  const bool flushed = std::fflush(stdout) == 0;
  if (!flushed || std::ferror(stdout) != 0) {
    return IoError("standard output: not all of the data could be written");
  }
  if (!AskedFor().log_failed) return Status();
  return IoError(fmt::format("--log-file {}: not all of the lines could be written",
                             PrintableName(AskedFor().log_path)));
}

void PrintWords(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const std::string line = fmt::format("reshard: {}", PrintableText(text));
  WriteToStderr(line + '\n');
  Log(line);
}

void SetOwnWords(OwnWords words) { AskedFor().own_words = std::move(words); }

std::string AsTyped(std::string_view message) {
  return InWords(message, FrontEnd::kCommandLine, AskedFor().own_words);
}

void PrintNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) PrintWords("note: " + AsTyped(note));
}

void PrintWarnings(const std::vector<Warning>& warnings) {
  for (const Warning& warning : warnings) {
    Say("warning", kYellow, AsTyped(warning.message));
    if (!AskedFor().json_lines_command.empty()) PrintJsonLine("warning", AsJson(warning));
  }
}

int Fail(const Status& status) {
  const int exit_code = ExitCode(status.code());
  const std::string_view code = StatusCodeName(status.code());
  const std::string message = AsTyped(status.message());
  Say("error", kRed, fmt::format("{}: {}", code, message));
  const std::string option =
      WordsFor(status.option(), FrontEnd::kCommandLine, AskedFor().own_words);
  nlohmann::ordered_json error = {{"code", code}, {"exit_code", exit_code}, {"message", message}};
  if (!option.empty()) error["option"] = option;
  if (!AskedFor().json_lines_command.empty()) {
    PrintJsonLine("error", error);
  } else if (!AskedFor().document_command.empty() && !AskedFor().data_printed) {
    nlohmann::ordered_json document = JsonHead(AskedFor().document_command);
    document["error"] = error;
    PrintData(ToJsonText(document) + '\n');
  }
  return exit_code;
}

void PrintProgressLine(std::string_view text) { WriteToStderr(fmt::format("\r{}\x1b[K", text)); }

ProgressOutput::~ProgressOutput() {
  if (phase_ && style_ == ProgressStyle::kLine) PrintProgressLine("");
}

void ProgressOutput::Update(const Progress& progress) {
  const Clock::time_point now = now_();
  const bool first = !phase_;
  if (first) last_logged_ = now;
  // The time for planning does not count for the rate.
  if (first || phase_ == Progress::Phase::kPlan) start_ = now;
  const bool begins = phase_ != progress.phase;
  if (progress.phase != Progress::Phase::kPlan && !AskedFor().log_waits_for_end) FinishLog();
  phase_ = progress.phase;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const std::optional<double> left = TimeLeft(progress, seconds);
  const bool log_due = now - last_logged_ >= kLogInterval;
  if (log_due && style_ != ProgressStyle::kNone) {
    last_logged_ = now;
    const std::string line = ProgressText(progress, seconds, left, std::string::npos);
    if (style_ == ProgressStyle::kLog) WriteToStderr(line + '\n');
    Log(line);
  }
  const bool line = style_ == ProgressStyle::kLine;
  const Clock::duration interval = line ? kLineInterval : kStatusInterval;
  if (!begins && now - last_shown_ < interval) return;
  last_shown_ = now;
  if (line) {
    PrintProgressLine(ProgressText(progress, seconds, left, Columns()));
  } else if (style_ == ProgressStyle::kJsonLines) {
    PrintStatus(progress, seconds, left);
  }
}

}  // namespace reshard
