#include "src/base/quote.h"

#include <cstddef>

namespace reshard {

std::string Escape(std::string_view name) {
  constexpr size_t kLongest = 256;
  constexpr char kHex[] = "0123456789abcdef";
  const bool cut = name.size() > kLongest;
  std::string out;
  for (const char c : name.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 0xf];
    } else {
      out += c;
    }
  }
  if (cut) out += "...";
  return out;
}

std::string Quote(std::string_view name) { return '"' + Escape(name) + '"'; }

}  // namespace reshard
