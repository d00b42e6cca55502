#include "src/job/pruning.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "src/base/status_macros.h"
#include "src/job/file_digests.h"
#include "src/job/target_place.h"

namespace reshard {
namespace {

Result<std::vector<ManifestFile>> Candidates(const JobSpec& spec, const TargetFindings& findings,
                                             const OutputDirectory& target) {
  std::set<std::string> listed;
  for (const ManifestFile& file : spec.files) listed.insert(file.path);
  for (const ManifestFile& file : findings.joined) listed.insert(file.path);
  std::vector<ManifestFile> gone = findings.abandoned;
  const auto by_path = [](const ManifestFile& a, const ManifestFile& b) { return a.path < b.path; };
  std::stable_sort(gone.begin(), gone.end(), by_path);
  const auto same = [](const ManifestFile& a, const ManifestFile& b) { return a.path == b.path; };
  gone.erase(std::unique(gone.begin(), gone.end(), same), gone.end());
  RESHARD_ASSIGN_OR_RETURN(const auto others, ManifestsThatList(target, gone, spec.manifest_name));
  for (const auto& [name, manifest] : others) {
    if (ShareAny(manifest.files, spec.files)) continue;  // it goes, too
    for (const ManifestFile& file : manifest.files) listed.insert(file.path);
  }
  std::erase_if(gone, [&](const ManifestFile& file) { return listed.contains(file.path); });
  return gone;
}

// Returns the file, whose identity is `identity`, or no value if it differs from the manifest.
std::optional<PrunedFile> Compare(const ManifestFile& file, const FileIdentity& identity,
                                  const JobSpec& spec, const OutputDirectory& target,
                                  PruneCheck check, const Pruning& known) {
  const auto whole = IsWhole(target, file);
  if (!whole.ok() || !*whole) return std::nullopt;
  const PrunedFile found{file.path, identity, file.digest};
  const bool is_known = std::any_of(
      known.files.begin(), known.files.end(),
      [&](const PrunedFile& one) { return one.path == found.path && one.identity == identity; });
  if (check == PruneCheck::kSizes || file.digest.empty() || is_known) return found;
  const std::string path = fmt::format("{}/{}", target.path(), file.path);
  const auto same = IsAsRecorded(path, file.size, file.digest, spec.target.encryption_key, {});
  return same.ok() && *same ? std::optional(found) : std::nullopt;
}

}  // namespace

Result<Pruning> FindPruned(const JobSpec& spec, const TargetFindings& findings,
                           const OutputDirectory& target, PruneCheck check, const Pruning& known) {
  Pruning pruning;
  if (!spec.output.prune) return pruning;
  RESHARD_ASSIGN_OR_RETURN(const std::vector<ManifestFile> gone,
                           Candidates(spec, findings, target));
  for (const ManifestFile& file : gone) {
    const auto entry = LookAt(target, file.path);
    if (!entry.ok() || !*entry) continue;  // it is gone already, or cannot be reached
    if (auto found = Compare(file, (*entry)->identity, spec, target, check, known)) {
      pruning.files.push_back(*std::move(found));
    } else {
      pruning.kept.push_back(file.path);
    }
  }
  return pruning;
}

Status CheckReaders(const JobSpec& spec, const TargetFindings& findings, const Pruning& pruning) {
  if (!spec.check_readers) return {};
  NamesToCome names;
  for (const ManifestFile& file : findings.joined) names.listed.insert(file.path);
  for (const ManifestFile& file : spec.files) names.listed.insert(file.path);
  for (const PrunedFile& file : pruning.files) names.gone.insert(file.path);
  for (const ManifestFile& file : findings.abandoned) names.of_older.insert(file.path);
  names.prunes = spec.output.prune;
  return spec.check_readers(names);
}

}  // namespace reshard
