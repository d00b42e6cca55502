// The arguments of `convert` and `plan` on the command line, and their texts about the source.
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

// The options of MindFormers' transform_checkpoint.py, as another spelling of `convert`. A plain
// value that the parser writes into.
class MindFormersSpelling {
 public:
  // Adds them in a group of their own; each excludes reshard's own option of the same meaning,
  // which `app` has already. `app` keeps pointers into this object.
  void AddTo(CLI::App& app);

  // After parsing. Paths that were not given are empty.
  const std::string& source() const { return source_; }
  const std::string& target() const { return target_; }
  // Handles a source folder of full .ckpt files without rank folders. MindFormers converts these
  // one by one, a.ckpt into the folder `a` of `target`. Returns a spelling for each file; none for
  // another source.
  // Errors: kMismatch for two files with one such folder; kIo.
  Result<std::vector<MindFormersSpelling>> ForEachFile(const std::string& target) const;
  // Sets the other given values in `options`.
  void ApplyTo(ConvertOptions& options) const;

  // Fails with kInvalidArgument if the target's strategy or cluster has another number of ranks
  // than --world_size. Errors: as ReadStrategy.
  Status CheckWorldSize(const TargetSpec& target) const;

  // Returns a warning about the additional work that a process of MindFormers would do, or no
  // value.
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

// The arguments of `convert` and `plan` on the command line. A plain value that the parser writes
// into.
class ConversionArguments {
 public:
  // Adds SRC, DST and the options of `call`. `app` keeps pointers into this object.
  void AddTo(CLI::App& app, Call call);
  // Adds MindFormers' spellings, too.
  void AddMindFormersTo(CLI::App& app) { mindformers_.AddTo(app); }

  // After parsing. Errors: as TableOptions::ApplyTo.
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

  ConvertOptions options_;  // without the options of the table
  TableOptions table_;
  MindFormersSpelling mindformers_;
};

// Parameters as rows of text, two blanks before each.
std::string LargestAsText(const std::vector<TensorInfo>& largest);

// Returns in words whether the sample confirms the source strategy; empty without a sample.
std::string ConfirmedText(const std::optional<Findings::ReplicaSample>& sample);

// Returns "weights 6.74 B elements, optimizer 13.48 B".
std::string TotalsText(const Findings::Totals& totals);

// As above, for the chosen part of the source, with the totals of the whole source if they differ.
std::string ChosenTotalsText(const Findings::Totals& chosen, const Findings::Totals& source);

// Returns "stage 0 of 2 or more, alone: load all parts together".
std::string StageAloneText(int64_t stage);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_CONVERSION_ARGUMENTS_H_
