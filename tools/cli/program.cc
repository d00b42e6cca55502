#include "tools/cli/program.h"

#include <fmt/format.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "reshard/status.h"
#include "reshard/version.h"
#include "tools/cli/command.h"
#include "tools/cli/command_table.h"
#include "tools/cli/commands.h"
#include "tools/cli/messages.h"
#include "tools/cli/shell_commands.h"
#include "tools/cli/unknown_words.h"

namespace reshard {
namespace {

// Returns "reshard strategy show", as far as the command line was understood.
std::string CommandInQuestion(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* chosen : app.get_subcommands()) name += ' ' + CommandInQuestion(*chosen);
  return name;
}

// Whether one of a group's commands has to follow.
bool LacksCommand(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app.get_require_subcommand_min() > 0 : LacksCommand(*chosen.front());
}

// Turns `help COMMAND` and `version` into the options of the same meaning.
void SpellAsOptions(std::vector<std::string>& words) {
  if (words.empty()) return;
  if (words[0] == "version") words[0] = "--version";
  if (words[0] != "help") return;
  words.erase(words.begin());
  words.emplace_back("--help");
}

// Whether the words have `option` and the command knows it. Parsing may have failed before it came
// to that one.
bool AsksFor(const std::string& option, const CLI::App& app,
             const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands()[0];
  return FindOption(*command, option) != nullptr &&
         std::find(words.begin(), words.end(), option) != words.end();
}

// Answers --help and --version, and a command that is missing by help; anything else that ends
// parsing is a mistake.
int AnswerParseError(const CLI::App& app, const CLI::ParseError& error,
                     const std::vector<std::string>& words) {
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::Success)) {
    const std::string command = CommandInQuestion(app);
    if (AsksFor("--json-lines", app, words)) {
      AlsoPrintJsonLines(command.substr(app.get_name().size() + 1));
    } else if (AsksFor("--json", app, words)) {
      AlsoPrintErrorDocument(command.substr(app.get_name().size() + 1));
    }
    std::optional<std::string> unknown = DescribeUnknownWord(app, words);
    if (!unknown && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
      unknown = DescribeExtraArguments(app);
    }
    if (!unknown && LacksCommand(app)) {
      PrintData(app.help());
      return ExitCode(StatusCode::kInvalidArgument);
    }
    const int exit_code = Fail(InvalidArgumentError(unknown.value_or(error.what())));
    PrintWords(fmt::format("`{} --help` lists options and examples", command));
    return exit_code;
  }
  std::ostringstream text;
  app.exit(error, text, text);
  PrintData(text.str());
  return 0;
}

int RunCommandLine(int argc, char** argv, MountServer serve_mount) {
  CLI::App app("Converts sharded MindSpore checkpoints to another sharding, as a copy.", "reshard");
  const auto formatter = std::make_shared<HelpFormatter>();
  app.formatter(formatter);  // the commands' too
  app.set_help_flag("-h,--help", "Print this help; -h: the common options only");
  app.set_version_flag("-V,--version", fmt::format("reshard {}", kVersion))
      ->description("Print the version");
  app.group("Commands");  // as the commands take it over
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  $ reshard convert ckpt_8 ckpt_4 --src-strategy s8.ckpt --dst-strategy s4.ckpt\n"
      "  $ reshard inspect ckpt_4\n"
      "`reshard COMMAND --help` has more; `reshard man` prints the manual.");
  ConvertCommand convert(app);
  StatusCommand status(app);
  CommitCommand commit(app);
  PlanCommand plan(app);
  CatCommand cat(app);
  MountCommand mount(app, serve_mount, {argv + std::min(argc, 1), argv + argc});
  UnmountCommand unmount(app);
  RanksCommand ranks(app);
  InspectCommand inspect(app);
  DigestCommand digest(app);
  DiffCommand diff(app);
  VerifyCommand verify(app);
  RecodeCommand recode(app);
  MergeCommand merge(app);
  ReportCommand report(app);
  NameRulesCommand name_rules(app);
  CLI::App* strategy =
      app.add_subcommand("strategy", "Show, merge, make, infer and convert strategy files");
  strategy->require_subcommand(1);
  strategy->footer("`reshard strategy COMMAND --help` has examples.");
  StrategyShowCommand show(*strategy);
  StrategyMergeCommand merge_strategies(*strategy);
  StrategyConvertCommand strategy_convert(*strategy);
  StrategyMakeCommand strategy_make(*strategy);
  StrategyInferCommand strategy_infer(*strategy);
  ShellCommands shell(app);

  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  SpellAsOptions(words);
  if (std::find(words.begin(), words.end(), "-h") != words.end()) formatter->LeaveOutGroups();
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return AnswerParseError(app, error, words);
  }
  Command* commands[] = {
      &convert,          &status,        &commit,        &plan,       &cat,  &mount,
      &unmount,          &ranks,         &inspect,       &digest,     &diff, &verify,
      &recode,           &merge,         &report,        &name_rules, &show, &merge_strategies,
      &strategy_convert, &strategy_make, &strategy_infer};
  for (Command* command : commands) {
    if (command->chosen()) return command->Start();
  }
  if (shell.chosen()) return shell.Run();
  return Fail(InternalError("no command was chosen"));
}

int Main(int argc, char** argv, MountServer serve_mount) {
  const int exit_code = RunCommandLine(argc, argv, serve_mount);
  const Status written = FinishData();
  if (written.ok()) return exit_code;
  const int exit_of_failure = Fail(written);
  return exit_code <= 1 ? exit_of_failure : exit_code;  // 1 would mean a difference
}

int FailWithoutMemory() {
  std::fputs("reshard: error: resource exhausted: out of memory\n", stderr);
  return ExitCode(StatusCode::kResourceExhausted);
}

// A refusal of memory in a function that must not throw, of CLI11 or of the standard library, ends
// the run as usual. Staged files stay, as after a kill.
[[noreturn]] void EndWithoutMemory() {
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    _exit(FailWithoutMemory());
  } catch (...) {
  }
  std::abort();
}

}  // namespace

int RunProgram(int argc, char** argv, MountServer serve_mount) {
  // Of many source files, more can stay open than shells allow at first.
  rlimit descriptors{};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) == 0) {
    constexpr rlim_t kEnough = 4096;
    descriptors.rlim_cur = std::max(descriptors.rlim_cur, std::min(descriptors.rlim_max, kEnough));
    setrlimit(RLIMIT_NOFILE, &descriptors);
  }
  // A file beyond `ulimit -f` is an error like a full disk, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
#ifdef __GLIBC__
  // One heap, so that each thread can use memory that another has freed. Large pieces lie outside,
  // and go back to the system when they are freed.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
  std::set_terminate(EndWithoutMemory);
  // For exceptions that no code below expects. The functions of messages.h would need memory.
  try {
    return Main(argc, argv, serve_mount);
  } catch (const std::bad_alloc&) {
    return FailWithoutMemory();
  } catch (const std::system_error& error) {  // the thread that waits for signals
    std::fprintf(stderr, "reshard: error: resource exhausted: cannot start a thread: %s\n",
                 error.what());
    return ExitCode(StatusCode::kResourceExhausted);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reshard: error: internal error: %s\n", error.what());
    return ExitCode(StatusCode::kInternal);
  }
}

}  // namespace reshard
