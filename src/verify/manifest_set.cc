#include "src/verify/manifest_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "src/base/checked.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

// Without the path that the message begins with.
std::string DetailOf(const Status& status, const std::string& path) {
  const std::string prefix = Escape(path) + ": ";
  return status.message().substr(status.message().starts_with(prefix) ? prefix.size() : 0);
}

// Parses the manifest of this name, or appends what is wrong with it.
Result<std::optional<Manifest>> ReadManifest(const OutputDirectory& root, const std::string& name,
                                             std::vector<Damage>& damages) {
  const std::string path = root.PathOf(name);
  RESHARD_ASSIGN_OR_RETURN(const auto entry, root.Look(name));
  if (entry && entry->type != OutputDirectory::EntryType::kFile) {
    damages.push_back({.path = name,
                       .kind = DamageKind::kManifest,
                       .detail = fmt::format("expected a file, found {}; restore it from a copy, "
                                             "or convert again",
                                             DescribeType(entry->type))});
    return std::optional<Manifest>();
  }
  const auto bytes = root.ReadFile(name, kMaxManifestBytes);
  Status status = bytes.status();
  if (bytes.ok()) {
    Result<Manifest> manifest = ParseManifest(*bytes, path);
    if (manifest.ok()) return std::optional(std::move(*manifest));
    status = manifest.status();
  }
  if (status.code() != StatusCode::kCorrupt) return status;
  damages.push_back(
      {.path = name, .kind = DamageKind::kManifest, .detail = DetailOf(status, path)});
  return std::optional<Manifest>();
}

// Compares the list of checksums beside the manifest of this name with what it lists.
Status CheckChecksums(const std::string& manifest_name, const Manifest& manifest,
                      ManifestSet& set) {
  const std::string name = ChecksumsName(manifest_name);
  const std::string expected = EncodeChecksums(manifest);
  const auto found = set.root.ReadFile(name, kMaxManifestBytes);
  if (found.status().code() == StatusCode::kNotFound) {
    if (expected.empty()) return {};
    set.notes.push_back(
        fmt::format("{}: missing; only `xxhsum -c` needs it", Escape(set.root.PathOf(name))));
    return {};
  }
  if (found.status().code() == StatusCode::kIo) return found.status();
  if (found.ok() && *found == expected) return {};
  const std::string detail =
      found.ok() ? fmt::format(
                       "other than {} from byte {} on", manifest_name,
                       std::mismatch(found->begin(), found->end(), expected.begin(), expected.end())
                               .first -
                           found->begin())
                 : DetailOf(found.status(), set.root.PathOf(name));
  set.damages.push_back({.path = name, .kind = DamageKind::kContent, .detail = detail});
  return {};
}

}  // namespace

Result<ManifestSet> ManifestSet::Open(const std::string& path) {
  RESHARD_ASSIGN_OR_RETURN(OutputDirectory root, OutputDirectory::Open(path));
  RESHARD_ASSIGN_OR_RETURN(std::vector<std::string> names, root.Names());
  std::erase_if(names, [](const std::string& name) { return !IsManifestName(name); });
  if (names.empty()) {
    return NotFoundError(
        fmt::format("{}: no manifest.json: the set is unfinished, or reshard did not write it; run "
                    "the same conversion again to finish it, or compare it with its sources by "
                    "--against",
                    Escape(path)));
  }
  ManifestSet set{.root = std::move(root), .names = std::move(names), .manifests = {}};
  for (const std::string& name : set.names) {
    RESHARD_ASSIGN_OR_RETURN(std::optional<Manifest> manifest,
                             ReadManifest(set.root, name, set.damages));
    if (!manifest) continue;
    RESHARD_RETURN_IF_ERROR(CheckChecksums(name, *manifest, set));
    set.manifests.push_back(std::move(*manifest));
  }
  return set;
}

uint64_t ManifestSet::bytes() const {
  uint64_t sum = 0;
  for (const Manifest& manifest : manifests) {
    for (const ManifestFile& file : manifest.files) {
      sum = SaturatingAdd(sum, file.size);
    }
  }
  return sum;
}

}  // namespace reshard
