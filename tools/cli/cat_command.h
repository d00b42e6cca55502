// `reshard cat`: one file of a conversion, passed on instead of written.
#ifndef RESHARD_TOOLS_CLI_CAT_COMMAND_H_
#define RESHARD_TOOLS_CLI_CAT_COMMAND_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "reshard/target_view.h"
#include "src/frontend/byte_output.h"
#include "src/frontend/option_parts.h"
#include "tools/cli/command.h"
#include "tools/cli/table_options.h"

namespace reshard {

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
  Result<ViewedConversion> Options() const;
  // Returns the number of the file that is asked for. `view` is of `options`.
  Result<size_t> FileOf(const TargetView& view) const;
  Result<Done> PassOn(const ViewedConversion& options, ByteOutput& output);

  ViewedConversion options_;  // without the options of the table
  TableOptions table_;
  std::optional<int64_t> rank_;
  std::optional<ByteRange> range_;
  std::string output_;  // empty: standard output
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_CAT_COMMAND_H_
