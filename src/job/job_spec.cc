#include "src/job/job_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "reshard/options.h"
#include "reshard/version.h"
#include "src/base/number_text.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/digest/xxh3.h"
#include "src/job/source_stamps.h"

namespace reshard {
namespace {

constexpr std::string_view kVersionKey = "reshard ";
constexpr std::string_view kManifestKey = "manifest ";
constexpr std::string_view kChecksumKey = "checksum ";
constexpr std::string_view kWorkersKey = "shards ";
constexpr std::string_view kStrategiesKey = "strategies ";
constexpr std::string_view kPruneKey = "prune";
constexpr std::string_view kCrcKey = "crc";
constexpr std::string_view kEncryptionKey = "encryption ";
constexpr std::string_view kOriginKey = "origin ";
constexpr std::string_view kStampsKey = "stamps ";
constexpr std::string_view kTargetKey = "target ";
constexpr std::string_view kNoDigest = "-";

// Takes the line "KEY VALUE" off the front of `text`; returns whether it is there.
bool TakeLine(std::string_view& text, std::string_view key, std::string& value) {
  const size_t end = text.find('\n');
  if (!text.starts_with(key) || end == std::string_view::npos) return false;
  value = text.substr(key.size(), end - key.size());
  text.remove_prefix(end + 1);
  return true;
}

std::string_view DigestOrNone(const std::string& digest) {
  return digest.empty() ? kNoDigest : digest;
}

// Takes "SOURCE TARGET" apart; returns whether both are digests or none.
bool TakeStrategies(std::string_view text, JobText& job) {
  const size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return false;
  job.source_strategy = text.substr(0, blank);
  job.target_strategy = text.substr(blank + 1);
  for (std::string* digest : {&job.source_strategy, &job.target_strategy}) {
    if (*digest == kNoDigest) {
      digest->clear();
    } else if (!CheckFingerprint(*digest).ok()) {
      return false;
    }
  }
  return true;
}

// A line "SIZE MTIME INODE LENGTH:PATH" for each; a path has any bytes, and a time no sign.
std::string EncodeStamps(const std::vector<SourceStamp>& stamps) {
  if (stamps.empty()) return "";
  std::string text = fmt::format("{}{}\n", kStampsKey, stamps.size());
  for (const SourceStamp& stamp : stamps) {
    fmt::format_to(std::back_inserter(text), "{} {} {} {}:{}\n", stamp.size,
                   static_cast<uint64_t>(stamp.mtime_ns), stamp.inode, stamp.path.size(),
                   stamp.path);
  }
  return text;
}

// Takes a number and the character behind it off the front of `text`.
bool TakeNumberTo(std::string_view& text, char end, uint64_t& number) {
  const size_t at = text.find(end);
  const auto found =
      at == std::string_view::npos ? std::nullopt : ParseNumber<uint64_t>(text.substr(0, at));
  if (!found) return false;
  number = *found;
  text.remove_prefix(at + 1);
  return true;
}

// Takes the output of EncodeStamps off the front of `text`; returns false if it is damaged.
bool TakeStamps(std::string_view& text, std::vector<SourceStamp>& stamps) {
  std::string count;
  if (!TakeLine(text, kStampsKey, count)) return true;
  const auto number = ParseNumber<uint64_t>(count);
  if (!number) return false;
  for (uint64_t i = 0; i < *number; ++i) {
    SourceStamp stamp;
    uint64_t time = 0;
    uint64_t length = 0;
    if (!TakeNumberTo(text, ' ', stamp.size) || !TakeNumberTo(text, ' ', time) ||
        !TakeNumberTo(text, ' ', stamp.inode) || !TakeNumberTo(text, ':', length) ||
        length >= text.size() || text[length] != '\n') {
      return false;
    }
    stamp.mtime_ns = static_cast<int64_t>(time);
    stamp.path = text.substr(0, length);
    text.remove_prefix(length + 1);
    stamps.push_back(std::move(stamp));
  }
  return true;
}

// The words for a number of workers, or for a run without workers.
std::string SharesText(uint64_t workers) {
  if (workers == 0) return "by one run alone";
  return fmt::format("as {} {}", workers, workers == 1 ? "share" : "shares");
}

// Returns the lines of `text`, which ends with a line's end.
std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

// Returns the first line of `left` that is not in `own`. Both end with a line's end.
std::string FirstOther(std::string_view left, std::string_view own) {
  const std::vector<std::string_view> own_lines = LinesOf(own);
  const std::unordered_set<std::string_view> known(own_lines.begin(), own_lines.end());
  for (const std::string_view line : LinesOf(left)) {
    if (!known.contains(line)) return Escape(line);
  }
  return "none";
}

// How the sources of two runs differ.
std::string DescribeSources(const JobText& left, const JobText& own) {
  std::string change = DescribeChanges(left.stamps, own.stamps);
  if (!change.empty()) return change;
  std::unordered_set<std::string_view> now;
  for (const SourceStamp& stamp : own.stamps) now.insert(stamp.path);
  for (const SourceStamp& stamp : left.stamps) {
    if (now.contains(stamp.path)) continue;
    return fmt::format("source {} is not among them now", Escape(stamp.path));
  }
  return "one was written to, though its size and time are the same";
}

// The advice when workers were begun and another kind of run follows. It must not discard the files
// that the workers have finished.
std::string HowToGoOn(uint64_t workers, const std::vector<uint64_t>& outstanding) {
  if (outstanding.empty()) return "all have finished: `CommitWorkers` publishes them";
  std::vector<std::string> names;
  names.reserve(outstanding.size());
  for (const uint64_t worker : outstanding) names.push_back(fmt::format("{}/{}", worker, workers));
  return fmt::format(
      "not finished: {}; run {} with `shard={}`, or, in a job array, requeue the task (a new array "
      "with one task is share 0/1)",
      FirstOf(names), names.size() == 1 ? "it" : "each", names.front());
}

// As ParseJobText; after an error `job` has the fields before it.
Status ParseInto(std::string_view text, const std::string& path, JobText& job) {
  std::string checksum;
  std::string workers;
  std::string strategies;
  std::string nothing;
  // The targets end with an empty line.
  if (!TakeLine(text, kVersionKey, job.tool_version) ||
      !TakeLine(text, kManifestKey, job.manifest_name) || !TakeLine(text, kChecksumKey, checksum) ||
      (checksum != "yes" && checksum != "no") || !IsManifestName(job.manifest_name) ||
      !TakeLine(text, kWorkersKey, workers) || !ParseNumber<uint64_t>(workers) ||
      !TakeLine(text, kStrategiesKey, strategies) || !TakeStrategies(strategies, job)) {
    return CorruptError(fmt::format("{}: not written by reshard; remove its folder", Escape(path)));
  }
  job.checksum = checksum == "yes";
  job.workers = *ParseNumber<uint64_t>(workers);
  if (job.workers > kMaxWorkers) {
    return CorruptError(fmt::format("{}: expected at most {} shares, found {}; remove its folder",
                                    Escape(path), kMaxWorkers, job.workers));
  }
  job.states_crc = TakeLine(text, kCrcKey, nothing);
  TakeLine(text, kEncryptionKey, job.encryption);
  job.prune = TakeLine(text, kPruneKey, nothing);
  TakeLine(text, kOriginKey, job.origin);
  if (!TakeStamps(text, job.stamps)) {
    return CorruptError(
        fmt::format("{}: its list of sources is damaged; remove its folder", Escape(path)));
  }
  const size_t end = text.starts_with('\n') ? 0 : text.find("\n\n") + 1;
  if ((end == 0 && !text.starts_with('\n')) || !text.ends_with('\n')) {
    return CorruptError(fmt::format("{}: ends too early; remove its folder", Escape(path)));
  }
  job.targets = text.substr(0, end);
  job.sources = text.substr(end + 1);
  return {};
}

}  // namespace

bool StatesCrc(const JobSpec& spec, std::string_view path) {
  return spec.target.states_crc && !path.ends_with(".json");
}

Result<JobSpec> CheckedSpec(JobSpec spec) {
  RESHARD_RETURN_IF_ERROR(CheckFingerprint(spec.fingerprint));
  if (!IsManifestName(spec.manifest_name)) {
    return InvalidArgumentError(fmt::format("{} is no manifest's name", Quote(spec.manifest_name)));
  }
  std::sort(spec.files.begin(), spec.files.end(),
            [](const ManifestFile& a, const ManifestFile& b) { return a.path < b.path; });
  const std::string* previous = nullptr;
  for (const ManifestFile& file : spec.files) {
    RESHARD_RETURN_IF_ERROR(CheckTargetPath(file.path));
    if (previous != nullptr && *previous == file.path) {
      return InvalidArgumentError(
          fmt::format("the target path {} would be written twice", Quote(file.path)));
    }
    previous = &file.path;
  }
  return spec;
}

JobText JobTextOf(const JobSpec& spec) {
  JobText job;
  job.tool_version = kVersion;
  job.manifest_name = spec.manifest_name;
  job.checksum = spec.checks.checksum;
  job.states_crc = spec.target.states_crc;
  if (spec.target.encryption) {
    job.encryption =
        fmt::format("{} {}", EncryptionModeName(*spec.target.encryption), spec.key_check);
  }
  job.workers = spec.workers;
  job.source_strategy = spec.source_strategy;
  job.target_strategy = spec.target_strategy;
  job.prune = spec.output.prune;
  job.origin = spec.origin;
  job.stamps = spec.stamps;
  for (const ManifestFile& file : spec.files) {
    job.targets += fmt::format("{}{} {}\n", kTargetKey, file.size, file.path);
  }
  for (const std::string& source : spec.source_identities) {
    job.sources += fmt::format("source {}\n", source);
  }
  return job;
}

bool JobText::IsSameJob(const JobText& other) const {
  JobText same = other;  // DigestOf leaves out the same members
  same.prune = prune;
  same.origin = origin;
  same.stamps = stamps;
  return *this == same;
}

std::string EncodeJobText(const JobText& job) {
  return fmt::format(
      "{}{}\n{}{}\n{}{}\n{}{}\n{}{} {}\n{}{}{}{}{}{}\n{}", kVersionKey, job.tool_version,
      kManifestKey, job.manifest_name, kChecksumKey, job.checksum ? "yes" : "no", kWorkersKey,
      job.workers, kStrategiesKey, DigestOrNone(job.source_strategy),
      DigestOrNone(job.target_strategy), job.states_crc ? fmt::format("{}\n", kCrcKey) : "",
      job.encryption.empty() ? "" : fmt::format("{}{}\n", kEncryptionKey, job.encryption),
      job.prune ? fmt::format("{}\n", kPruneKey) : "",
      job.origin.empty() ? "" : fmt::format("{}{}\n", kOriginKey, job.origin),
      EncodeStamps(job.stamps), job.targets, job.sources);
}

std::string DigestOf(const JobText& job) {
  JobText same = job;
  same.prune = false;
  same.origin.clear();
  same.stamps.clear();
  Xxh3 digest;
  digest.Update(EncodeJobText(same));
  return digest.HexDigest();
}

Result<JobText> ParseJobText(std::string_view text, const std::string& path) {
  JobText job;
  const Status parsed = ParseInto(text, path, job);
  if (parsed.ok()) return job;
  if (job.tool_version.empty() || job.tool_version == kVersion) return parsed;
  return CorruptError(fmt::format(
      "{}: begun by reshard {}, which {} cannot read; use that version, or remove its folder",
      Escape(path), Escape(job.tool_version), kVersion));
}

Result<JobSpec> SpecOf(const JobText& job, const std::string& target_folder,
                       const std::string& fingerprint, const std::string& path) {
  JobSpec spec;
  spec.target.folder = target_folder;
  spec.fingerprint = fingerprint;
  spec.manifest_name = job.manifest_name;
  spec.source_strategy = job.source_strategy;
  spec.target_strategy = job.target_strategy;
  spec.checks.checksum = job.checksum;
  spec.target.states_crc = job.states_crc;
  spec.workers = job.workers;
  spec.output.prune = job.prune;
  spec.origin = job.origin;
  spec.stamps = job.stamps;
  if (!job.encryption.empty()) {
    const size_t blank = job.encryption.find(' ');
    spec.target.encryption = ParseEncryptionMode(job.encryption.substr(0, blank));
    if (blank != std::string::npos) spec.key_check = job.encryption.substr(blank + 1);
    if (!spec.target.encryption) {
      return CorruptError(fmt::format("{}: {} is not an encryption mode; remove its folder",
                                      Escape(path), Quote(job.encryption)));
    }
  }
  std::string_view targets = job.targets;
  std::string target;
  while (!targets.empty()) {
    const bool taken = TakeLine(targets, kTargetKey, target);
    const size_t blank = taken ? target.find(' ') : std::string::npos;
    const auto size = blank == std::string::npos
                          ? std::nullopt
                          : ParseNumber<uint64_t>(std::string_view{target}.substr(0, blank));
    if (!size || !CheckTargetPath(target.substr(blank + 1)).ok()) {
      return CorruptError(
          fmt::format("{}: expected \"target SIZE PATH\", found {}; remove its folder",
                      Escape(path), Quote(targets.substr(0, targets.find('\n')))));
    }
    spec.files.push_back({.path = target.substr(blank + 1), .size = *size});
    spec.files.back().encryption = spec.target.encryption;
    spec.files.back().key_check = spec.key_check;
  }
  return spec;
}

Status CheckSameJob(const JobText& left, const JobText& own, const std::string& path,
                    const std::vector<uint64_t>& outstanding) {
  const char* advice = own.workers == 0 ? "run without `resume` to write all files anew"
                                        : "remove that folder to write all files anew";
  if (left.tool_version != own.tool_version) {
    return MismatchError(fmt::format("{}: begun by reshard {}, but this is {}; {}", Escape(path),
                                     Escape(left.tool_version), own.tool_version, advice));
  }
  if (left.workers != own.workers) {
    return MismatchError(fmt::format("{}: begun {}, but now run {}; {}", Escape(path),
                                     SharesText(left.workers), SharesText(own.workers),
                                     left.workers == 0
                                         ? fmt::format("continue in the same way, or {}", advice)
                                         : HowToGoOn(left.workers, outstanding)));
  }
  if (left.sources != own.sources) {
    return ChangedError(
        fmt::format("{}: the sources have changed since the interrupted run began: {}; {}",
                    Escape(path), DescribeSources(left, own), advice));
  }
  if (left.checksum != own.checksum) {
    return MismatchError(fmt::format("{}: begun {} `checksum=false`, but now run {} it; {}",
                                     Escape(path), left.checksum ? "without" : "with",
                                     own.checksum ? "without" : "with", advice));
  }
  if (left.encryption != own.encryption) {
    return MismatchError(fmt::format(
        "{}: the interrupted run encrypted with another key; give the same one again, or "
        "{}",
        Escape(path), advice));
  }
  if (!left.IsSameJob(own)) {
    return MismatchError(
        fmt::format("{}: the interrupted run was to write other files; then: {}, now: {}; give the "
                    "same `ranks` options again, or {}",
                    Escape(path), FirstOther(left.targets, own.targets),
                    FirstOther(own.targets, left.targets), advice));
  }
  return {};
}

}  // namespace reshard
