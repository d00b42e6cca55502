// What options of a conversion have to be, before anything is opened.
#ifndef RESHARD_SRC_CONVERT_OPTION_CHECKS_H_
#define RESHARD_SRC_CONVERT_OPTION_CHECKS_H_

#include <set>
#include <string>
#include <string_view>

#include "reshard/convert.h"
#include "reshard/status.h"
#include "src/options/option_table.h"

namespace reshard {

// Errors: kInvalidArgument, with what to give instead; kIo.
Status CheckConvertOptions(const ConvertOptions& options);
// What of it is not of the target folder or the run, but for the name of the source.
Status CheckSpec(const ConversionSpec& spec);
Status CheckRecodeOptions(const RecodeOptions& options);

// Returns where the options of these calls go. Points into `options`.
OptionParts PartsOf(ConvertOptions& options);

// `given` has nothing that the call `name` does not take: by the option table, and by `own`, names
// of options that it takes in a way of its own. Errors: kInvalidArgument, naming the option.
Status CheckTakes(const ConvertOptions& given, Call call, std::string_view name,
                  const std::set<std::string_view>& own);

// Whether the format that `target` asks for goes with what else is asked for. Errors:
// kInvalidArgument.
Status CheckFormat(const TargetSpec& target, const Selection& selection);

// Returns whether full tensors are to become full tensors in another form: any in a folder of whole
// tensors, or those of such a folder in one file, if a format is given. Needs no strategy. Errors:
// those of FindFullFolder; kIo.
Result<bool> IsWithoutStrategies(const SourceSpec& source, const TargetSpec& target);

// The folder `target` must not be, or lie in, the folder or file `source`.
// Errors: kInvalidArgument; kIo.
Status CheckOutside(const std::string& target, const std::string& source);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_OPTION_CHECKS_H_
