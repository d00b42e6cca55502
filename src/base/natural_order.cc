#include "src/base/natural_order.h"

#include <algorithm>
#include <cstddef>

namespace reshard {
namespace {

// Takes the digits, or else the byte, that `rest` begins with.
std::string_view TakeToken(std::string_view& rest) {
  const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const std::string_view token = rest.substr(0, std::max<size_t>(digits, 1));
  rest.remove_prefix(token.size());
  return token;
}

bool IsNumber(std::string_view token) { return token[0] >= '0' && token[0] <= '9'; }

std::string_view WithoutZeros(std::string_view number) {
  return number.substr(std::min(number.find_first_not_of('0'), number.size()));
}

}  // namespace

bool IsNaturallyBefore(std::string_view a, std::string_view b) {
  std::string_view rest_a = a;
  std::string_view rest_b = b;
  while (!rest_a.empty() && !rest_b.empty()) {
    std::string_view token_a = TakeToken(rest_a);
    std::string_view token_b = TakeToken(rest_b);
    if (IsNumber(token_a) && IsNumber(token_b)) {
      token_a = WithoutZeros(token_a);
      token_b = WithoutZeros(token_b);
      if (token_a.size() != token_b.size()) return token_a.size() < token_b.size();
    }
    if (token_a != token_b) return token_a < token_b;
  }
  if (rest_a.empty() != rest_b.empty()) return rest_a.empty();
  return a < b;
}

}  // namespace reshard
