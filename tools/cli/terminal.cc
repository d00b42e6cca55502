#include "tools/cli/terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace reshard {
namespace {

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

bool StderrIsTerminal() { return isatty(STDERR_FILENO) == 1 && Environment("TERM") != "dumb"; }

bool StderrTakesColor() { return StderrIsTerminal() && Environment("NO_COLOR").empty(); }

}  // namespace reshard
