// ConversionArguments: what `convert` and `plan` are told on the command line.
#ifndef RESHARD_TOOLS_CLI_CONVERSION_ARGUMENTS_H_
#define RESHARD_TOOLS_CLI_CONVERSION_ARGUMENTS_H_

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "reshard/used_paths.h"
#include "tools/cli/choice_options.h"
#include "tools/cli/mindformers_spelling.h"

namespace reshard {

// A plain value that the parser writes into.
class ConversionArguments {
 public:
  // `app` keeps pointers into this object.
  void AddTo(CLI::App& app);
  // Adds MindFormers' spellings, too.
  void AddMindFormersTo(CLI::App& app) { mindformers_.AddTo(app); }

  // After parsing. Errors: those of ChoiceOptions::Fill.
  Result<ConvertOptions> Options() const;
  // After parsing: what the options name.
  UsedPaths Paths() const;
  // The target folder, however it was given.
  const std::string& target() const {
    return mindformers_.target().empty() ? options_.target : mindformers_.target();
  }
  const MindFormersSpelling& mindformers() const { return mindformers_; }

 private:
  // Tells which positional is which. Throws the parser's errors.
  void Complete();
  // The options but for those of ChoiceOptions.
  ConvertOptions WithoutChoice() const;

  ConvertOptions options_;
  ChoiceOptions choice_;
  MindFormersSpelling mindformers_;
  std::string resume_;  // "true" for --resume alone, "verify", or nothing
  std::string io_ = "auto";
  std::string expected_parameters_;
  bool no_checksum_ = false;
  std::string check_replicas_;  // "true" for --check-replicas alone, a word, or nothing
};

// Parameters as rows of text, two blanks before each.
std::string LargestAsText(const std::vector<ParameterSummary>& largest);

nlohmann::ordered_json LargestAsJson(const std::vector<ParameterSummary>& largest);

// Null where there was no sample.
nlohmann::ordered_json SampleAsJson(const std::optional<ReplicaSample>& sample);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_CONVERSION_ARGUMENTS_H_
