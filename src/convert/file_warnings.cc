#include "src/convert/file_warnings.h"

#include <fmt/format.h>

#include <utility>

#include "src/base/quote.h"
#include "src/sharded/lone_parts.h"

namespace reshard {

Warning WarningOfParts(const std::string& path, const std::vector<MeshTensor>& parts) {
  return {WarningCode::kMissingRanks,
          fmt::format("{}: {} of its arrays {}, such as {} of {}; for the tensors, {}",
                      Escape(path), parts.size(),
                      parts.size() == 1 ? "is a part of a DTensor" : "are parts of DTensors",
                      Quote(parts.front().name), ToString(parts.front().full_shape),
                      AdviceForRanks(path, parts.front()))};
}

std::vector<Warning> ListingWarnings(const std::string& path, const IndexedFile& file) {
  std::vector<Warning> warnings;
  const std::vector<MeshTensor>& parts = file.shards().mesh;
  if (!parts.empty()) warnings.push_back(WarningOfParts(path, parts));
  const BesideArrays& beside = file.beside();
  if (!beside.unread.empty()) warnings.push_back(WarningOfUnread(Escape(path), beside.unread));
  for (Warning& warning : WarningsOfOthers({{path, &beside}})) {
    warnings.push_back(std::move(warning));
  }
  return warnings;
}

}  // namespace reshard
