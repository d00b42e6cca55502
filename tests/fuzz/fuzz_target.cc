#include "tests/fuzz/fuzz_target.h"

#include <algorithm>

namespace reshard {

std::string MessageFault(const Status& status) {
  constexpr size_t kLongestMessage = 16 << 10;
  const std::string& message = status.message();
  if (message.empty()) return "a refusal without a message";
  if (message.size() > kLongestMessage) {
    return "a message of " + std::to_string(message.size()) + " bytes";
  }
  const bool clean = std::all_of(message.begin(), message.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '\x7f';
  });
  return clean ? "" : "a message with control characters: " + message;
}

std::string RefusalFault(const Status& status) {
  switch (status.code()) {
    case StatusCode::kCorrupt:
    case StatusCode::kUnsupported:
    case StatusCode::kMismatch:
    case StatusCode::kResourceExhausted:
      return MessageFault(status);
    default:
      return "an input is answered with " + std::string(StatusCodeName(status.code())) + ": " +
             status.message();
  }
}

std::string RefusalFault(const Status& status, const std::string& path, StatusCode code) {
  if (status.code() != code && status.code() != StatusCode::kCorrupt) {
    return "a file is answered with " + std::string(StatusCodeName(status.code())) + ": " +
           status.message();
  }
  const bool named = status.message().starts_with(path + ": ");
  return named ? MessageFault(status) : "a message without the file: " + status.message();
}

}  // namespace reshard
