#include "src/exec/job_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "reshard/version.h"
#include "src/base/quote.h"

namespace reshard {
namespace {

constexpr std::string_view kVersionKey = "reshard ";
constexpr std::string_view kManifestKey = "manifest ";
constexpr std::string_view kChecksumKey = "checksum ";

// Takes the line "KEY VALUE" off the front of `text`; returns whether it is there.
bool TakeLine(std::string_view& text, std::string_view key, std::string& value) {
  const size_t end = text.find('\n');
  if (!text.starts_with(key) || end == std::string_view::npos) return false;
  value = text.substr(key.size(), end - key.size());
  text.remove_prefix(end + 1);
  return true;
}

// Returns the first line of `left` that is not in `own`. Both end with a line's end.
std::string FirstOther(std::string_view left, std::string_view own) {
  while (!left.empty()) {
    const size_t end = left.find('\n');
    const std::string_view line = left.substr(0, end + 1);
    if (own.find(line) == std::string_view::npos) return Escape(line.substr(0, end));
    left.remove_prefix(line.size());
  }
  return "none";
}

}  // namespace

JobText JobTextOf(const JobSpec& spec) {
  JobText job;
  job.tool_version = kVersion;
  job.manifest_name = spec.manifest_name;
  job.checksum = spec.checksum;
  for (const ManifestFile& file : spec.files) {
    job.targets += fmt::format("target {} {}\n", file.size, file.path);
  }
  for (const std::string& source : spec.source_identities) {
    job.sources += fmt::format("source {}\n", source);
  }
  return job;
}

std::string EncodeJobText(const JobText& job) {
  return fmt::format("{}{}\n{}{}\n{}{}\n{}\n{}", kVersionKey, job.tool_version, kManifestKey,
                     job.manifest_name, kChecksumKey, job.checksum ? "yes" : "no", job.targets,
                     job.sources);
}

Result<JobText> ParseJobText(std::string_view text, const std::string& path) {
  JobText job;
  std::string checksum;
  // The targets end with an empty line.
  if (!TakeLine(text, kVersionKey, job.tool_version) ||
      !TakeLine(text, kManifestKey, job.manifest_name) || !TakeLine(text, kChecksumKey, checksum) ||
      (checksum != "yes" && checksum != "no") || !IsManifestName(job.manifest_name)) {
    return CorruptError(
        fmt::format("{}: not written by reshard; remove the folder that it lies in", Escape(path)));
  }
  job.checksum = checksum == "yes";
  const size_t end = text.starts_with('\n') ? 0 : text.find("\n\n") + 1;
  if ((end == 0 && !text.starts_with('\n')) || !text.ends_with('\n')) {
    return CorruptError(
        fmt::format("{}: ends too early; remove the folder that it lies in", Escape(path)));
  }
  job.targets = text.substr(0, end);
  job.sources = text.substr(end + 1);
  return job;
}

Status CheckSameJob(const JobText& left, const JobText& own, const std::string& path) {
  constexpr const char* kAdvice = "run without --resume to write all files anew";
  if (left.tool_version != own.tool_version) {
    return MismatchError(fmt::format("{}: begun by reshard {}, this is {}; {}", Escape(path),
                                     Escape(left.tool_version), own.tool_version, kAdvice));
  }
  if (left.sources != own.sources) {
    return ChangedError(
        fmt::format("{}: the sources are not what they were when the interrupted run began; then: "
                    "{}, now: {}; {}",
                    Escape(path), FirstOther(left.sources, own.sources),
                    FirstOther(own.sources, left.sources), kAdvice));
  }
  if (left.checksum != own.checksum) {
    return MismatchError(fmt::format("{}: begun {} --no-checksum, now run {} it; {}", Escape(path),
                                     left.checksum ? "without" : "with",
                                     own.checksum ? "without" : "with", kAdvice));
  }
  if (left != own) {
    return MismatchError(
        fmt::format("{}: the interrupted run was to write other files; then: {}, now: {}; give the "
                    "same --rank options again, or {}",
                    Escape(path), FirstOther(left.targets, own.targets),
                    FirstOther(own.targets, left.targets), kAdvice));
  }
  return {};
}

}  // namespace reshard
