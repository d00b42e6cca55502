// OptimizerGroup: what the names of an optimizer's copies of parameters begin with.
//
// A pure function, for any thread.
//
// Implemented in src/base.
#ifndef RESHARD_OPTIMIZER_NAMES_H_
#define RESHARD_OPTIMIZER_NAMES_H_

#include <string_view>

namespace reshard {

// Returns "adam_m", "adam_v", "accu_grads", "moments", "moment1" or "moment2" where `name` begins
// with that and a dot, as MindSpore's optimizers name their copies of a parameter; else nothing.
std::string_view OptimizerGroup(std::string_view name);

}  // namespace reshard

#endif  // RESHARD_OPTIMIZER_NAMES_H_
