// What the names of parameters say: GlobMatch, OptimizerGroup.
//
// Pure functions, for any thread.
//
// Implemented in src/base.
#ifndef RESHARD_PARAMETER_NAMES_H_
#define RESHARD_PARAMETER_NAMES_H_

#include <string_view>

namespace reshard {
inline namespace v0_1 {

// Returns whether `pattern` matches the whole of `name`: * any bytes, ? one byte, [a-z] one of a
// set, [!a-z] one not in it, \ takes the next character as it is. A [ without its ] stands for
// itself. Takes time proportional to the product of the lengths at most.
bool GlobMatch(std::string_view pattern, std::string_view name);

// Returns "adam_m", "adam_v", "accu_grads", "moments", "moment1" or "moment2" where `name` begins
// with that and a dot, as MindSpore's optimizers name their copies of a parameter; else nothing.
std::string_view OptimizerGroup(std::string_view name);

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_PARAMETER_NAMES_H_
