#include "src/job/published_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/version.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/job/file_digests.h"
#include "src/job/job_folder.h"
#include "src/job/pruning.h"
#include "src/job/publication.h"
#include "src/job/source_stamps.h"
#include "src/job/target_check.h"
#include "src/job/target_place.h"
#include "src/record/origin.h"

namespace reshard {
namespace {

// The difference between the listed file and `own`; empty if there is none. `listed` is null if the
// file is not listed.
std::string DifferenceOf(const ManifestFile* listed, const ManifestFile& own, bool checksum) {
  if (listed == nullptr) return fmt::format("it does not list {}", Escape(own.path));
  if (listed->size != own.size) {
    return fmt::format("{} was to have {} bytes, and now {}", Escape(own.path), listed->size,
                       own.size);
  }
  if (listed->encryption != own.encryption || listed->key_check != own.key_check) {
    return fmt::format("{} was not encrypted with this key", Escape(own.path));
  }
  if (checksum && listed->digest.empty()) return "it has no checksums";
  return "";
}

const ManifestFile* FindListed(const Manifest& manifest, const std::string& path) {
  const auto listed = std::lower_bound(
      manifest.files.begin(), manifest.files.end(), path,
      [](const ManifestFile& file, const std::string& wanted) { return file.path < wanted; });
  const bool found = listed != manifest.files.end() && listed->path == path;
  return found ? &*listed : nullptr;
}

// The difference between the sources of the spec and those of the set; empty if there is none.
std::string DifferenceOfSources(const Manifest& manifest, const JobSpec& spec) {
  if (manifest.stamps.empty()) return "its manifest, of an earlier version, has no source stamps";
  return DescribeChanges(manifest.stamps, spec.stamps);
}

// Names a file that something was taken from, and that a run would not read; empty: none.
std::string DifferenceOfTaken(const std::vector<ManifestSource>& taken, const JobSpec& spec) {
  std::map<std::string_view, uint64_t> read;
  for (const ManifestSource& source : spec.sources) read.emplace(source.path, source.size);
  for (const ManifestSource& source : taken) {
    const auto found = read.find(source.path);
    if (found != read.end() && found->second == source.size) continue;
    return fmt::format("it was made of source {}, which would not be read", Escape(source.path));
  }
  return "";
}

// Whether a whole file is unchanged since its publication.
Result<bool> IsUnchanged(const OutputDirectory& target, const ManifestFile& file,
                         const JobSpec& spec) {
  RESHARD_ASSIGN_OR_RETURN(const auto written, LookAt(target, file.path));
  RESHARD_ASSIGN_OR_RETURN(const auto record, LookAt(target, RecordPath(file.path)));
  if (!written || !record) return false;
  const bool is_younger = written->identity.mtime_ns() > record->identity.mtime_ns() ||
                          written->identity.ctime_ns() > record->identity.ctime_ns();
  if (!is_younger && spec.output.resume != OutputChoice::Resume::kVerify) return true;
  if (file.digest.empty()) return false;
  return IsAsRecorded(fmt::format("{}/{}", target.path(), file.path), file.size, file.digest,
                      spec.target.encryption_key, spec.stop);
}

// Adds the facts of the part record of a listed file. Returns false if the file or its record is
// missing or changed.
Result<bool> AddRecord(const OutputDirectory& target, const ManifestFile& file,
                       ManifestBuilder& builder) {
  const auto whole = IsWhole(target, file);
  if (whole.status().code() == StatusCode::kIo) return whole.status();
  if (!whole.ok() || !*whole) return false;
  const auto record = ReadFileAt(target, RecordPath(file.path), kMaxRecordBytes);
  return record.ok() && builder.Add(file, *record).ok();
}

}  // namespace

Result<PublishedSet> FindPublished(const OutputDirectory& target, const JobSpec& spec) {
  PublishedSet set;
  const auto bytes = target.ReadFile(spec.manifest_name, kMaxManifestBytes);
  if (!bytes.ok()) return set;
  const auto manifest = ParseManifest(*bytes, target.PathOf(spec.manifest_name));
  if (!manifest.ok() || manifest->plan != spec.fingerprint) return set;
  if (manifest->tool_version != kVersion) {
    set.difference = fmt::format("reshard {} wrote it", Escape(manifest->tool_version));
    return set;
  }
  set.difference = DifferenceOfSources(*manifest, spec);
  if (!set.difference.empty()) return set;
  ManifestBuilder builder({.tool_version = manifest->tool_version, .plan = manifest->plan});
  for (const ManifestFile& own : spec.files) {
    const ManifestFile* listed = FindListed(*manifest, own.path);
    set.difference = DifferenceOf(listed, own, spec.checks.checksum);
    if (!set.difference.empty()) return set;
    RESHARD_ASSIGN_OR_RETURN(const bool is_whole, AddRecord(target, *listed, builder));
    if (!is_whole) {
      set.difference = fmt::format("{} is missing or damaged", Escape(own.path));
      return set;
    }
    if (spec.meter != nullptr) spec.meter->Look();
  }
  set.lost = builder.lost();
  set.difference = DifferenceOfTaken(builder.Finish().sources, spec);
  const bool is_refused = std::any_of(set.lost.begin(), set.lost.end(),
                                      [](const auto& lost) { return lost.second.values > 0; });
  if (spec.checks.refuse_overflow && is_refused) {
    set.difference = "casts made some values infinite or NaN";
  }
  for (const ManifestFile& own : spec.files) {
    if (!set.difference.empty()) return set;
    RESHARD_ASSIGN_OR_RETURN(const bool unchanged,
                             IsUnchanged(target, *FindListed(*manifest, own.path), spec));
    if (!unchanged) {
      set.difference = fmt::format("{} has changed since it was published", Escape(own.path));
    }
  }
  if (!set.difference.empty()) return set;
  TargetFindings findings;
  findings.joined = manifest->files;
  const auto origin = target.ReadFile(std::string(kOriginName), kMaxOriginBytes);
  if (origin.ok()) findings.abandoned = LastRunOf(*origin).left;
  for (const ManifestFile& file : findings.abandoned) {
    const auto entry = LookAt(target, file.path);
    if (entry.ok() && *entry) set.left.push_back(file.path);
  }
  if (spec.output.prune && !set.left.empty()) {
    set.difference = "`prune` has files of earlier sets to remove";
    return set;
  }
  RESHARD_RETURN_IF_ERROR(CheckReaders(spec, findings, {}));
  set.found = true;
  return set;
}

Result<PublishedSet> TakePublished(const OutputDirectory& target, const JobLock& lock,
                                   const JobSpec& spec) {
  const auto folder = JobFolder::Open(lock.folder(), spec.fingerprint);
  std::optional<JobText> journal;
  if (folder.ok()) {
    RESHARD_ASSIGN_OR_RETURN(journal, folder->ReadJournal());
    if (journal) {
      RESHARD_ASSIGN_OR_RETURN(const auto to_come, folder->ReadManifest(*journal));
      if (to_come) return PublishedSet();
    }
  } else if (folder.status().code() != StatusCode::kNotFound) {
    return PublishedSet();  // for Recover to judge
  }
  RESHARD_ASSIGN_OR_RETURN(PublishedSet set, FindPublished(target, spec));
  if (!set.found) return set;
  if (journal) RESHARD_RETURN_IF_ERROR(folder->Prune(target).status());
  if (folder.ok()) RESHARD_RETURN_IF_ERROR(RemoveProbes(target));
  RESHARD_RETURN_IF_ERROR(JobFolder::Discard(lock.folder(), spec.fingerprint));
  RESHARD_RETURN_IF_ERROR(lock.RemoveFolder(target).status());
  return set;
}

}  // namespace reshard
