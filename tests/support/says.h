// Matches a Warning by its code and, where the words matter, its message.
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

// How tests print one.
inline void PrintTo(const Warning& warning, std::ostream* out) {
  *out << WarningCodeName(warning.code) << ": " << warning.message;
}

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_SAYS_H_
