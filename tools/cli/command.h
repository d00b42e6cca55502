// Command: a verb of the command line, the common options of all commands, and the layout of
// --help.
#ifndef RESHARD_TOOLS_CLI_COMMAND_H_
#define RESHARD_TOOLS_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/frontend/own_outputs.h"
#include "src/frontend/report_fields.h"
#include "tools/cli/json_report.h"
#include "tools/cli/messages.h"

namespace reshard {

// Adds itself to the parser that it is made with, which has to outlive it. Start is called once,
// after parsing, on the one command that was given.
class Command {
 public:
  virtual ~Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  bool chosen() const { return app_.parsed(); }

  // Does the command's work. Opens the log, if there is one, once the files that the command reads
  // and writes are known; the log must be another file. Returns the exit code.
  int Start();

  // Prints data, words, warnings and errors. Returns the exit code. Called by Start.
  virtual int Run() = 0;

  // Whether there are files that it has not opened when it tells progress.
  virtual bool OpensFilesOneByOne() const { return false; }

 protected:
  // `examples` are lines without indentation, as a user would type them.
  Command(CLI::App& parent, const std::string& name, const std::string& description,
          const std::vector<std::string>& examples);

  // For a command with long work that a program may want to watch.
  void AddJsonLinesOption();

  // For a command whose standard output is the input of another program.
  void LeaveOutJson();

  CLI::App& app() { return app_; }
  // The files that the command reads. The command adds its own outputs. Only while it runs.
  FileUse& file_use() { return *file_use_; }
  // Whether data is to be JSON: the one document, or the summary among JSON lines.
  bool json() const { return json_ || json_lines_; }
  bool json_lines() const { return json_lines_; }
  bool quiet() const { return quiet_; }
  bool verbose() const { return verbose_ && !quiet_; }
  ProgressStyle progress_style() const;

  // Returns the beginning of this command's JSON document.
  nlohmann::ordered_json JsonDocument() const;

  // Prints a report as this command's JSON document.
  template <typename Report>
  void PrintReport(const Report& report, const ReportedCall& call) const {
    JsonReport document(JsonDocument());
    Describe(report, call, document);
    PrintData(ToJsonText(document.Take()) + '\n');
  }

 private:
  CLI::App& app_;
  std::string full_name_;  // "strategy show"
  std::string log_file_;
  std::optional<FileUse> file_use_;
  bool json_ = false;
  bool json_lines_ = false;
  bool quiet_ = false;
  bool verbose_ = false;
};

// Adds a required argument without a dash.
template <typename T>
CLI::Option* AddPositional(CLI::App& app, const std::string& name, T& variable,
                           const std::string& description) {
  return app.add_option(name, variable, description)->required()->type_name("");
}

// Refuses all but whole numbers from 0 on, below 10^most_digits.
CLI::Validator WholeNumber(size_t most_digits = 18);

// Adds the option --jobs; without it `jobs` is as many as there are cores, but 4 at most.
CLI::Option* AddJobsOption(CLI::App& app, int& jobs);

// The output of --help: descriptions in lines of 80 columns, without lists of options that exclude
// each other. The layout does not depend on CLI11's own, which changes between versions.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;

  // From now on shows only the common options and those of the output, for -h.
  void LeaveOutGroups() { common_only_ = true; }

 private:
  bool common_only_ = false;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_COMMAND_H_
