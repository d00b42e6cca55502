// The only way to the standard streams: data to stdout, words to stderr; and, where they are asked
// for, JSON lines and a log.
//
// Every message begins with "reshard: ". Control characters never get through. Not for use from
// several threads at once.
#ifndef RESHARD_TOOLS_CLI_MESSAGES_H_
#define RESHARD_TOOLS_CLI_MESSAGES_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"

namespace reshard {

// Writes data to stdout. Failures are remembered for FinishData.
void PrintData(std::string_view data);

// From now on each warning and error of the command goes to stdout as well, as a line of JSON.
void AlsoPrintJsonLines(std::string command);

// Writes an object of that message_type with `fields` to stdout as one line, and flushes it. Only
// after AlsoPrintJsonLines.
void PrintJsonLine(std::string_view message_type, const nlohmann::ordered_json& fields);

// From now on what goes to stderr, but for progress, is appended to the file as well: each line
// with the time, and no colour. Errors: kIo when it cannot be opened.
Status AlsoLogTo(const std::string& path);

// Flushes stdout. Errors: kIo when any of the data, or of the log, could not be written.
Status FinishData();

// "reshard: TEXT"
void PrintWords(std::string_view text);

// "reshard: note: TEXT", one for each.
void PrintNotes(const std::vector<std::string>& notes);

// "reshard: warning: TEXT", one for each.
void PrintWarnings(const std::vector<std::string>& warnings);

// "reshard: error: CODE: MESSAGE". Returns the exit code for it.
int Fail(const Status& status);

// Replaces the current line of the terminal, without ending it; an empty text clears it.
void PrintProgressLine(std::string_view text);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_MESSAGES_H_
