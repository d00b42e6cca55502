// The only way to the standard streams: data to stdout, words to stderr. On request also JSON lines
// and a log.
//
// Every message begins with "reshard: ". Control characters never get through. One thread at a
// time.
#ifndef RESHARD_TOOLS_CLI_MESSAGES_H_
#define RESHARD_TOOLS_CLI_MESSAGES_H_

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/options.h"
#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/frontend/option_words.h"
#include "tools/page/text_format.h"

namespace reshard {

// Returns whether a line on standard error can be written again: it is a terminal and TERM is not
// "dumb".
bool StderrIsTerminal();

// Returns whether somebody reads standard output as it comes.
bool StdoutIsTerminal();

// Returns whether words on standard error may have colour: as above, and NO_COLOR is empty or
// unset.
bool StderrTakesColor();

// Returns the first members of every printed object: schema_version and the command's name.
nlohmann::ordered_json JsonHead(const std::string& command);

// Returns one line of ASCII without its end. Other characters, also those that a terminal would
// obey, come out as \uXXXX. Bytes that are not UTF-8 become U+FFFD.
std::string ToJsonText(const nlohmann::ordered_json& value);

// Writes data to stdout. Failures are remembered for FinishData.
void PrintData(std::string_view data);

// From now on each warning and error of the command goes to stdout as well, as a line of JSON.
void AlsoPrintJsonLines(std::string command);

// From now on an error goes to stdout as well, as the command's one JSON document, unless data has
// been printed before it.
void AlsoPrintErrorDocument(std::string command);

// Writes an object with the message_type with `fields` to stdout as a line, and flushes it. Only
// after AlsoPrintJsonLines.
void PrintJsonLine(std::string_view message_type, const nlohmann::ordered_json& fields);

// From now on all text for stderr, except progress, is also appended to the file: each line with
// the time, and without colour. Lines are kept until a ProgressOutput leaves its first phase, when
// all files that the command reads are known, or, with `at_end`, until FinishLog. They are written
// only if `check` returns ok then. Errors: kIo if the file could not be opened.
Status AlsoLogTo(const std::string& path, bool at_end, std::function<Status()> check);

// Writes the lines that are kept.
void FinishLog();

// Flushes stdout. Errors: kIo when any of the data, or of the log, could not be written.
Status FinishData();

// "reshard: TEXT"
void PrintWords(std::string_view text);

// From now on messages have these words for options, in place of the option table's.
void SetOwnWords(OwnWords words);

// Returns a message of the library with options as they are typed.
std::string AsTyped(std::string_view message);

// "reshard: note: TEXT", one for each; options as they are typed, in the next two as well.
void PrintNotes(const std::vector<std::string>& notes);

// "reshard: warning: TEXT", one for each.
void PrintWarnings(const std::vector<Warning>& warnings);

// "reshard: error: CODE: MESSAGE". Returns the exit code for it.
int Fail(const Status& status);

// Replaces the current line of the terminal, without ending it; an empty text clears it.
void PrintProgressLine(std::string_view text);

// How far a call is told, on one line of the terminal or as JSON lines. Except for kNone, a log
// also gets a line every 30 s.
enum class ProgressStyle {
  kNone,
  // on stderr: phase, percent, bytes, files, rate and time left; at most 10 times a second, and
  // when a phase begins
  kLine,
  kLog,        // on stderr: the same, a line every 30 s
  kJsonLines,  // on stdout: a `status` at most once a second, and when a phase begins
};

// The destructor clears the line. Update calls must not overlap; they may come from different
// threads.
class ProgressOutput {
 public:
  using Clock = std::chrono::steady_clock;

  // `now` tells the time.
  explicit ProgressOutput(ProgressStyle style, std::function<Clock::time_point()> now = Clock::now)
      : style_(style), now_(std::move(now)) {}
  ~ProgressOutput();
  ProgressOutput(const ProgressOutput&) = delete;
  ProgressOutput& operator=(const ProgressOutput&) = delete;

  void Update(const Progress& progress);

 private:
  const ProgressStyle style_;
  const std::function<Clock::time_point()> now_;
  std::optional<Progress::Phase> phase_;  // of the last update
  Clock::time_point start_;               // of the first update, or of the first after planning
  Clock::time_point last_shown_;
  Clock::time_point last_logged_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_MESSAGES_H_
