#include "tools/cli/messages.h"

#include <fmt/format.h>

#include <cstdio>

#include "tools/cli/printable.h"
#include "tools/cli/terminal.h"

namespace reshard {
namespace {

constexpr std::string_view kRed = "\x1b[1;31m";
constexpr std::string_view kYellow = "\x1b[1;33m";

// One write for the line, so that lines of several processes do not mix; data that came before goes
// before, so that they do not mix where both streams end in one file. A failure shows in
// FinishData.
void WriteToStderr(std::string_view text) {
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

std::string Label(std::string_view label, std::string_view color) {
  return StderrTakesColor() ? fmt::format("{}{}:\x1b[0m", color, label) : fmt::format("{}:", label);
}

}  // namespace

void PrintData(std::string_view data) { std::fwrite(data.data(), 1, data.size(), stdout); }

Status FinishData() {
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) return Status();
  return IoError("standard output: not all of the data could be written");
}

void PrintWords(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  WriteToStderr(fmt::format("reshard: {}\n", PrintableText(text)));
}

void PrintNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) PrintWords("note: " + note);
}

void PrintWarnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    WriteToStderr(
        fmt::format("reshard: {} {}\n", Label("warning", kYellow), PrintableText(warning)));
  }
}

int Fail(const Status& status) {
  WriteToStderr(fmt::format("reshard: {} {}: {}\n", Label("error", kRed),
                            StatusCodeName(status.code()), PrintableText(status.message())));
  return ExitCode(status.code());
}

void PrintProgressLine(std::string_view text) { WriteToStderr(fmt::format("\r{}\x1b[K", text)); }

}  // namespace reshard
