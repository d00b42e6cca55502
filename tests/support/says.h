// Matches a Warning by its code, and a message by what it names.
#ifndef RESHARD_TESTS_SUPPORT_SAYS_H_
#define RESHARD_TESTS_SUPPORT_SAYS_H_

#include <gmock/gmock.h>

#include <ostream>
#include <string>

#include "reshard/status.h"

namespace reshard {

inline testing::Matcher<const Warning&> Says(
    WarningCode code, const testing::Matcher<const std::string&>& message = testing::_) {
  return testing::AllOf(testing::Field("code", &Warning::code, code),
                        testing::Field("message", &Warning::message, message));
}

// Matches a message that has each of `data` in it, whatever its words are: files, parameters,
// ranks, boxes, offsets, options in backticks.
template <typename... Data>
auto Naming(const Data&... data) {
  return testing::AllOf(testing::HasSubstr(std::string(data))...);
}

// How tests print one.
inline void PrintTo(const Warning& warning, std::ostream* out) {
  *out << WarningCodeName(warning.code) << ": " << warning.message;
}

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_SAYS_H_
