// The programs of the package. Its scripts call them here, so that the wheel has the library once.
#include <nanobind/nanobind.h>

#include <csignal>
#include <string>
#include <vector>

#include "python/src/module.h"
#include "tools/cli/program.h"
#include "tools/gen/gen_program.h"

namespace nb = nanobind;

namespace reshard::python {
namespace {

// Restores the signals that Python has set at its start, as in a program of its own.
void TakeSignalsBack() {
  std::signal(SIGPIPE, SIG_DFL);
  const auto before = std::signal(SIGINT, SIG_DFL);
  if (before == SIG_IGN) std::signal(SIGINT, SIG_IGN);  // by a shell, for a job in the background
}

// Runs a program as main() would, by the words of its command line, and returns the exit code.
int RunNamedProgram(const nb::list& arguments) {
  std::vector<std::string> words;
  for (const nb::handle argument : arguments) words.push_back(Bytes(nb::cast<nb::bytes>(argument)));
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  TakeSignalsBack();
  const auto count = static_cast<int>(words.size());
  if (words.at(0) == "reshard-gen") return RunGenProgram(count, pointers.data());
  return RunProgram(count, pointers.data());
}

}  // namespace

void AddPrograms(nb::module_& module) {
  module.def("run_program", RunNamedProgram, nb::arg("arguments"));
}

}  // namespace reshard::python
