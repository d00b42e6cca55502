#include "tests/support/source_content.h"

#include <cstring>
#include <span>

namespace reshard {

std::string Content(const Window& window) {
  std::string content(window.size(), '?');
  const Status status = window.Read(
      [&content](const std::byte* data) { std::memcpy(content.data(), data, content.size()); });
  return status.ok() ? content : status.message();
}

std::string Content(const Result<Window>& window) {
  return window.ok() ? Content(*window) : window.status().message();
}

std::string Copied(SourceFiles& files, FileId id, uint64_t offset, size_t length) {
  std::string content(length, '?');
  const Status status = files.Read(id, offset, std::as_writable_bytes(std::span(content)));
  return status.ok() ? content : status.message();
}

}  // namespace reshard
