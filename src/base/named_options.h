// NamedOptions: the options and functions that a message names in backticks (reshard/status.h). A
// pure function.
#ifndef RESHARD_SRC_BASE_NAMED_OPTIONS_H_
#define RESHARD_SRC_BASE_NAMED_OPTIONS_H_

#include <cstddef>
#include <string_view>
#include <vector>

namespace reshard {

// An option, or a function, which has a capital letter.
struct NamedOption {
  std::string_view name;   // `source.strategy`, `Verify`
  std::string_view value;  // the text after "="; may be empty
  size_t offset = 0;       // in the message, of the first of `length` bytes, backticks included
  size_t length = 0;
};

// Returns the options and functions that `message` names, in its order. The results are views into
// `message`.
std::vector<NamedOption> NamedOptions(std::string_view message);

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_NAMED_OPTIONS_H_
