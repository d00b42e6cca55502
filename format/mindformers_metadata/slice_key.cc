#include "format/mindformers_metadata/slice_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace reshard {
namespace {

struct Points {
  uint32_t first = 0;
  uint32_t last = 0;
};

// Those beyond ASCII that Python escapes: controls, blanks, formats, surrogates, private ones.
// Unassigned ones are not here: they differ between versions of Python.
constexpr Points kEscaped[] = {
    {0x7f, 0xa0},     {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},   {0x6dd, 0x6dd},
    {0x70f, 0x70f},   {0x1680, 0x1680},   {0x180e, 0x180e},   {0x2000, 0x200f}, {0x2028, 0x202f},
    {0x205f, 0x206f}, {0x3000, 0x3000},   {0xd800, 0xf8ff},   {0xfeff, 0xfeff}, {0xfff0, 0xfffb},
    {0xfffe, 0xffff}, {0xe0000, 0xe007f}, {0xf0000, 0x10ffff}};

bool IsEscaped(uint32_t point) {
  return point < 0x20 ||
         std::any_of(std::begin(kEscaped), std::end(kEscaped), [point](const Points& points) {
           return points.first <= point && point <= points.last;
         });
}

// Takes the next code point off `text`, which is UTF-8.
uint32_t TakePoint(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const size_t bytes = std::min<size_t>(lead < 0x80   ? 1
                                        : lead < 0xE0 ? 2
                                        : lead < 0xF0 ? 3
                                                      : 4,
                                        text.size());
  uint32_t point = bytes == 1 ? lead : lead & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    point = point << 6 | (static_cast<unsigned char>(text[i]) & 0x3Fu);
  }
  text.remove_prefix(bytes);
  return point;
}

}  // namespace

std::string SliceKey(std::string_view name, int64_t slice) {
  const bool has_single = name.find('\'') != std::string_view::npos;
  const bool has_double = name.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string key = "(";
  key += quote;
  while (!name.empty()) {
    std::string_view rest = name;
    const uint32_t point = TakePoint(rest);
    const std::string_view bytes = name.substr(0, name.size() - rest.size());
    name = rest;
    constexpr std::string_view kShort = "\\\n\r\t";
    constexpr std::string_view kLetters = "\\nrt";
    const size_t place = point < 0x80 ? kShort.find(static_cast<char>(point)) : kShort.npos;
    if (place != kShort.npos) {
      key += '\\';
      key += kLetters[place];
    } else if (point == static_cast<unsigned char>(quote)) {
      key += '\\';
      key += quote;
    } else if (!IsEscaped(point)) {
      key += bytes;
    } else if (point < 0x100) {
      fmt::format_to(std::back_inserter(key), "\\x{:02x}", point);
    } else if (point < 0x10000) {
      fmt::format_to(std::back_inserter(key), "\\u{:04x}", point);
    } else {
      fmt::format_to(std::back_inserter(key), "\\U{:08x}", point);
    }
  }
  key += quote;
  fmt::format_to(std::back_inserter(key), ", ({},))", slice);
  return key;
}

}  // namespace reshard
