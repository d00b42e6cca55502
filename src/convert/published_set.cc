#include "src/convert/published_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/base/status_macros.h"
#include "src/convert/conversion_job.h"
#include "src/os/output_directory.h"
#include "src/os/paths.h"
#include "src/record/manifest_codec.h"
#include "src/write/gather.h"

namespace reshard {
namespace {

constexpr uint64_t kSampleBytes = 4096;

// The first, the middle and the last one of `count`.
std::set<size_t> Some(size_t count) {
  if (count == 0) return {};
  return {0, count / 2, count - 1};
}

bool NamesSources(const Manifest& manifest, const JobSpec& spec) {
  std::map<std::string_view, uint64_t> sizes;
  for (const ManifestSource& source : manifest.sources) sizes.emplace(source.path, source.size);
  return std::all_of(spec.sources.begin(), spec.sources.end(), [&](const ManifestSource& own) {
    const auto known = sizes.find(own.path);
    return known != sizes.end() && known->second == own.size;
  });
}

// Whether the set has all that this run would write beside its files.
bool HasChecksums(const Manifest& manifest, const JobSpec& spec) {
  return !spec.checksum ||
         std::all_of(manifest.files.begin(), manifest.files.end(),
                     [](const ManifestFile& file) { return !file.digest.empty(); });
}

bool IsAnyAsNewAs(const OpenedSource& source, const WorkList& work, int64_t time) {
  const std::set<int64_t> read = RanksRead(work);
  return std::any_of(source.chosen().begin(), source.chosen().end(),
                     [&](const OpenedSource::File& file) {
                       return read.contains(file.rank) &&
                              std::max(file.identity.mtime_ns, file.identity.ctime_ns) >= time;
                     });
}

// Compares the middle of some contents of a target file, which may not be there, with the sources.
Result<bool> AreSamplesEqual(SourceFiles& sources, const TargetPlan& plan,
                             const std::string& path) {
  std::vector<ByteRange> contents;
  for (const Segment& segment : plan.segments) {
    if (std::holds_alternative<Content>(segment)) contents.push_back(TargetRange(segment));
  }
  SourceFiles published(1);
  const FileId file = published.Add(path);
  for (const size_t i : Some(contents.size())) {
    const uint64_t length = std::min(contents[i].length, kSampleBytes);
    const uint64_t offset = contents[i].offset + (contents[i].length - length) / 2;
    std::vector<std::byte> expected(length);
    std::vector<std::byte> found(length);
    RESHARD_RETURN_IF_ERROR(FillTarget(sources, plan, offset, expected, nullptr));
    const Status read = published.Read(file, offset, found);
    if (read.code() == StatusCode::kIo) return read;
    if (!read.ok() || found != expected) return false;
  }
  return true;
}

}  // namespace

Result<bool> IsPublished(OpenedSource& source, const Planner& planner, const WorkList& work,
                         const JobSpec& spec) {
  const auto target = OutputDirectory::Open(spec.target_folder);
  if (!target.ok()) return false;
  const std::string path = target->PathOf(spec.manifest_name);
  const auto bytes = target->ReadFile(spec.manifest_name, kMaxManifestBytes);
  const auto identity = IdentityOf(path);
  if (!bytes.ok() || !identity.ok()) return false;
  const auto manifest = ParseManifest(*bytes, path);
  if (!manifest.ok() || manifest->plan != spec.fingerprint || !NamesSources(*manifest, spec) ||
      !HasChecksums(*manifest, spec) || IsAnyAsNewAs(source, work, identity->mtime_ns)) {
    return false;
  }
  for (const size_t i : Some(work.targets.size())) {
    PlanNotes notes;  // all has been said by the first pass
    RESHARD_ASSIGN_OR_RETURN(const TargetPlan planned,
                             planner.PlanTarget(work.targets[i].rank, notes));
    RESHARD_ASSIGN_OR_RETURN(
        const bool equal,
        AreSamplesEqual(source.files(), planned,
                        fmt::format("{}/{}", spec.target_folder, work.targets[i].path)));
    if (!equal) return false;
  }
  return true;
}

}  // namespace reshard
