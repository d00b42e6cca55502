#include "src/base/quote.h"

#include <cstddef>

namespace reshard {
namespace {

void AppendEscaped(std::string_view name, std::string& out) {
  constexpr char kHex[] = "0123456789abcdef";
  for (const char c : name) {
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
}

}  // namespace

std::string Escape(std::string_view name) {
  constexpr size_t kKept = 256;  // at either end
  std::string out;
  if (name.size() <= 2 * kKept) {
    AppendEscaped(name, out);
  } else {
    AppendEscaped(name.substr(0, kKept), out);
    out += "...";
    AppendEscaped(name.substr(name.size() - kKept), out);
  }
  return out;
}

std::string Quote(std::string_view name) { return '"' + Escape(name) + '"'; }

}  // namespace reshard
