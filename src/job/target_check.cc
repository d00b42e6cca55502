#include "src/job/target_check.h"

#include <fmt/format.h>

#include <cerrno>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "reshard/parameters.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/job/job_folder.h"
#include "src/job/target_place.h"
#include "src/os/job_lock.h"
#include "src/record/origin.h"

namespace reshard {
namespace {

using EntryType = OutputDirectory::EntryType;

constexpr const char* kForceAdvice =
    "pass `force` to replace existing files, or choose another target";

struct Names {
  std::vector<std::string> existing;  // files that could be replaced
  std::vector<std::string> blocked;   // why something is in the way
};

Status CheckNoMount(const OutputDirectory& target, const OutputDirectory& folder) {
  if (target.CanMoveTo(folder)) return {};
  return IoError(
      fmt::format("{}: a file system is mounted there, so that no file can be moved from it or "
                  "into it; unmount "
                  "it, or choose another target folder",
                  Escape(folder.path())));
}

// Adds the entry at `path`: a file to `existing`, any other entry to the blocked names.
Status CheckPlace(const OutputDirectory& target, const std::string& path,
                  std::vector<std::string>& existing, Names& names) {
  const auto place = FindPlace(target, path);
  if (place.status().code() == StatusCode::kAlreadyExists) {
    names.blocked.push_back(place.status().message());
    return {};
  }
  if (!place.ok()) return place.status();
  if (!*place) return {};  // the folder will be made in `target`
  const OutputDirectory& folder = (*place)->folder;
  RESHARD_RETURN_IF_ERROR(folder.CheckWritable());
  RESHARD_RETURN_IF_ERROR(CheckNoMount(target, folder));
  RESHARD_ASSIGN_OR_RETURN(const auto entry, folder.Look((*place)->name));
  if (!entry) return {};
  if (entry->type == EntryType::kFile) {
    existing.push_back(path);
  } else {
    names.blocked.push_back(
        fmt::format("{}: expected a file or a free name, found something else; remove it or choose "
                    "another target folder",
                    Escape(folder.PathOf((*place)->name))));
  }
  return {};
}

// What to do about files that are there. A worker that comes late is not to begin another set by
// force, which the others would not finish.
std::string AdviceFor(const JobSpec& spec) {
  if (spec.difference.empty()) return kForceAdvice;
  return fmt::format("{} lists a set of this conversion, but {}; {}", spec.manifest_name,
                     spec.difference,
                     spec.workers == 0 ? kForceAdvice : "choose another target folder");
}

Status CheckNames(const OutputDirectory& target, const JobSpec& spec, bool replace) {
  RESHARD_RETURN_IF_ERROR(target.CheckWritable());
  const auto staging = target.OpenFolder(JobLock::kFolderName);
  if (staging.ok()) RESHARD_RETURN_IF_ERROR(CheckNoMount(target, *staging));
  Names names;
  for (const ManifestFile& file : spec.files) {
    RESHARD_RETURN_IF_ERROR(CheckPlace(target, file.path, names.existing, names));
    // A part record is no output: one of a file that is gone may be replaced.
    std::vector<std::string> records;
    RESHARD_RETURN_IF_ERROR(CheckPlace(target, RecordPath(file.path), records, names));
  }
  const std::string checksums = ChecksumsName(spec.manifest_name);
  std::vector<std::string> found;
  RESHARD_RETURN_IF_ERROR(CheckPlace(target, checksums, found, names));
  std::vector<std::string> origins;  // one is continued
  RESHARD_RETURN_IF_ERROR(CheckPlace(target, std::string(kOriginName), origins, names));
  if (!names.blocked.empty()) {
    const size_t others = names.blocked.size() - 1;
    return AlreadyExistsError(
        names.blocked.front() +
        (others == 0 ? "" : fmt::format(" (and {} more such names)", others)));
  }
  if (!names.existing.empty() && !replace) {
    return AlreadyExistsError(fmt::format(
        "{}: {} of the {} target files exist already: {}; {}", Escape(target.path()),
        names.existing.size(), spec.files.size(), FirstOf(names.existing), AdviceFor(spec)));
  }
  RESHARD_ASSIGN_OR_RETURN(const auto manifest, target.Look(spec.manifest_name));
  if (!found.empty() && !manifest && !replace) {
    return AlreadyExistsError(fmt::format("{}: exists, but no {} that it belongs to; {}",
                                          Escape(target.PathOf(checksums)), spec.manifest_name,
                                          kForceAdvice));
  }
  return {};
}

// Takes over the files of a manifest that cannot stay as it is.
Status Abandon(const std::string& path, const Manifest& manifest, bool replace,
               TargetFindings& findings) {
  if (!replace) {
    return AlreadyExistsError(fmt::format("{}: lists the {} files of another conversion; {}",
                                          Escape(path), manifest.files.size(), kForceAdvice));
  }
  findings.has_manifest = true;
  findings.abandoned.insert(findings.abandoned.end(), manifest.files.begin(), manifest.files.end());
  return {};
}

// Runs that join read one checkpoint. A file that several runs read has one size and content.
Status CheckSameSources(const std::string& path, const Manifest& manifest, const JobSpec& spec) {
  std::map<std::string_view, uint64_t> sizes;
  for (const ManifestSource& source : manifest.sources) sizes.emplace(source.path, source.size);
  for (const ManifestSource& source : spec.sources) {
    const auto known = sizes.find(source.path);
    if (known == sizes.end() || known->second == source.size) continue;
    return MismatchError(fmt::format(
        "{}: made from a source file {} of {} bytes, which has {} now: another checkpoint; choose "
        "another target folder, or pass `force` to abandon the existing set",
        Escape(path), Quote(source.path), known->second, source.size));
  }
  if (spec.other_source.empty()) return {};
  return MismatchError(fmt::format(
      "{}: made from a source file {} of another content than it has now, by a digest: another "
      "checkpoint; choose another target folder, or pass `force` to abandon the existing set",
      Escape(path), Quote(spec.other_source)));
}

Status CheckManifests(const OutputDirectory& target, const JobSpec& spec, bool replace,
                      TargetFindings& findings) {
  const std::string path = target.PathOf(spec.manifest_name);
  const auto bytes = target.ReadFile(spec.manifest_name, kMaxManifestBytes);
  if (bytes.ok()) {
    auto manifest = ParseManifest(*bytes, path);
    if (!manifest.ok()) {
      if (!replace) {
        return AlreadyExistsError(fmt::format("{}; {}", manifest.status().message(), kForceAdvice));
      }
    } else if (manifest->plan == spec.fingerprint) {
      Status same = CheckSameSources(path, *manifest, spec);
      if (same.ok()) {
        findings.joined = std::move(manifest->files);
        findings.joined_sources = std::move(manifest->sources);
        findings.joined_stamps = std::move(manifest->stamps);
        findings.has_manifest = true;
      } else if (!replace) {
        return same;
      } else {
        RESHARD_RETURN_IF_ERROR(Abandon(path, *manifest, replace, findings));
      }
    } else {
      RESHARD_RETURN_IF_ERROR(Abandon(path, *manifest, replace, findings));
    }
  } else if (bytes.status().code() != StatusCode::kNotFound) {
    return bytes.status();
  }
  RESHARD_ASSIGN_OR_RETURN(const auto others,
                           ManifestsThatList(target, spec.files, spec.manifest_name));
  for (const auto& [name, manifest] : others) {
    RESHARD_RETURN_IF_ERROR(Abandon(target.PathOf(name), manifest, replace, findings));
  }
  return {};
}

}  // namespace

Result<TargetFindings> CheckTarget(const OutputDirectory& target, const JobSpec& spec,
                                   bool replace) {
  TargetFindings findings;
  RESHARD_RETURN_IF_ERROR(CheckNames(target, spec, replace));
  RESHARD_RETURN_IF_ERROR(CheckManifests(target, spec, replace, findings));
  const auto origin = target.ReadFile(std::string(kOriginName), kMaxOriginBytes);
  if (origin.ok()) {
    std::vector<ManifestFile> left = LastRunOf(*origin).left;
    findings.abandoned.insert(findings.abandoned.end(), left.begin(), left.end());
  }
  if (spec.output.prune && !findings.has_manifest) {
    return NotFoundError(
        fmt::format("{}: `prune` removes files that only the replaced manifest lists, and no "
                    "readable manifest is there; leave the option out",
                    Escape(target.path())));
  }
  return findings;
}

Result<std::optional<uint64_t>> CheckSpace(const OutputDirectory& folder, uint64_t needed) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<uint64_t> free, folder.FreeBytes());
  if (free && needed > *free) {
    return IoError(
        fmt::format("{}: not enough space: the target files need {}, but {} are free; free {} more "
                    "there, or choose a target on another file system",
                    Escape(folder.path()), FormatBytes(needed), FormatBytes(*free),
                    FormatBytes(needed - *free)),
        ENOSPC);
  }
  return free;
}

}  // namespace reshard
