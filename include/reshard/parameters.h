// Names of parameters: GlobMatch, OptimizerGroup, ParameterOfState. The number of parameters of a
// model, in the usual sense: Findings::Totals. Numbers of parameters and sizes as text for people:
// ParameterCountText, FormatBytes.
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

namespace reshard {
inline namespace v0_1 {

// Returns whether `pattern` matches the whole of `name`. * matches any bytes, ? one byte, [a-z] one
// byte of a set, [!a-z] one byte outside it. \ takes the next character as it is. A [ without its ]
// stands for itself. The time is at most proportional to the product of the lengths.
bool GlobMatch(std::string_view pattern, std::string_view name);

// Returns the group of an optimizer state, such as "adam_m" for "adam_m.w", or "" for another name.
// The groups are those of the optimizers of MindSpore and MindFormers
// (src/base/optimizer_states.inc). Modules of networks also use a few of the prefixes, such as
// "linear.". Such a prefix counts only if `has` finds the parameter behind it, or another state of
// that parameter. The result is a literal.
std::string_view OptimizerGroup(std::string_view name,
                                const std::function<bool(std::string_view)>& has);
// As above, if other names are unknown: the prefixes that modules also use do not count.
std::string_view OptimizerGroup(std::string_view name);

// Returns NAME of "adam_m.NAME" and the like, or "" for other names. If that parameter exists, it
// has the shape of the state. The few prefixes above count.
std::string_view ParameterOfState(std::string_view name);

// Returns "512", "123.4 K", "6.74 B".
std::string ParameterCountText(uint64_t count);

// Returns "512 B", "1.5 KiB", "34.0 GiB".
std::string FormatBytes(uint64_t bytes);

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_PARAMETERS_H_
