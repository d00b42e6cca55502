#include "tools/page/text_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>

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

// Whether a terminal hides a character, or lets it change the order of others, so that a name would
// look like another one. These are soft hyphens, zero-width and bidirectional controls, tags and
// others.
bool IsHidden(uint32_t code) {
  struct Range {
    uint32_t first;
    uint32_t last;
  };
  constexpr Range kHidden[] = {{0xad, 0xad},     {0x61c, 0x61c},   {0x180e, 0x180e},
                               {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
                               {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
  return std::any_of(std::begin(kHidden), std::end(kHidden), [code](const Range& range) {
    return range.first <= code && code <= range.last;
  });
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
    } else if (IsHidden(code)) {
      out += code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

// A very long name pushes the rest of its line to the right instead of widening every line.
constexpr size_t kWidestPadding = 60;

// Characters of UTF-8 text.
size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80;
  }));
}

}  // namespace

std::string PrintableName(std::string_view name) { return Escaped(name, false); }

std::string PrintableText(std::string_view text) { return Escaped(text, true); }

std::string PrintableNames(const std::vector<std::string>& names, uint64_t count) {
  constexpr size_t kMostNames = 3;
  const size_t shown = std::min(kMostNames, names.size());
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    text += (text.empty() ? "" : ", ") + (names[i].empty() ? "(empty)" : PrintableName(names[i]));
  }
  const uint64_t more = count - shown;
  return more == 0 ? text : fmt::format("{} and {} more", text, more);
}

std::string FormatRate(uint64_t bytes, double seconds) {
  if (seconds <= 0) return "";
  return FormatBytes(static_cast<uint64_t>(static_cast<double>(bytes) / seconds)) + "/s";
}

std::string FormatSeconds(double seconds) {
  return seconds < 59.995 ? fmt::format("{:.2f} s", seconds) : FormatClock(seconds);
}

std::string FormatClock(double seconds) {
  const int64_t whole = std::llround(seconds);
  const int64_t minutes = whole / 60;
  if (minutes < 60) return fmt::format("{}:{:02}", minutes, whole % 60);
  return fmt::format("{}:{:02}:{:02}", minutes / 60, minutes % 60, whole % 60);
}

std::string FormatCount(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::vector<ConsecutiveRanks> ConsecutiveIn(const std::vector<int64_t>& ranks) {
  std::vector<ConsecutiveRanks> ranges;
  for (const int64_t rank : ranks) {
    if (!ranges.empty() && ranges.back().last + 1 == rank) {
      ranges.back().last = rank;
    } else {
      ranges.push_back({rank, rank});
    }
  }
  return ranges;
}

std::string FormatConsecutive(const ConsecutiveRanks& range) {
  return range.first == range.last ? fmt::format("{}", range.first)
                                   : fmt::format("{}-{}", range.first, range.last);
}

std::string FormatRanks(const std::vector<int64_t>& ranks) {
  if (ranks.empty()) return "none";
  std::string out;
  for (const ConsecutiveRanks& range : ConsecutiveIn(ranks)) {
    out += (out.empty() ? "" : ", ") + FormatConsecutive(range);
  }
  return out;
}

std::string FormatList(const std::vector<int64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

std::string Table::ToText() const {
  std::vector<size_t> widths;
  std::vector<std::string> headers;
  for (const Column& column : columns_) {
    widths.push_back(column.header.size());
    headers.emplace_back(column.header);
  }
  for (const std::vector<std::string>& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], std::min(DisplayWidth(row[i]), kWidestPadding));
    }
  }
  std::string out;
  const bool named = std::any_of(headers.begin(), headers.end(),
                                 [](const std::string& header) { return !header.empty(); });
  if (named) out += Line(headers, widths);
  for (const std::vector<std::string>& row : rows_) out += Line(row, widths);
  return out;
}

std::string Table::Line(const std::vector<std::string>& cells,
                        const std::vector<size_t>& widths) const {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    line += "  ";
    const size_t width = DisplayWidth(cells[i]);
    const std::string padding(widths[i] > width ? widths[i] - width : 0, ' ');
    const bool right = columns_[i].align == Align::kRight;
    if (right) line += padding;
    line += cells[i];
    if (!right) line += padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace reshard
