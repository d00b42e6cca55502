#include "tools/cli/html.h"

#include <fmt/format.h>

#include "tools/cli/printable.h"
#include "tools/cli/text_format.h"

namespace reshard {
namespace {

// The first byte of each character of UTF-8 text.
std::vector<size_t> CharacterStarts(std::string_view text) {
  std::vector<size_t> starts;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0U) != 0x80) starts.push_back(i);
  }
  return starts;
}

// Replaces what HTML would take for its own.
std::string EscapeMarkup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace

std::string EscapeHtml(std::string_view text) { return EscapeMarkup(PrintableName(text)); }

std::string ShortName(std::string_view name, size_t most) {
  const std::string text = PrintableName(name);
  const std::vector<size_t> starts = CharacterStarts(text);
  if (starts.size() <= most) return EscapeMarkup(text);
  const size_t tail = (most - 1) / 2;
  return EscapeMarkup(text.substr(0, starts[most - 1 - tail])) + "…" +
         EscapeMarkup(text.substr(starts[starts.size() - tail]));
}

std::string NameHtml(std::string_view name) {
  return fmt::format("<bdi><code>{}</code></bdi>", name.empty() ? "(empty)" : EscapeHtml(name));
}

std::string BytesHtml(uint64_t bytes) {
  return fmt::format(R"(<data value="{}">{}</data>)", bytes, FormatBytes(bytes));
}

std::string CountHtml(uint64_t count) {
  return fmt::format(R"(<data value="{}">{}</data>)", count, count);
}

HtmlTable::HtmlTable(std::string_view id, std::string_view caption,
                     const std::vector<std::string_view>& columns)
    : id_(id), caption_(EscapeHtml(caption)) {
  for (const std::string_view column : columns) {
    head_ += fmt::format(R"(<th scope="col">{}</th>)", EscapeHtml(column));
  }
}

void HtmlTable::AddRow(const std::vector<std::string>& cells) {
  rows_ += "<tr>";
  for (size_t i = 0; i < cells.size(); ++i) {
    rows_ += i == 0 ? fmt::format(R"(<th scope="row">{}</th>)", cells[i])
                    : fmt::format("<td>{}</td>", cells[i]);
  }
  rows_ += "</tr>\n";
}

std::string HtmlTable::ToHtml(bool folded) const {
  const std::string rest =
      fmt::format("<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table>\n", head_, rows_);
  if (folded) {
    return fmt::format("<details><summary>{}</summary>\n<table id=\"{}\">{}</details>\n", caption_,
                       id_, rest);
  }
  return fmt::format("<table id=\"{}\"><caption>{}</caption>\n{}", id_, caption_, rest);
}

}  // namespace reshard
