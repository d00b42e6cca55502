// `reshard inspect`: the contents of checkpoint files, folders of ranks and strategies.
#ifndef RESHARD_TOOLS_CLI_INSPECT_COMMAND_H_
#define RESHARD_TOOLS_CLI_INSPECT_COMMAND_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/encryption.h"
#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"
#include "src/frontend/report_fields.h"
#include "tools/cli/command.h"
#include "tools/cli/module_tree.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/table_options.h"
#include "tools/page/text_format.h"

namespace reshard {

// The checkpoints of a folder, similar ones together, and their contents by module. A plain value.
class FolderSummary {
 public:
  void Add(const Checkpoint& checkpoint, std::optional<int64_t> rank,
           const std::vector<const StoredArray*>& parameters);

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

// Reports files that cannot be read, and still shows the rest; the first error decides the exit
// code. Opens and prints checkpoints one after the other, since a folder may have thousands.
class InspectCommand : public Command {
 public:
  explicit InspectCommand(CLI::App& parent);
  int Run() override;
  bool OpensFilesOneByOne() const override { return true; }

 private:
  void InspectPath(const std::string& path);
  void InspectFile(const std::string& path);
  void InspectFolder(const std::string& path);
  void TellIfUnfinished(const std::string& folder) const;
  // A folder without rank folders. `not_ranks` says so.
  void InspectFiles(const std::string& path, const Status& not_ranks);
  void BeginFolder(const std::string& path, uint64_t files, const std::string& step);
  void EndFolder();
  Status CheckOptions() const;
  // For the full tensors of a sharded checkpoint: their values, the ranks that hold one tensor, or
  // the cuts of all.
  void InspectValues(const std::string& path);
  void InspectShards(const std::string& path);
  void InspectTensors(const std::string& path);
  void ShowCheckpoint(const Checkpoint& checkpoint, std::optional<int64_t> rank);
  SourceSpec SourceOf(const std::string& path) const;
  Result<StatisticsReport> Measure(const std::string& path) const;
  void ShowStrategy(const Strategy& strategy);
  void Warn(const std::vector<Warning>& warnings);
  void Report(const std::string& path, const Status& status);

  std::vector<std::string> paths_;
  NameFilter filter_;
  TableOptions table_;
  SourceSpec source_;  // without its path
  std::shared_ptr<const EncryptionKey> key_;
  std::string strategy_;
  std::string parameter_;
  bool values_ = false;
  bool long_ = false;
  int jobs_ = 2;

  std::optional<FolderSummary> folder_;  // of the current path, if a folder is shown
  bool only_folders_ = true;             // were shown so far
  uint64_t checkpoints_ = 0;             // shown so far
  Inspection found_;                     // its totals are of the shown parameters
  bool filter_matched_ = false;
  bool cancelled_ = false;
  int exit_code_ = 0;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_INSPECT_COMMAND_H_
