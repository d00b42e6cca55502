#include "src/job/source_stamps.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "src/base/quote.h"

namespace reshard {
namespace {

std::string DescribeChange(const SourceStamp& then, const SourceStamp& now) {
  const std::string path = Escape(now.path);
  if (then.inode == 0) return fmt::format("earlier runs read different files for source {}", path);
  if (now.inode == 0) return fmt::format("several files are source {}", path);
  if (then.size != now.size) {
    return fmt::format("source {} had {} bytes, and has {} now", path, then.size, now.size);
  }
  if (then.inode != now.inode) return fmt::format("source {} was replaced by another file", path);
  return fmt::format("source {} was modified since", path);
}

}  // namespace

std::string DescribeChanges(const std::vector<SourceStamp>& then,
                            const std::vector<SourceStamp>& now) {
  std::map<std::string_view, const SourceStamp*> known;
  for (const SourceStamp& stamp : then) known.emplace(stamp.path, &stamp);
  for (const SourceStamp& own : now) {
    const auto found = known.find(own.path);
    if (found == known.end()) return fmt::format("source {} is new", Escape(own.path));
    if (*found->second != own || own.inode == 0) return DescribeChange(*found->second, own);
  }
  return "";
}

}  // namespace reshard
