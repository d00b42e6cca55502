// Options of conversions as records have them (SPEC.md): JSON by the type of the option, so that a
// row of the option table is all that a new one needs.
//
// Pure functions; any thread.
#ifndef RESHARD_SRC_RECORD_OPTION_JSON_H_
#define RESHARD_SRC_RECORD_OPTION_JSON_H_

#include <string>

#include "reshard/options.h"
#include "src/options/option_table.h"
#include "src/record/line_values.h"

namespace reshard {

// Returns the members of a JSON object, such as `"prefix":"net"`, that tell of `value`; empty where
// records have no values of its type.
std::string OptionAsJson(const Option& option, const OptionValue& value);

// Returns the object of those options that change bytes, but for what has members of its own: each
// that is not as usual, and the size of a file in a format that has one.
std::string OptionsAsJson(ConversionSpec spec);

// Sets in `spec` what such an object, the member "options" of a line, has of the options that a
// check of the target takes. What is not as OptionAsJson writes it makes `line` not ok.
void ReadOptions(LineValues& line, ConversionSpec& spec);

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_OPTION_JSON_H_
