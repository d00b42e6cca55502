// Runs ValueParser over bytes in memory.
#ifndef RESHARD_TESTS_SUPPORT_PARSE_VALUES_H_
#define RESHARD_TESTS_SUPPORT_PARSE_VALUES_H_

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "format/mindspore_checkpoint/value_parser.h"

namespace reshard {

// Parses `bytes` as the Values of a file. Each window is what the parser needs and surplus() bytes
// more, as far as there are any; `windows`, when given, gets the ranges of them all.
Result<std::vector<ParsedValue>> ParseValues(std::string_view bytes,
                                             const std::function<uint64_t()>& surplus,
                                             std::vector<ByteRange>* windows = nullptr);

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_PARSE_VALUES_H_
