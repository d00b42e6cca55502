#include "src/base/quote.h"

#include <algorithm>
#include <cstddef>

namespace reshard {
namespace {

// Lists in messages are cut to this many items.
constexpr size_t kShown = 20;

void AppendEscaped(std::string_view name, std::string& out) {
  constexpr char kHex[] = "0123456789abcdef";
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const auto byte = static_cast<unsigned char>(c);
    // U+0080 to U+009F in UTF-8: control characters too.
    const bool c1 = byte == 0xc2 && i + 1 < name.size() &&
                    (static_cast<unsigned char>(name[i + 1]) & 0xe0) == 0x80;
    if (c == '\n') {
      out += "\\n";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 0xf];
    } else if (c1) {
      const auto next = static_cast<unsigned char>(name[++i]);
      out += "\\u00";
      out += kHex[next >> 4];
      out += kHex[next & 0xf];
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

std::string FirstNumbers(const std::vector<int64_t>& numbers) {
  std::string list = "[";
  for (size_t i = 0; i < std::min(numbers.size(), kShown); ++i) {
    if (i != 0) list += ", ";
    list += std::to_string(numbers[i]);
  }
  if (numbers.size() > kShown) list += " and " + std::to_string(numbers.size() - kShown) + " more";
  return list + "]";
}

std::string FirstOf(const std::vector<std::string>& items) {
  std::string list;
  for (size_t i = 0; i < std::min(items.size(), kShown); ++i) {
    if (i != 0) list += ", ";
    list += items[i];
  }
  if (items.size() > kShown) list += " and " + std::to_string(items.size() - kShown) + " more";
  return list;
}

std::string Quote(std::string_view name) { return '"' + Escape(name) + '"'; }

}  // namespace reshard
