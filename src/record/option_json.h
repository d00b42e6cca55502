// Options of conversions in JSON, as records have them (SPEC.md). The form follows from the type of
// the option, so a new option needs only its row in the option table.
//
// Pure functions; any thread.
#ifndef RESHARD_SRC_RECORD_OPTION_JSON_H_
#define RESHARD_SRC_RECORD_OPTION_JSON_H_

#include <string>

#include "reshard/options.h"
#include "src/options/option_table.h"
#include "src/record/line_values.h"

namespace reshard {

// Returns the members of a JSON object, such as `"prefix":"net"`, that describe `value`; empty if
// records have no values of its type.
std::string OptionAsJson(const Option& option, const OptionValue& value);

// Returns an object of the options that change bytes and differ from their defaults. A format that
// has a file size always states it. Options with members of their own are left out.
std::string OptionsAsJson(ConversionSpec spec);

// Reads such an object, the member "options" of `line`, into `spec`: the options that a check of
// the target takes. If a value has another form than OptionAsJson writes, `line` is not ok.
void ReadOptions(LineValues& line, ConversionSpec& spec);

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_OPTION_JSON_H_
