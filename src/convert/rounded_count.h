// RoundedCount: a number of parameters as people state it, such as 6.74B.
//
// Pure functions, for any thread.
#ifndef RESHARD_SRC_CONVERT_ROUNDED_COUNT_H_
#define RESHARD_SRC_CONVERT_ROUNDED_COUNT_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard {

// A number in the usual rounded form: 6.74B is 6,740,000,000 to the nearest 10,000,000.
struct RoundedCount {
  uint64_t count = 0;
  uint64_t precision = 1;  // at least 1
};

// Parses a text of the form of CheckChoice::parameters. Errors: kInvalidArgument.
Result<RoundedCount> ParseParameterCount(std::string_view text);

// Returns CheckChoice::parameters; no value if it is empty. Errors: kInvalidArgument, naming the
// option.
Result<std::optional<RoundedCount>> ExpectedParameters(const CheckChoice& checks);

// Returns whether `exact` rounds to `stated`.
bool RoundsTo(uint64_t exact, const RoundedCount& stated);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_ROUNDED_COUNT_H_
