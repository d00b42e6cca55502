#include "src/convert/file_warnings.h"

#include <fmt/format.h>

#include "src/base/quote.h"
#include "src/convert/lone_parts.h"

namespace reshard {

Warning OtherValuesWarning(const std::string& files, uint64_t values) {
  return {WarningCode::kLeftOut,
          fmt::format(
              "{}: {}, and not read", files,
              values == 1
                  ? "1 value is a number, a text or an object, not a tensor"
                  : fmt::format("{} values are numbers, texts and objects, not tensors", values))};
}

std::vector<Warning> ListingWarnings(const std::string& path, const IndexedFile& file) {
  std::vector<Warning> warnings;
  if (const std::vector<MeshTensor>& parts = file.shards().mesh; !parts.empty()) {
    warnings.push_back(
        {WarningCode::kMissingRanks,
         fmt::format("{}: {} of its arrays {}, such as {} of {}; for the tensors, {}", Escape(path),
                     parts.size(),
                     parts.size() == 1 ? "is a part of a DTensor" : "are parts of DTensors",
                     Quote(parts.front().name), ToString(parts.front().full_shape),
                     AdviceForRanks(path, parts.front()))});
  }
  FirstFew unread;
  for (const UnreadTensor& tensor : file.beside().unread) {
    unread.Add(fmt::format("{} ({})", Quote(tensor.name), tensor.why));
  }
  if (unread.count() > 0) {
    warnings.push_back({WarningCode::kLeftOut,
                        fmt::format("{}: {} of its tensors cannot be read, and left out: {}",
                                    Escape(path), unread.count(), unread.Joined())});
  }
  if (file.beside().values > 0) {
    warnings.push_back(OtherValuesWarning(Escape(path), file.beside().values));
  }
  return warnings;
}

}  // namespace reshard
