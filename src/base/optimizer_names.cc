#include "reshard/optimizer_names.h"

namespace reshard {

std::string_view OptimizerGroup(std::string_view name) {
  constexpr std::string_view kGroups[] = {"adam_m",  "adam_v",  "accu_grads",
                                          "moments", "moment1", "moment2"};
  for (const std::string_view group : kGroups) {
    if (name.starts_with(group) && name.substr(group.size()).starts_with('.')) return group;
  }
  return {};
}

}  // namespace reshard
