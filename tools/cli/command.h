// Command: one verb of the command line, and the options that all of them have.
#ifndef RESHARD_TOOLS_CLI_COMMAND_H_
#define RESHARD_TOOLS_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reshard/status.h"

namespace reshard {

// Adds itself to the parser that it is made with, which has to outlive it. Run is called once,
// after parsing, on the one command that was given.
class Command {
 public:
  virtual ~Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  bool chosen() const { return app_.parsed(); }

  // Prints data, words, warnings and errors. Returns the exit code.
  virtual int Run() = 0;

 protected:
  // `examples` are lines without indentation, as a user would type them.
  Command(CLI::App& parent, const std::string& name, const std::string& description,
          const std::vector<std::string>& examples);

  CLI::App& app() { return app_; }
  bool json() const { return json_; }
  bool quiet() const { return quiet_; }
  bool verbose() const { return verbose_ && !quiet_; }

  // Returns the beginning of this command's JSON document.
  nlohmann::ordered_json JsonDocument() const;

 private:
  CLI::App& app_;
  std::string full_name_;  // "strategy show"
  bool json_ = false;
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

// Adds the option --jobs; `jobs`, which parsing sets, is what counts where it is not given.
void AddJobsOption(CLI::App& app, int& jobs, const std::string& description);

// Returns one line of ASCII without its end: other characters, those that a terminal would obey
// among them, come out as \uXXXX. Bytes that are not UTF-8 become U+FFFD.
std::string ToJsonText(const nlohmann::ordered_json& value);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_COMMAND_H_
