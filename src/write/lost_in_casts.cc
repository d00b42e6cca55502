#include "src/write/lost_in_casts.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/quote.h"

namespace reshard {

Status CheckNoOverflow(const std::string& path, const std::vector<LostValues>& lost) {
  const auto overflowed = std::find_if(lost.begin(), lost.end(),
                                       [](const LostValues& values) { return values.values > 0; });
  if (overflowed == lost.end()) return {};
  return MismatchError(fmt::format(
      "{}: a cast made {} finite value{} of the parameter {} infinite or NaN, too large for the "
      "dtype that they were cast to; cast to one of a larger range, or leave the parameter as it "
      "is",
      Escape(path), overflowed->values, overflowed->values == 1 ? "" : "s",
      Quote(overflowed->name)));
}

}  // namespace reshard
