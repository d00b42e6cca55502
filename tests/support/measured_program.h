// The program itself, run and looked at from outside.
#ifndef RESHARD_TESTS_SUPPORT_MEASURED_PROGRAM_H_
#define RESHARD_TESTS_SUPPORT_MEASURED_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

namespace reshard {

struct Limits {
  uint64_t data = 0;         // RLIMIT_DATA in bytes, 0 for none
  uint64_t cpu_seconds = 0;  // RLIMIT_CPU, 0 for none
};

struct Outcome {
  int exit = -1;       // code, or 128 + the signal that ended it
  uint64_t peak = 0;   // of RssAnon, in bytes, looked at every millisecond
  std::string output;  // what it wrote to standard output
  std::string error;   // and to standard error
};

// Runs `reshard` with these arguments.
Outcome RunReshard(std::vector<std::string> arguments, const Limits& limits = {});

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_MEASURED_PROGRAM_H_
