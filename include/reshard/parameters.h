// Names of parameters: GlobMatch, OptimizerGroup, ParameterOfState. The number of parameters of a
// model, by which people know it: ParameterTotals. Numbers of parameters and sizes as people read
// them: ParameterCountText, FormatBytes.
//
// Pure functions, for any thread.
//
// Implemented in src/base.
#ifndef RESHARD_PARAMETERS_H_
#define RESHARD_PARAMETERS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "reshard/status.h"

namespace reshard {
inline namespace v0_1 {

// Returns whether `pattern` matches the whole of `name`: * any bytes, ? one byte, [a-z] one of a
// set, [!a-z] one not in it, \ takes the next character as it is. A [ without its ] stands for
// itself. Takes time proportional to the product of the lengths at most.
bool GlobMatch(std::string_view pattern, std::string_view name);

// Whether a checkpoint has a parameter of this name.
using HasParameter = std::function<bool(std::string_view name)>;

// Returns the group of an optimizer state, such as "adam_m" for "adam_m.w", and nothing for a name
// of another form. The list is of the optimizers of MindSpore and MindFormers
// (src/base/optimizer_states.inc). A few of its prefixes, such as "linear.", name modules of
// networks as well: these count if `has` finds the parameter behind the prefix or another state of
// it. What is returned is a literal.
std::string_view OptimizerGroup(std::string_view name, const HasParameter& has);
// As above, if nothing else of the checkpoint is known: those few prefixes do not count.
std::string_view OptimizerGroup(std::string_view name);

// Returns NAME of "adam_m.NAME" and the like: the parameter that the state has the shape of, if it
// exists. Nothing for other names. The few prefixes above count.
std::string_view ParameterOfState(std::string_view name);

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

  friend bool operator==(const RoundedCount&, const RoundedCount&) = default;
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
