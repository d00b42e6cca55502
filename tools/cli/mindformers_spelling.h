// MindFormersSpelling: the options of MindFormers' transform_checkpoint.py, as another way to say
// what `convert` is to do.
#ifndef RESHARD_TOOLS_CLI_MINDFORMERS_SPELLING_H_
#define RESHARD_TOOLS_CLI_MINDFORMERS_SPELLING_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "reshard/convert.h"
#include "reshard/status.h"

namespace reshard {

// A plain value that the parser writes into.
class MindFormersSpelling {
 public:
  // Adds them in a group of their own; each excludes reshard's own option of the same meaning,
  // which `app` has already. `app` keeps pointers into this object.
  void AddTo(CLI::App& app);

  // After parsing. Paths that were not given are empty.
  const std::string& source() const { return source_; }
  const std::string& target() const { return target_; }
  // Sets in `options` what was given of the rest.
  void ApplyTo(ConvertOptions& options) const;

  // Fails with kInvalidArgument where the target strategy has another number of ranks than
  // --world_size says. Errors: those of ReadStrategy.
  Status CheckWorldSize(const std::string& target_strategy) const;

  // Returns what a process of MindFormers would do beyond what is done here, or nothing.
  std::optional<std::string> Warning() const;

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

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_MINDFORMERS_SPELLING_H_
