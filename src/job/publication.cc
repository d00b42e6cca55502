#include "src/job/publication.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "reshard/version.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/job/target_place.h"
#include "src/record/part_record.h"

namespace reshard {
namespace {

// Whether a path of an earlier run led nowhere because something else has taken a folder's place.
bool IsInTheWay(const Status& status) { return status.code() == StatusCode::kAlreadyExists; }

// Adds a warning of `values`, how many by parameter, unless there are none: "casts made N values of
// N parameters WHAT". Returns how many in all.
uint64_t WarnOfLost(const std::map<std::string, uint64_t>& values, std::string_view kind,
                    std::string_view what, std::vector<Warning>& warnings) {
  uint64_t all = 0;
  std::vector<std::string> names;
  for (const auto& [name, count] : values) {
    all += count;
    names.push_back(fmt::format("{} ({})", Quote(name), count));
  }
  if (all > 0) {
    warnings.push_back({WarningCode::kValuesLost,
                        fmt::format("casts made {} {} value{} of {} parameter{} {}: {}", all, kind,
                                    all == 1 ? "" : "s", names.size(), names.size() == 1 ? "" : "s",
                                    what, FirstOf(names))});
  }
  return all;
}

// The stamps of the spec's sources, joined with those of the earlier runs that it joins. A file
// counts as known only if all these runs have the same stamp.
std::vector<SourceStamp> JoinStamps(const JobSpec& spec, const TargetFindings& findings) {
  std::map<std::string_view, SourceStamp> stamps;
  for (const SourceStamp& stamp : spec.stamps) stamps.emplace(stamp.path, stamp);
  std::map<std::string_view, SourceStamp> earlier;
  for (const ManifestSource& source : findings.joined_sources) {
    earlier.emplace(source.path, SourceStamp{.path = source.path, .size = source.size});
  }
  for (const SourceStamp& stamp : findings.joined_stamps) earlier[stamp.path] = stamp;
  for (const auto& [path, stamp] : earlier) {
    const auto [known, is_new] = stamps.emplace(path, stamp);
    if (is_new || known->second == stamp) continue;
    known->second.mtime_ns = 0;
    known->second.inode = 0;
  }
  std::vector<SourceStamp> all;
  all.reserve(stamps.size());
  for (auto& [path, stamp] : stamps) all.push_back(std::move(stamp));
  return all;
}

// The spec's files, and the remaining files of earlier runs of the plan, with the facts of their
// part records.
Result<Manifest> NewManifest(const JobSpec& spec, const TargetFindings& findings,
                             const JobFolder& folder, const OutputDirectory& target,
                             PublishReport& report) {
  ManifestBuilder builder({.tool_version = std::string(kVersion),
                           .plan = spec.fingerprint,
                           .source_strategy = spec.source_strategy,
                           .target_strategy = spec.target_strategy});
  std::map<std::string_view, const ManifestFile*> files;
  for (const ManifestFile& file : findings.joined) files.emplace(file.path, &file);
  std::set<std::string_view> own;
  for (const ManifestFile& file : spec.files) {
    files[file.path] = &file;
    own.insert(file.path);
  }
  std::vector<std::string> lost;
  for (const auto& [path, file] : files) {
    if (own.contains(path)) {
      RESHARD_ASSIGN_OR_RETURN(const std::string record, folder.ReadRecord(file->path));
      RESHARD_RETURN_IF_ERROR(builder.Add(*file, record));
      continue;
    }
    const auto whole = IsWhole(target, *file);
    if (!whole.ok() && !IsInTheWay(whole.status())) return whole.status();
    const auto record = ReadFileAt(target, RecordPath(file->path), kMaxRecordBytes);
    if (!whole.ok() || !*whole || !record.ok() || !builder.Add(*file, *record).ok()) {
      lost.push_back(file->path);
    }
  }
  if (!lost.empty()) {
    report.warnings.push_back(
        {WarningCode::kFilesGone,
         fmt::format("{}: {} files of earlier runs, or their part records, are missing or have "
                     "changed, and are no longer listed: {}",
                     Escape(target.PathOf(spec.manifest_name)), lost.size(), FirstOf(lost))});
  }
  RESHARD_RETURN_IF_ERROR(ReportLost(spec.checks, builder.lost(), report));
  Manifest manifest = builder.Finish();
  const bool is_alone = manifest.files.size() == spec.files.size();
  manifest.stamps = is_alone ? spec.stamps : JoinStamps(spec, findings);
  if (spec.meter != nullptr) spec.meter->Look();
  return manifest;
}

// Returns the files that were in a manifest before, are in none now, and stay.
Result<std::vector<ManifestFile>> ReportAbandoned(const JobSpec& spec, const Superseded& superseded,
                                                  const Pruning& pruning,
                                                  const OutputDirectory& target,
                                                  PublishReport& report) {
  std::map<std::string, const ManifestFile*> paths;
  for (const ManifestFile& file : superseded.findings.abandoned) paths.emplace(file.path, &file);
  for (const PrunedFile& file : pruning.files) paths.erase(file.path);
  for (const ManifestFile& file : spec.files) paths.erase(file.path);
  for (const ManifestFile& file : superseded.findings.joined) paths.erase(file.path);
  std::vector<ManifestFile> left;
  std::vector<std::string> names;
  for (const auto& [path, file] : paths) {
    const auto entry = LookAt(target, path);
    if (!entry.ok() && !IsInTheWay(entry.status())) return entry.status();
    if (!entry.ok() || !*entry) continue;
    left.push_back(*file);
    names.push_back(path);
  }
  if (!pruning.kept.empty()) {
    report.warnings.push_back(
        {WarningCode::kFilesAbandoned,
         fmt::format("{}: `prune` leaves {} files of an earlier conversion alone, which have "
                     "changed since, or are encrypted with another key: {}; remove them yourself "
                     "if you do not need them",
                     Escape(target.path()), pruning.kept.size(), FirstOf(pruning.kept))});
  } else if (!left.empty()) {
    report.warnings.push_back(FilesLeft(target.path(), names));
  }
  return left;
}

}  // namespace

Warning FilesLeft(const std::string& folder, const std::vector<std::string>& names) {
  return {WarningCode::kFilesAbandoned,
          fmt::format(
              "{}: {} files of an earlier conversion remain, no longer in any manifest: {}; remove "
              "them, or a loader may take them for files of this one (`prune` does it while "
              "converting)",
              Escape(folder), names.size(), FirstOf(names))};
}

Status ReportLost(const CheckChoice& checks, const std::map<std::string, LostValues>& lost,
                  PublishReport& report) {
  std::map<std::string, uint64_t> infinite;
  std::map<std::string, uint64_t> zero;
  for (const auto& [name, values] : lost) {
    if (values.values > 0) infinite.emplace(name, values.values);
    if (values.zeros > 0) zero.emplace(name, values.zeros);
  }
  report.values_lost = WarnOfLost(infinite, "finite",
                                  "infinite or NaN, too large for the dtype that they were cast to",
                                  report.warnings);
  if (report.values_lost > 0 && checks.refuse_overflow) {
    return MismatchError(report.warnings.back().message +
                         "; no file was published: cast to a dtype of a larger range, or leave "
                         "these parameters as they are");
  }
  report.values_zeroed = WarnOfLost(
      zero, "nonzero", "zero, too small for the dtype that they were cast to", report.warnings);
  return {};
}

Status ManifestBuilder::Add(const ManifestFile& file, std::string_view record) {
  const std::string path = RecordPath(file.path);
  PartRecordParser parser(path);
  RESHARD_RETURN_IF_ERROR(parser.Feed(record));
  RESHARD_RETURN_IF_ERROR(parser.Finish());
  const PartRecordHead& head = *parser.head();
  if (head.plan != manifest_.plan || head.path != file.path || head.size != file.size) {
    return MismatchError(fmt::format(
        "{}: the part record of plan {}, file {}, {} bytes; expected plan {}, file {}, {} bytes",
        Escape(path), head.plan, Quote(head.path), head.size, manifest_.plan, Quote(file.path),
        file.size));
  }
  if (!file.record_digest.empty() && file.record_digest != parser.HexDigest()) {
    return MismatchError(fmt::format("{}: its digest is {}, the manifest says {}", Escape(path),
                                     parser.HexDigest(), file.record_digest));
  }
  RESHARD_RETURN_IF_ERROR(sources_.Add(head));
  for (const LostValues& lost : head.lost) {
    lost_[lost.name].values += lost.values;
    lost_[lost.name].zeros += lost.zeros;
  }
  manifest_.files.push_back({.path = file.path,
                             .size = file.size,
                             .digest = head.digest,
                             .record_size = parser.size(),
                             .record_digest = parser.HexDigest(),
                             .encryption = file.encryption,
                             .key_check = file.key_check});
  return {};
}

Manifest ManifestBuilder::Finish() {
  manifest_.sources = sources_.Sources();
  return std::move(manifest_);
}

Result<Superseded> CheckSuperseded(const JobSpec& spec, const OutputDirectory& target, bool replace,
                                   PruneCheck check, std::vector<ManifestFile> abandoned) {
  Superseded superseded;
  RESHARD_ASSIGN_OR_RETURN(superseded.findings, CheckTarget(target, spec, replace));
  std::vector<ManifestFile>& all = superseded.findings.abandoned;
  all.insert(all.end(), std::make_move_iterator(abandoned.begin()),
             std::make_move_iterator(abandoned.end()));
  RESHARD_ASSIGN_OR_RETURN(superseded.pruning,
                           FindPruned(spec, superseded.findings, target, check));
  RESHARD_RETURN_IF_ERROR(CheckReaders(spec, superseded.findings, superseded.pruning));
  return superseded;
}

Status MakePublishable(const JobSpec& spec, const Superseded& superseded,
                       const std::vector<ManifestFile>& unflushed, const JobFolders& folders,
                       PublishReport& report) {
  const auto& [folder, parent, target] = folders;
  RESHARD_ASSIGN_OR_RETURN(Manifest manifest,
                           NewManifest(spec, superseded.findings, folder, target, report));
  RESHARD_ASSIGN_OR_RETURN(Pruning pruning, FindPruned(spec, superseded.findings, target,
                                                       PruneCheck::kDigests, superseded.pruning));
  RESHARD_RETURN_IF_ERROR(CheckReaders(spec, superseded.findings, pruning));
  RESHARD_ASSIGN_OR_RETURN(std::vector<ManifestFile> left,
                           ReportAbandoned(spec, superseded, pruning, target, report));
  for (const std::string& fingerprint : superseded.abandoned_jobs) {
    RESHARD_RETURN_IF_ERROR(JobFolder::Discard(parent, fingerprint));
  }
  return folder.Commit({.unflushed = unflushed,
                        .manifest = std::move(manifest),
                        .manifest_name = spec.manifest_name,
                        .origin = spec.origin,
                        .pruned = std::move(pruning.files),
                        .left = std::move(left)},
                       parent, target);
}

void PruneAfter(const JobFolder& folder, const OutputDirectory& target, PublishReport& report) {
  const auto pruned = folder.Prune(target);
  if (pruned.ok()) {
    report.pruned = *pruned;
  } else {
    report.warnings.push_back({WarningCode::kLeftovers, pruned.status().message()});
  }
}

void ClearAfter(const JobSpec& spec, const JobLock& lock, const OutputDirectory& target,
                PublishReport& report) {
  Status cleared = JobFolder::CleanUp(lock.folder(), spec.fingerprint);
  if (cleared.ok()) {
    const auto gone = lock.RemoveFolder(target);
    cleared = gone.status();
    if (gone.ok() && !*gone) {
      report.warnings.push_back(
          {WarningCode::kLeftovers,
           fmt::format("{}: kept, because it holds something that is not reshard's",
                       Escape(lock.folder().path()))});
    }
  }
  if (!cleared.ok()) report.warnings.push_back({WarningCode::kLeftovers, cleared.message()});
}

}  // namespace reshard
