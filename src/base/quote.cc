#include "src/base/quote.h"

#include <algorithm>
#include <cstddef>

#include "src/base/natural_order.h"

namespace reshard {
namespace {

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
    } else if (byte < 0x20 || byte == 0x7f || c == '`') {
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

bool IsUnfitForNames(std::string name) {
  std::erase(name, '`');
  return Escape(name) != name;
}

std::string Quote(std::string_view name) { return '"' + Escape(name) + '"'; }

std::string FirstFew::Joined(std::string_view separator) const {
  std::string list;
  for (const std::string& item : items_) {
    if (&item != &items_.front()) list += separator;
    list += item;
  }
  if (more() > 0) list += " and " + std::to_string(more()) + " more";
  return list;
}

std::string FirstFew::Lines(std::string_view rest) const {
  std::string lines;
  for (const std::string& item : items_) lines += "\n  " + item;
  return more() > 0 ? lines.append("\n  ").append(rest) : lines;
}

void NumberRanges::AddRange(int64_t first, int64_t last) {
  constexpr size_t kMostRanges = 8;
  const auto added = static_cast<uint64_t>(last - first) + 1;
  count_ += added;
  if (more_ == 0 && !ranges_.empty() && ranges_.back().last == first - 1) {
    ranges_.back().last = last;
  } else if (more_ == 0 && ranges_.size() < kMostRanges) {
    ranges_.push_back({first, last});
  } else {
    more_ += added;
  }
}

std::string NumberRanges::ToText() const {
  std::string text;
  for (const Range& range : ranges_) {
    if (!text.empty()) text += ", ";
    text += std::to_string(range.first);
    if (range.last > range.first) text += '-' + std::to_string(range.last);
  }
  if (more_ > 0) text += " and " + std::to_string(more_) + " more";
  return text;
}

std::string NumberRanges::ToWords(std::string_view noun) const {
  return std::string(noun) + (count_ == 1 ? " " : "s ") + ToText();
}

std::string NumberRanges::ToSentence(std::string_view noun) const {
  std::string words = ToWords(noun);
  const size_t comma = words.rfind(", ");
  if (more_ == 0 && comma != std::string::npos) words.replace(comma, 1, " and");
  return words;
}

std::string RangesOf(const std::vector<int64_t>& numbers) {
  NumberRanges ranges;
  for (const int64_t number : numbers) ranges.Add(number);
  return ranges.ToText();
}

std::string FirstNumbers(const std::vector<int64_t>& numbers) {
  constexpr size_t kMostNumbers = 20;
  FirstFew first(kMostNumbers);
  for (const int64_t number : numbers) first.Add(std::to_string(number));
  return '[' + first.Joined() + ']';
}

std::string FirstOf(const std::vector<std::string>& items) {
  constexpr size_t kShown = 3;
  std::vector<std::string_view> ordered(items.begin(), items.end());
  const size_t shown = std::min(kShown, ordered.size());
  std::partial_sort(ordered.begin(), ordered.begin() + static_cast<std::ptrdiff_t>(shown),
                    ordered.end(), IsNaturallyBefore);
  FirstFew few(kShown);
  for (const std::string_view item : ordered) few.Add(item);
  return few.Joined();
}

}  // namespace reshard
