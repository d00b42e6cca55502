#include "src/base/json_string.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace reshard {
namespace {

using Json = nlohmann::json;

constexpr char kFirstPrintable = ' ';
constexpr char kLastPrintable = '~';

bool IsPrintableAscii(char c) { return c >= kFirstPrintable && c <= kLastPrintable; }

void Append(std::string_view text, bool ascii, std::string& out) {
  if (!IsPlainJson(text)) {
    out += Json(text).dump(-1, ' ', ascii, Json::error_handler_t::replace);
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

}  // namespace

bool IsPlainJson(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsPrintableAscii(c) && c != '"' && c != '\\'; });
}

bool IsUtf8(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), IsPrintableAscii)) return true;
  try {
    return !Json(text).dump().empty();
  } catch (const Json::type_error&) {
    return false;
  }
}

void AppendJsonString(std::string_view text, std::string& out) { Append(text, false, out); }

std::string JsonString(std::string_view text) {
  std::string out;
  AppendJsonString(text, out);
  return out;
}

void AppendAsciiJsonString(std::string_view text, std::string& out) { Append(text, true, out); }

std::string AsciiJsonString(std::string_view text) {
  std::string out;
  AppendAsciiJsonString(text, out);
  return out;
}

}  // namespace reshard
