#include "tools/cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tools/cli/command_table.h"
#include "tools/cli/messages.h"

namespace reshard {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kOptionColumn = 30;
constexpr size_t kCommandColumn = 14;  // names of commands are short

// "  NAME      DESCRIPTION", with the description in lines below one another from `column` on.
std::string HelpEntry(const std::string& name, std::string_view description, size_t column) {
  std::string out = "  " + name;
  size_t line = out.size();  // columns of the last line that are taken
  const auto begin_line = [&] {
    out += '\n' + std::string(column, ' ');
    line = column;
  };
  if (line >= column && !description.empty()) {
    begin_line();
  } else {
    out.resize(column, ' ');
    line = column;
  }
  while (!description.empty()) {
    const size_t end = std::min(description.find(' '), description.size());
    if (line > column) {
      if (line + 1 + end > kColumns) {
        begin_line();
      } else {
        out += ' ';
        ++line;
      }
    }
    out += description.substr(0, end);
    line += end;
    description.remove_prefix(std::min(end + 1, description.size()));
  }
  return out + '\n';
}

// Of an option or an argument, which is called `name`.
std::string HelpEntry(const CLI::Option& option, std::string name) {
  if (option.get_type_size() != 0) {
    if (!option.get_type_name().empty()) name += ' ' + option.get_type_name();
    if (option.get_expected_max() == CLI::detail::expected_max_vector_size) name += " ...";
    if (option.get_required() && !option.get_positional()) name += " REQUIRED";
  }
  return HelpEntry(name, option.get_description(), kOptionColumn);
}

std::string ArgumentUsage(const CLI::Option& argument) {
  std::string out = ShownName(argument);
  // A name that says so itself: FILES... OUT.
  if (argument.get_expected_max() > 1 && out.find("...") == std::string::npos) out += "...";
  return argument.get_required() ? out : '[' + out + ']';
}

}  // namespace

Command::Command(CLI::App& parent, const std::string& name, const std::string& description,
                 const std::vector<std::string>& examples)
    : app_(*parent.add_subcommand(name, description)), full_name_(name) {
  if (parent.get_parent() != nullptr) full_name_ = parent.get_name() + " " + name;
  app_.add_flag("--json", json_, "Print the data as one JSON document")->group(kOutputGroup);
  app_.add_flag("-q,--quiet", quiet_, "Print no notes, summary or progress")->group(kOutputGroup);
  app_.add_flag("-v,--verbose", verbose_, "Print more")->group(kOutputGroup);
  app_.add_option("--log-file", log_file_, "Append standard error to FILE, with times")
      ->type_name("FILE")
      ->group(kOutputGroup);
  std::string footer = "Examples:\n";
  for (const std::string& example : examples) footer += fmt::format("  $ {}\n", example);
  footer.pop_back();
  app_.footer(footer);
}

int Command::Start() {
  if (json_lines_) AlsoPrintJsonLines(full_name_);
  if (json_) AlsoPrintErrorDocument(full_name_);
  file_use_.emplace();
  if (FindOption(app_, "--log-file")->count() > 0) {
    const Status added = file_use_->AddOutput(log_file_, "--log-file");
    if (!added.ok()) return Fail(added);
    const Status opened =
        AlsoLogTo(log_file_, OpensFilesOneByOne(), [this] { return file_use_->Check(); });
    if (!opened.ok()) return Fail(opened);
  }
  int exit_code = Run();
  // A command that goes on after an error, as inspect does, may have told another one.
  const int refused = ExitCode(StatusCode::kInvalidArgument);
  if (const Status free = file_use_->Check(); !free.ok() && exit_code != refused) {
    exit_code = Fail(free);
  }
  FinishLog();
  return exit_code;
}

void Command::AddJsonLinesOption() {
  app_.add_flag("--json-lines", json_lines_,
                "Print progress, warnings and data, or an error, as one JSON object a line")
      ->group(kOutputGroup)
      ->excludes(FindOption(app_, "--json"));
}

void Command::LeaveOutJson() { app_.remove_option(FindOption(app_, "--json")); }

ProgressStyle Command::progress_style() const {
  if (quiet_) return ProgressStyle::kNone;
  if (json_lines_) return ProgressStyle::kJsonLines;
  return StderrIsTerminal() ? ProgressStyle::kLine : ProgressStyle::kLog;
}

nlohmann::ordered_json Command::JsonDocument() const {
  nlohmann::ordered_json document = JsonHead(full_name_);
  // Growing would copy its members, and a list of files may be long.
  document.get_ref<nlohmann::ordered_json::object_t&>().reserve(64);
  if (json_lines_) document["message_type"] = "summary";
  return document;
}

CLI::Validator WholeNumber(size_t most_digits) {
  const auto check = [most_digits](std::string& text) -> std::string {
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    if (!digits) return "has to be a whole number, 0 or more; found " + text;
    // CLI11 would take leading zeros for octal numbers.
    text.erase(0, std::min(text.find_first_not_of('0'), text.size() - 1));
    return text.size() <= most_digits
               ? ""
               : fmt::format("has to be less than 10^{}; found {}", most_digits, text);
  };
  return {check, ""};
}

CLI::Option* AddJobsOption(CLI::App& app, int& jobs) {
  constexpr size_t kMostDigits = 9;  // of an int
  constexpr unsigned kMostByDefault = 4;
  jobs = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, kMostByDefault));
  return app
      .add_option("--jobs", jobs,
                  "Threads; 0 is one per core (default: one per core, but at most 4)")
      ->type_name("J")
      ->transform(WholeNumber(kMostDigits));
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode /*mode*/) const {
  std::vector<const CLI::App*> commands = app->get_subcommands({});
  std::erase_if(commands, [](const CLI::App* command) { return command->get_group().empty(); });
  std::vector<const CLI::Option*> arguments;
  for (const CLI::Option* option : app->get_options()) {
    if (option->get_positional() && !option->get_group().empty()) arguments.push_back(option);
  }

  std::string out = fmt::format("{}\nUsage: {} [OPTIONS]", app->get_description(), name);
  for (const CLI::Option* argument : arguments) out += ' ' + ArgumentUsage(*argument);
  out += commands.empty() ? "\n" : " COMMAND\n";
  if (!arguments.empty()) out += "\nArguments:\n";
  for (const CLI::Option* argument : arguments) out += HelpEntry(*argument, ShownName(*argument));

  std::string left_out;
  for (const std::string& group : OptionGroups(*app)) {
    if (common_only_ && group != kCommonGroup && group != kOutputGroup) {
      left_out += (left_out.empty() ? "" : ", ") + group;
      continue;
    }
    std::string entries;
    for (const CLI::Option* option : app->get_options()) {
      if (!option->nonpositional() || GroupOf(*option) != group) continue;
      entries += HelpEntry(*option, option->get_name(false, true));
    }
    if (!entries.empty()) out += fmt::format("\n{}:\n{}", group, entries);
  }
  if (!commands.empty()) out += "\nCommands:\n";
  for (const CLI::App* command : commands) {
    out += HelpEntry(command->get_name(), command->get_description(), kCommandColumn);
  }
  if (!app->get_footer().empty()) out += fmt::format("\n{}\n", app->get_footer());
  if (!left_out.empty()) out += fmt::format("`{} --help` has more: {}\n", name, left_out);
  return out;
}

}  // namespace reshard
