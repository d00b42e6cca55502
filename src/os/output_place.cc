#include "src/os/output_place.h"

#include <utility>

#include "src/base/status_macros.h"

namespace reshard {
namespace {

using Entry = OutputDirectory::Entry;

// Opens the folders on the way to `path` with `open(folder, name)`, and returns the last one.
template <typename OpenFolder>
Result<TargetPlace> Walk(const OutputDirectory& root, const std::string& path, OpenFolder open) {
  RESHARD_ASSIGN_OR_RETURN(OutputDirectory folder, root.Again());
  size_t begin = 0;
  for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', begin)) {
    RESHARD_ASSIGN_OR_RETURN(folder, open(folder, path.substr(begin, slash - begin)));
    begin = slash + 1;
  }
  return TargetPlace{.folder = std::move(folder), .name = path.substr(begin)};
}

}  // namespace

Result<std::optional<TargetPlace>> FindPlace(const OutputDirectory& root, const std::string& path) {
  auto place = Walk(root, path, [](const OutputDirectory& folder, const std::string& name) {
    return folder.OpenFolder(name);
  });
  if (place.ok()) return std::optional(std::move(*place));
  if (place.status().code() == StatusCode::kNotFound) return std::optional<TargetPlace>();
  return place.status();
}

Result<TargetPlace> MakePlace(const OutputDirectory& root, const std::string& path) {
  return Walk(root, path, [](const OutputDirectory& folder, const std::string& name) {
    return folder.MakeFolder(name);
  });
}

Result<std::optional<Entry>> LookAt(const OutputDirectory& root, const std::string& path) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<TargetPlace> place, FindPlace(root, path));
  if (!place) return std::optional<Entry>();
  return place->folder.Look(place->name);
}

}  // namespace reshard
