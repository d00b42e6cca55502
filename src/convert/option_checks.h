// Checks the options of a conversion before any file is opened.
#ifndef RESHARD_SRC_CONVERT_OPTION_CHECKS_H_
#define RESHARD_SRC_CONVERT_OPTION_CHECKS_H_

#include <set>
#include <string>
#include <string_view>

#include "reshard/convert.h"
#include "reshard/status.h"
#include "src/options/option_table.h"

namespace reshard {

// Errors: kInvalidArgument, with advice; kIo.
Status CheckConvertOptions(const ConvertOptions& options);
// Checks the options that do not concern the target folder or the run, without the source's path.
Status CheckSpec(const ConversionSpec& spec);
Status CheckRecodeOptions(const RecodeOptions& options);

// Returns the destinations for the calls' options. Points into `options`.
OptionParts PartsOf(ConvertOptions& options);

// Checks that `given` has only options that the call `name` takes. Errors: kInvalidArgument, naming
// the option.
Status CheckTakes(const ConvertOptions& given, Call call, std::string_view name);

// Checks that the format of `target` fits the other options. Errors: kInvalidArgument.
Status CheckFormat(const TargetSpec& target, const Selection& selection);

// Returns whether the target is a cluster whose strategy is made.
inline bool HasCluster(const TargetSpec& target) { return target.cluster != Cluster(); }

// Returns whether no strategy is given, and one is needed. `source` is InRunFolder's. Full tensors
// need none to become full tensors in another form: any in a folder of full tensors, and those of
// such a folder in one file if a format is given. Errors: as FindFullFolder; kIo.
Result<bool> LacksStrategies(const SourceSpec& source, const TargetSpec& target);

// The folder `target` must not be, or lie in, the folder or file `source`.
// Errors: kInvalidArgument; kIo.
Status CheckOutside(const std::string& target, const std::string& source);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_OPTION_CHECKS_H_
