#include "src/record/byte_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <nlohmann/json.hpp>

namespace reshard {
namespace {

using nlohmann::json;

constexpr unsigned char kFirstHigh = 0x80;
constexpr char kFirstPlain = ' ';
constexpr char kLastPlain = '~';

// With two backslashes for each, and, where asked for, \xHH for each byte beyond ASCII.
std::string Escaped(std::string_view bytes, bool escape_high) {
  std::string text;
  text.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      text += "\\\\";
    } else if (escape_high && byte >= kFirstHigh) {
      text += fmt::format("\\x{:02x}", byte);
    } else {
      text += c;
    }
  }
  return text;
}

// Whether JSON writes these bytes as they are, which is so for nearly all names.
bool IsPlain(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    return c >= kFirstPlain && c <= kLastPlain && c != '"' && c != '\\';
  });
}

}  // namespace

std::string BytesAsJson(std::string_view bytes) {
  if (IsPlain(bytes)) return fmt::format("\"{}\"", bytes);
  try {
    return json(Escaped(bytes, false)).dump();
  } catch (const json::type_error&) {  // not UTF-8
    return json(Escaped(bytes, true)).dump();
  }
}

std::optional<std::string> BytesOfText(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) return std::string(text);
  constexpr size_t kHexBytes = 4;  // of \xHH
  std::string bytes;
  for (std::string_view rest = text; !rest.empty();) {
    if (rest[0] != '\\') {
      bytes += rest[0];
      rest.remove_prefix(1);
    } else if (rest.starts_with("\\\\")) {
      bytes += '\\';
      rest.remove_prefix(2);
    } else {
      const char* const end = rest.data() + std::min(rest.size(), kHexBytes);
      unsigned char byte = 0;
      if (!rest.starts_with("\\x") ||
          std::from_chars(rest.data() + 2, end, byte, 16).ptr != rest.data() + kHexBytes) {
        return std::nullopt;
      }
      bytes += static_cast<char>(byte);
      rest.remove_prefix(kHexBytes);
    }
  }
  // Other bytes may not come like this: each comes in one way only.
  if (BytesAsJson(bytes) != json(text).dump()) return std::nullopt;
  return bytes;
}

}  // namespace reshard
