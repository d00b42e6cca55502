#include "tests/support/measured_program.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "tests/support/temporary_folder.h"

namespace reshard {
namespace {

// Returns RssAnon of a process in bytes, 0 once it has ended.
uint64_t RssAnon(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8)) << 10;
  }
  return 0;
}

void Limit(int resource, uint64_t most) {
  const rlimit limit{most, most};
  if (most != 0) setrlimit(resource, &limit);
}

}  // namespace

Outcome RunReshard(std::vector<std::string> arguments, const Limits& limits) {
  const TemporaryFolder folder;
  const std::string output_path = folder.Write("output", "");
  const std::string error_path = folder.Write("error", "");
  arguments.insert(arguments.begin(), RESHARD_BIN_DIR "/reshard");
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int running[2];  // closed by execv: before, the child's memory is this process's
  if (pipe2(running, O_CLOEXEC) != 0) return {};
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(open(output_path.c_str(), O_WRONLY), STDOUT_FILENO);
    dup2(open(error_path.c_str(), O_WRONLY), STDERR_FILENO);
    Limit(RLIMIT_DATA, limits.data);
    Limit(RLIMIT_CPU, limits.cpu_seconds);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(running[1]);
  char nothing = 0;
  while (read(running[0], &nothing, 1) > 0) {
  }
  close(running[0]);
  Outcome outcome;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    outcome.peak = std::max(outcome.peak, RssAnon(pid));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  outcome.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.output = ReadFile(output_path);
  outcome.error = ReadFile(error_path);
  return outcome;
}

}  // namespace reshard
