#include "src/os/file_identity.h"

#include <fmt/format.h>

#include <string_view>

namespace reshard {

std::string DescribeChange(const FileIdentity& before, const FileIdentity& after) {
  std::string text;
  const auto add = [&text](std::string_view part) {
    if (!text.empty()) text += ", ";
    text += part;
  };
  if (before.key() != after.key()) add("another file took its place");
  if (before.size() != after.size())
    add(fmt::format("{} bytes, were {}", after.size(), before.size()));
  if (before.mtime_ns() != after.mtime_ns()) add("its modification time (mtime) differs");
  if (before.ctime_ns() != after.ctime_ns()) add("its change time (ctime) differs");
  return text;
}

}  // namespace reshard
