// The commands of the program. A source has one, or a few that belong together: convert_command.cc
// has `convert` and `commit`.
#ifndef RESHARD_TOOLS_CLI_COMMANDS_H_
#define RESHARD_TOOLS_CLI_COMMANDS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/convert.h"
#include "reshard/encryption.h"
#include "reshard/merge.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/target_view.h"
#include "reshard/tensor.h"
#include "reshard/verify.h"
#include "src/frontend/byte_output.h"
#include "src/frontend/layout_report.h"
#include "src/frontend/option_parts.h"
#include "src/frontend/report_fields.h"
#include "tools/cli/command.h"
#include "tools/cli/conversion_arguments.h"
#include "tools/cli/module_tree.h"
#include "tools/cli/mount_server.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/table_options.h"
#include "tools/page/inspection.h"
#include "tools/page/parameter_table.h"

namespace reshard {

// `reshard cat`: one file of a conversion, passed on instead of written.
class CatCommand : public Command {
 public:
  explicit CatCommand(CLI::App& parent);
  int Run() override;

 private:
  // The bytes that were passed on.
  struct Done {
    std::string path;
    uint64_t bytes = 0;
    std::vector<Warning> warnings;  // of casts
  };

  Status ReadRange(const std::string& text);
  Result<ConvertOptions> Options() const;
  // Returns the number of the file that is asked for. `view` is of `options`.
  Result<size_t> FileOf(const TargetView& view) const;
  Result<Done> PassOn(const ConvertOptions& options, ByteOutput& output);

  ConvertOptions options_;  // without the options of the table
  TableOptions table_;
  std::optional<int64_t> rank_;
  std::optional<ByteRange> range_;
  std::string output_;  // empty: standard output
};

// `reshard convert` lays out a checkpoint again.
class ConvertCommand : public Command {
 public:
  explicit ConvertCommand(CLI::App& parent);
  int Run() override;

 private:
  // Makes the conversion that the arguments say. Its document is printed, or added to `documents`.
  // Returns the exit code.
  int ConvertOne(nlohmann::ordered_json* documents);
  void PrintSummary(const ConvertReport& report, double seconds) const;
  void PrintDetails(const ConvertReport& report) const;

  ConversionArguments arguments_;
  std::string page_;  // the path of the page about the run; empty: none
};

// `reshard commit` publishes the files that shards have staged.
class CommitCommand : public Command {
 public:
  explicit CommitCommand(CLI::App& parent);
  int Run() override;

 private:
  std::string target_;
  TableOptions table_;
};

// `reshard digest`: contents of a checkpoint in any layout.
class DigestCommand : public Command {
 public:
  explicit DigestCommand(CLI::App& parent);
  int Run() override;

 private:
  ContentOptions options_;
  TableOptions table_;
  bool long_ = false;
};

// `reshard diff`: the contents of two checkpoints, compared.
class DiffCommand : public Command {
 public:
  explicit DiffCommand(CLI::App& parent);
  int Run() override;

 private:
  void PrintSummary(const DiffReport& report, double seconds) const;
  void PrintText(const DiffReport& report) const;

  DiffOptions options_;
  TableOptions table_;
  bool long_ = false;
};

// For `inspect`: the checkpoints of a folder, similar ones together, and their contents by module.
// A plain value.
class FolderSummary {
 public:
  void Add(const InspectedFile& file);

  bool empty() const { return rows_.empty(); }
  std::string ToText() const;

 private:
  // Files with the same number of parameters and bytes, and of the same size.
  struct Row {
    std::vector<int64_t> ranks;
    std::string first;  // path
    uint64_t files = 0;
    uint64_t parameters = 0;
    uint64_t size = 0;
    uint64_t bytes = 0;
  };
  std::vector<Row> rows_;
  ModuleTree modules_;
};

// `reshard inspect`: the contents of checkpoint files, folders of ranks and strategies.
//
// Prints the files and strategies that Inspect finds one by one. The first error decides the exit
// code.
class InspectCommand : public Command, private InspectSink {
 public:
  explicit InspectCommand(CLI::App& parent);
  int Run() override;
  bool OpensFilesOneByOne() const override { return true; }

 private:
  Status CheckOptions() const;

  void Notes(const std::vector<std::string>& notes) override;
  void Warnings(const std::vector<Warning>& warnings) override { PrintWarnings(warnings); }
  void Error(const Status& status) override;
  void BeginFolder(const std::string& path, uint64_t files, const std::string& step) override;
  void EndFolder() override;
  void File(const Checkpoint& checkpoint, const InspectedFile& file) override;
  void Layouts(const ShownStrategy& strategy) override;
  void BeginTensors() override;
  bool KeepsTensor(const CutTensor& cut) override;
  void EndTensors(const FullTensors& tensors) override;
  std::string AdviceFor(const std::string& tensor, const ShardedCheckpoint& checkpoint) override;
  Result<StatisticsReport> Measure(const ContentOptions& options) override;

  InspectOptions options_;
  TableOptions table_;
  bool long_ = false;

  std::optional<FolderSummary> folder_;    // of the current path, if a folder is shown
  std::optional<ParameterTable> tensors_;  // of the current path, if full tensors are shown
  bool only_folders_ = true;               // were shown so far
  uint64_t checkpoints_ = 0;               // shown so far
  int exit_code_ = 0;
};

// `reshard merge`: slices or segments of a checkpoint, made one file.
class MergeCommand : public Command {
 public:
  explicit MergeCommand(CLI::App& parent);
  int Run() override;

 private:
  MergeOptions options_;
  TableOptions table_;
  std::vector<std::string> files_and_output_;
};

// `reshard mount`: shows the files of a conversion as a folder, without writing them. Another
// program (tools/mount) serves the files, so that this one does not need libfuse.
class MountCommand : public Command {
 public:
  // `words` are the command line, for the serving program if `serve` is null.
  MountCommand(CLI::App& parent, MountServer serve, std::vector<std::string> words);
  int Run() override;

 private:
  // Tells which positional is which. Throws the parser's errors.
  void Complete();
  // Becomes the program that serves. Returns only if there is none.
  Status Hand() const;
  // Opens the target and serves it until it is unmounted; calls `ready` when it is there.
  int Serve(const std::function<void()>& ready);

  const MountServer serve_;
  const std::vector<std::string> words_;
  ConvertOptions options_;  // without the options of the table
  TableOptions table_;
  std::string folder_;
  bool background_ = false;
  bool caches_ = false;
  bool allows_others_ = false;
};

// `reshard unmount` ends a mount.
class UnmountCommand : public Command {
 public:
  explicit UnmountCommand(CLI::App& parent);
  int Run() override;

 private:
  std::string folder_;
};

// `reshard name-rules`: the rules for names that come with the program.
class NameRulesCommand : public Command {
 public:
  explicit NameRulesCommand(CLI::App& parent);
  int Run() override;

 private:
  std::string rules_;
};

// `reshard plan`: the effect of a conversion.
class PlanCommand : public Command {
 public:
  explicit PlanCommand(CLI::App& parent);
  int Run() override;

 private:
  void PrintText(const PlanReport& report) const;

  ConversionArguments arguments_;
  bool long_ = false;
};

// `reshard ranks`: the source ranks that a conversion needs.
class RanksCommand : public Command {
 public:
  explicit RanksCommand(CLI::App& parent);
  int Run() override;

 private:
  // Throws the parser's error.
  static std::vector<int64_t> ReadRanks(const std::string& list);
  int RunOne(int64_t rank);
  // Of `ranks_`, or of all.
  int RunSeveral();

  std::vector<int64_t> ranks_;
  bool all_ = false;
  TableOptions table_;
  StrategyRef source_strategy_;
  StrategyRef target_strategy_;
};

// `reshard recode`: checkpoint files as they are, in another format.
class RecodeCommand : public Command {
 public:
  explicit RecodeCommand(CLI::App& parent);
  int Run() override;

 private:
  void PrintSummary(const ConvertReport& report, double seconds) const;

  RecodeOptions options_;
  std::set<std::string> told_;  // notes that were printed at once
  TableOptions table_;
};

// `reshard report`: a conversion, or a checkpoint, in pictures.
class ReportCommand : public Command {
 public:
  explicit ReportCommand(CLI::App& parent);
  int Run() override;

 private:
  LayoutReportOptions options_;
  TableOptions table_;
  std::string output_;
};

// `reshard status` tells how far a conversion is.
class StatusCommand : public Command {
 public:
  explicit StatusCommand(CLI::App& parent);
  int Run() override;

 private:
  // Asks once, and prints the answer. `is_again` replaces the last one on a terminal.
  Result<StatusReport> Show(bool is_again);

  std::string target_;
  uint64_t watch_ = 0;      // seconds; 0: asks once
  size_t shown_lines_ = 0;  // of a terminal, by the last answer
};

// `reshard strategy show`, `merge`, `convert`, `infer` and `make`. Their parent is the parser of
// `reshard strategy`.
class StrategyShowCommand : public Command {
 public:
  explicit StrategyShowCommand(CLI::App& parent);
  int Run() override;

 private:
  // Draws which rank holds which box of `mapped_`.
  int ShowMap(const Strategy& strategy);

  std::string path_;
  NameFilter filter_;
  TableOptions table_;
  bool long_ = false;
  std::string mapped_;  // the parameter to draw
  std::string target_strategy_;
};

class StrategyMergeCommand : public Command {
 public:
  explicit StrategyMergeCommand(CLI::App& parent);
  int Run() override;

 private:
  std::string folder_;
  std::string output_;
  TableOptions table_;
};

class StrategyConvertCommand : public Command {
 public:
  explicit StrategyConvertCommand(CLI::App& parent);
  int Run() override;

 private:
  StrategyConversion options_;
  TableOptions table_;
};

class StrategyInferCommand : public Command {
 public:
  explicit StrategyInferCommand(CLI::App& parent);
  int Run() override;

 private:
  StrategyInference options_;
  TableOptions table_;
};

class StrategyMakeCommand : public Command {
 public:
  explicit StrategyMakeCommand(CLI::App& parent);
  int Run() override;

 private:
  MakeStrategyOptions options_;
  TableOptions table_;
};

// `reshard verify`: reads a finished target folder again and reports damage, or proves it from its
// sources.
class VerifyCommand : public Command {
 public:
  explicit VerifyCommand(CLI::App& parent);
  int Run() override;

 private:
  // With --against.
  void AddAgainst();
  int RunAgainst();

  void PrintText(const DamageReport& report) const;

  Verification options_;
  Proof against_;
  TableOptions table_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_COMMANDS_H_
