// The optimizer's copies of parameters, which are cut as their parameters are.
//
// Pure; any thread.
#ifndef RESHARD_SRC_LAYOUT_OPTIMIZER_COPY_H_
#define RESHARD_SRC_LAYOUT_OPTIMIZER_COPY_H_

#include <array>
#include <optional>
#include <string_view>

namespace reshard {

// Returns NAME of `moments.NAME` and the like, or nothing for a name of another form.
inline std::optional<std::string_view> ParameterOfCopy(std::string_view name) {
  constexpr std::array<std::string_view, 4> kPrefixes = {"moments.", "adam_m.", "adam_v.",
                                                         "accu_grads."};
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix) && name.size() > prefix.size()) return name.substr(prefix.size());
  }
  return std::nullopt;
}

}  // namespace reshard

#endif  // RESHARD_SRC_LAYOUT_OPTIMIZER_COPY_H_
