#include "format/dcp/dcp_names.h"

#include <algorithm>

#include "src/base/number_text.h"

namespace reshard {
namespace {

constexpr std::string_view kPrefix = "__";
constexpr size_t kLongestPath = 4096;

bool IsFolderOrFile(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         std::none_of(name.begin(), name.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

std::optional<int64_t> DcpMetadataRank(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kDcpMetadataFile)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(std::min(name.size(), kDcpMetadataFile.size()));
  return ParseNumber<uint32_t>(name);
}

bool IsDcpPath(std::string_view path) {
  if (path.size() > kLongestPath) return false;
  for (;;) {
    const size_t end = path.find('/');
    if (!IsFolderOrFile(path.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    path.remove_prefix(end + 1);
  }
}

}  // namespace reshard
