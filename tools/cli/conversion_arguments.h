// What `convert` and `plan` are told on the command line, and say of the source.
#ifndef RESHARD_TOOLS_CLI_CONVERSION_ARGUMENTS_H_
#define RESHARD_TOOLS_CLI_CONVERSION_ARGUMENTS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "reshard/parameters.h"
#include "reshard/status.h"
#include "tools/cli/table_options.h"

namespace reshard {

// The options of MindFormers' transform_checkpoint.py, as another way to say what `convert` is to
// do. A plain value that the parser writes into.
class MindFormersSpelling {
 public:
  // Adds them in a group of their own; each excludes reshard's own option of the same meaning,
  // which `app` has already. `app` keeps pointers into this object.
  void AddTo(CLI::App& app);

  // After parsing. Paths that were not given are empty.
  const std::string& source() const { return source_; }
  const std::string& target() const { return target_; }
  // Where the source is a folder of .ckpt files without folders of ranks, each file is full, and
  // MindFormers converts them one by one, a.ckpt into the folder `a` of `target`. Returns the
  // spellings that say so, one for each file; none for another source. Errors: kMismatch for two
  // files with one such folder; kIo.
  Result<std::vector<MindFormersSpelling>> ForEachFile(const std::string& target) const;
  // Sets in `options` what was given of the rest.
  void ApplyTo(ConvertOptions& options) const;

  // Fails with kInvalidArgument where the target strategy has another number of ranks than
  // --world_size says. Errors: those of ReadStrategy.
  Status CheckWorldSize(const std::string& target_strategy) const;

  // Returns what a process of MindFormers would do beyond what is done here, or nothing.
  std::optional<Warning> RanksLeftOut() const;

 private:
  std::string source_;
  std::string target_;
  std::optional<std::string> source_strategy_;
  std::optional<std::string> target_strategy_;
  std::optional<int64_t> rank_;
  std::optional<int64_t> world_size_;
  std::optional<int> processes_;
  bool by_rank_ = false;
};

// What `convert` and `plan` are told on the command line. A plain value that the parser writes
// into.
class ConversionArguments {
 public:
  // Adds SRC, DST and the options of `call`. `app` keeps pointers into this object.
  void AddTo(CLI::App& app, Call call);
  // Adds MindFormers' spellings, too.
  void AddMindFormersTo(CLI::App& app) { mindformers_.AddTo(app); }

  // After parsing. Errors: those of TableOptions::ApplyTo.
  Result<ConvertOptions> Options() const;
  // The target folder, however it was given.
  const std::string& target() const {
    return mindformers_.target().empty() ? options_.target.folder : mindformers_.target();
  }
  const MindFormersSpelling& mindformers() const { return mindformers_; }
  void SetMindFormers(const MindFormersSpelling& spelling) { mindformers_ = spelling; }

 private:
  // Tells which positional is which. Throws the parser's errors.
  void Complete();

  ConvertOptions options_;  // but for those of the table
  TableOptions table_;
  MindFormersSpelling mindformers_;
};

// Parameters as rows of text, two blanks before each.
std::string LargestAsText(const std::vector<TensorInfo>& largest);

// Returns whether the sample confirms the source strategy, in words; empty if nothing was sampled.
std::string ConfirmedText(const std::optional<ReplicaSample>& sample);

// Returns "weights 6.74 B parameters, optimizer 13.48 B".
std::string TotalsText(const ParameterTotals& totals);

// Returns the same of what is chosen of the source, with the totals of the whole source if they
// differ.
std::string ChosenTotalsText(const ParameterTotals& chosen, const ParameterTotals& source);

// Returns "stage 0 of 2 or more, alone: load all parts together".
std::string StageAloneText(int64_t stage);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_CONVERSION_ARGUMENTS_H_
