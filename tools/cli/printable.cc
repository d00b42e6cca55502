#include "tools/cli/printable.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

namespace reshard {
namespace {

struct Character {
  uint32_t code_point = 0;
  size_t bytes = 0;  // 0: no valid UTF-8
};

// Decodes the first character of `text`, which is not empty.
Character FirstCharacter(std::string_view text) {
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // shorter ones have to be short
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  uint32_t code_point = lead & (0x7fU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0U) != 0x80) return {};
    code_point = code_point << 6 | (next & 0x3fU);
  }
  const bool surrogate = code_point >= 0xd800 && code_point < 0xe000;
  if (code_point < kLeast[bytes] || code_point > 0x10ffff || surrogate) return {};
  return {code_point, bytes};
}

std::string Escaped(std::string_view text, bool keep_lines) {
  std::string out;
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    const size_t bytes = character.bytes == 0 ? 1 : character.bytes;
    const uint32_t code = character.code_point;
    if (character.bytes == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (!keep_lines && (code == '\n' || code == '\\')) {
      out += code == '\n' ? "\\n" : "\\\\";
    } else if ((code < 0x20 && code != '\n') || code == 0x7f) {
      out += fmt::format("\\x{:02x}", code);
    } else if (code >= 0x80 && code < 0xa0) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace

std::string PrintableName(std::string_view name) { return Escaped(name, false); }

std::string PrintableText(std::string_view text) { return Escaped(text, true); }

std::string PrintableNames(const std::vector<std::string>& names, uint64_t count) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + (name.empty() ? "(empty)" : PrintableName(name));
  }
  const uint64_t more = count - names.size();
  return more == 0 ? text : fmt::format("{} and {} more", text, more);
}

}  // namespace reshard
