// `inspect`: the contents of files, folders of ranks and strategies. Prints nothing; the program
// and the Python module show them.
#ifndef RESHARD_TOOLS_PAGE_INSPECTION_H_
#define RESHARD_TOOLS_PAGE_INSPECTION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "reshard/strategy.h"
#include "src/frontend/option_parts.h"
#include "src/frontend/report_fields.h"

namespace reshard {

// Which parameters are shown. A plain value.
struct NameFilter {
  std::vector<std::string> include;
  std::vector<std::string> exclude;

  // Whether any pattern was given.
  bool given() const { return !include.empty() || !exclude.empty(); }
  // Whether a pattern of `include` matches, or there are none, and no pattern of `exclude` matches.
  bool Takes(std::string_view name) const;
  // The warning if it takes no parameters.
  Warning NothingTaken() const;
};

inline OptionParts PartsOf(NameFilter& filter) {
  return {.include = &filter.include, .exclude = &filter.exclude};
}

// The strategy with the parameters that the filter takes.
ShownStrategy ShownOf(const Strategy& strategy, const NameFilter& filter);

// `source` is of each path, and has none itself. With a strategy, the full tensors of the
// checkpoint at each path are shown.
struct InspectOptions : ContentOptions {
  std::vector<std::string> paths;
  std::string tensor;   // show only this one, whatever the patterns
  bool values = false;  // read the content and measure it
};

// Takes the results of Inspect one after the other.
class InspectSink {
 public:
  virtual ~InspectSink() = default;

  virtual void Notes(const std::vector<std::string>& /*notes*/) {}
  virtual void Warnings(const std::vector<Warning>& /*warnings*/) {}
  virtual void Error(const Status& /*status*/) {}
  // The files up to EndFolder are in the folder.
  virtual void BeginFolder(const std::string& /*path*/, uint64_t /*files*/,
                           const std::string& /*step*/) {}
  virtual void EndFolder() {}
  // `file` is valid during the call.
  virtual void File(const Checkpoint& checkpoint, const InspectedFile& file) = 0;
  virtual void Layouts(const ShownStrategy& /*strategy*/) {}
  // Each of the full tensors that EndTensors has then. Returns whether to keep it until then.
  virtual void BeginTensors() {}
  virtual bool KeepsTensor(const CutTensor& /*cut*/) { return true; }
  virtual void EndTensors(const FullTensors& /*tensors*/) {}

  // Returns advice about a tensor that the checkpoint does not have, such as "; did you mean a?".
  virtual std::string AdviceFor(const std::string& /*tensor*/,
                                const ShardedCheckpoint& /*checkpoint*/) {
    return {};
  }
  virtual Result<StatisticsReport> Measure(const ContentOptions& options) {
    return MeasureValues(options);
  }
};

// Shows the rest if a file cannot be read. Opens checkpoints one after the other, since a folder
// may have thousands. The result is without the files.
Inspection Inspect(const InspectOptions& options, InspectSink& to);

// As above; the result has the files. If there is nothing but errors, returns the first.
Result<Inspection> InspectAll(const InspectOptions& options);

}  // namespace reshard

#endif  // RESHARD_TOOLS_PAGE_INSPECTION_H_
