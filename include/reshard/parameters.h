// Names of parameters: GlobMatch, OptimizerGroup. The number of parameters of a model, by which
// people know it: ParameterTotals. Numbers of parameters and sizes as people read them:
// ParameterCountText, FormatBytes.
//
// Pure functions, for any thread.
//
// Implemented in src/base.
#ifndef RESHARD_PARAMETERS_H_
#define RESHARD_PARAMETERS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "reshard/status.h"

namespace reshard {
inline namespace v0_1 {

// Returns whether `pattern` matches the whole of `name`: * any bytes, ? one byte, [a-z] one of a
// set, [!a-z] one not in it, \ takes the next character as it is. A [ without its ] stands for
// itself. Takes time proportional to the product of the lengths at most.
bool GlobMatch(std::string_view pattern, std::string_view name);

// Returns "adam_m", "adam_v", "accu_grads", "moments", "moment1" or "moment2" where `name` begins
// with that and a dot, as MindSpore's optimizers name their copies of a parameter; else nothing.
std::string_view OptimizerGroup(std::string_view name);

// Elements of the floating-point tensors with more than one, each name counted once: every element
// is a parameter, as in "a model of 6.74 B parameters".
struct ParameterTotals {
  uint64_t weights = 0;
  uint64_t optimizer = 0;  // of the optimizer's copies (OptimizerGroup)

  friend bool operator==(const ParameterTotals&, const ParameterTotals&) = default;
};

// A number as people state it: 6.74B is 6,740,000,000 to the nearest 10,000,000.
struct RoundedCount {
  uint64_t count = 0;
  uint64_t precision = 1;  // at least 1
};

// Parses "6740000000", which is exact, or a number with K, M, B or T for powers of 1,000, which may
// have decimals: "6.74B". Errors: kInvalidArgument.
Result<RoundedCount> ParseParameterCount(std::string_view text);

// Returns whether `exact` rounds to `stated`.
bool RoundsTo(uint64_t exact, const RoundedCount& stated);

// Returns "512", "123.4 K", "6.74 B".
std::string ParameterCountText(uint64_t count);

// Returns "512 B", "1.5 KiB", "34.0 GiB".
std::string FormatBytes(uint64_t bytes);

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_PARAMETERS_H_
