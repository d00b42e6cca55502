#include "tests/support/parse_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace reshard {

Result<std::vector<ParsedValue>> ParseValues(std::string_view bytes,
                                             const std::function<uint64_t()>& surplus,
                                             std::vector<ByteRange>* windows) {
  ValueParser parser(bytes.size());
  std::vector<ParsedValue> values;
  std::vector<std::byte> window;
  uint64_t offset = 0;
  for (;;) {
    auto event = parser.Advance(offset, window);
    if (!event.ok()) return event.status();
    if (*event == ValueParser::Event::kDone) return values;
    if (*event == ValueParser::Event::kValue) {
      values.push_back(parser.value());
      continue;
    }
    const ByteRange needed = parser.needed();
    EXPECT_LE(needed.length, kMaxTagBytes);
    if (needed.length == 0 || needed.end() > bytes.size()) {
      return InternalError("the parser asks for nothing, or for bytes beyond the end");
    }
    offset = needed.offset;
    const auto text = bytes.substr(needed.offset, needed.length + surplus());
    const auto as_bytes = std::as_bytes(std::span(text));
    window.assign(as_bytes.begin(), as_bytes.end());
    window.shrink_to_fit();  // so that AddressSanitizer sees each step beyond it
    if (windows != nullptr) windows->push_back({offset, window.size()});
  }
}

}  // namespace reshard
