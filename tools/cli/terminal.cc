#include "tools/cli/terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace reshard {
namespace {

std::string_view Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

bool StderrIsTerminal() { return isatty(STDERR_FILENO) == 1 && Variable("TERM") != "dumb"; }

bool StderrTakesColor() { return StderrIsTerminal() && Variable("NO_COLOR").empty(); }

}  // namespace reshard
