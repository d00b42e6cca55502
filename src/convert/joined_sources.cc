#include "src/convert/joined_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "src/base/status_macros.h"
#include "src/convert/conversion_job.h"
#include "src/convert/write_targets.h"
#include "src/digest/digest128.h"
#include "src/digest/logical_digest.h"
#include "src/job/target_place.h"
#include "src/os/output_directory.h"
#include "src/record/manifest_codec.h"
#include "src/record/part_record.h"
#include "src/tensor/block_copy.h"
#include "src/write/gather.h"
#include "src/write/target_digest.h"

namespace reshard {
namespace {

constexpr int kMostFiles = 16;
constexpr int kMostValues = 16;
// A Value of more bytes is compared only if there is no smaller one.
constexpr uint64_t kMostBytes = uint64_t{4} << 20;
constexpr uint64_t kStepBytes = uint64_t{1} << 20;

// The facts in a part record about a target file.
struct EarlierFile {
  PartRecordHead head;
  std::map<uint64_t, std::string> digests;  // of its Values, by their offsets
};

std::optional<EarlierFile> ReadEarlier(const OutputDirectory& folder, const std::string& path) {
  const auto bytes = ReadFileAt(folder, RecordPath(path), kMaxRecordBytes);
  if (!bytes.ok()) return std::nullopt;
  EarlierFile file;
  PartRecordParser parser(RecordPath(path), [&file](const RecordedValue& value) {
    file.digests[value.offset] = value.digest;
  });
  if (!parser.Feed(*bytes).ok() || !parser.Finish().ok()) return std::nullopt;
  file.head = *parser.head();
  return file;
}

// Whether `plan` makes the file from the sources that it was made from.
bool HasSameSources(const TargetPlan& plan, const SourceNames& names, const PartRecordHead& head) {
  std::set<std::pair<std::string_view, uint64_t>> now;
  for (const FileId file : plan.sources) now.emplace(names.at(file).path, names.at(file).size);
  std::set<std::pair<std::string_view, uint64_t>> before;
  for (const ManifestSource& file : head.sources) before.emplace(file.path, file.size);
  return plan.size == head.size && now == before;
}

bool TakesFrom(const Content& content, FileId file) {
  return std::any_of(content.copies.begin(), content.copies.end(),
                     [file](const BlockCopy& copy) { return copy.source == file; });
}

// Returns a content with bytes from `file`: the largest up to the limit, as small ones are often
// constant; else the smallest. Null if there is none.
const Content* ChooseContent(const TargetPlan& plan, FileId file) {
  const Content* chosen = nullptr;
  for (const Segment& segment : plan.segments) {
    const auto* content = std::get_if<Content>(&segment);
    if (content == nullptr || content->target.length == 0 || !TakesFrom(*content, file)) continue;
    const uint64_t length = content->target.length;
    const uint64_t best = chosen == nullptr ? 0 : chosen->target.length;
    const bool better = best > kMostBytes ? length < best : length > best && length <= kMostBytes;
    if (chosen == nullptr || better) chosen = content;
  }
  return chosen;
}

Result<std::string> DigestNow(SourceFiles& sources, const TargetPlan& plan,
                              const Content& content) {
  LogicalHasher hasher;
  Digest128 sum;
  CopyDigest digest(TargetMapOf(content), hasher, sum);
  std::vector<std::byte> bytes;
  for (uint64_t at = content.target.offset; at < content.target.end(); at += bytes.size()) {
    bytes.resize(std::min(kStepBytes, content.target.end() - at));
    RESHARD_RETURN_IF_ERROR(FillTarget(sources, plan, at, bytes, nullptr, nullptr));
    digest.Add(bytes.data(), bytes.size(), at);
  }
  return ToHex(sum);
}

// The target files of other runs that the run joins, by path.
std::set<std::string_view> JoinedFiles(const Manifest& manifest, const JobSpec& spec) {
  std::set<std::string_view> joined;
  for (const ManifestFile& file : manifest.files) joined.insert(file.path);
  for (const ManifestFile& file : spec.files) joined.erase(file.path);
  return joined;
}

// The source files that both have read, by path.
std::set<std::string_view> SharedSources(const Manifest& manifest, const JobSpec& spec) {
  std::set<std::string_view> read;
  for (const ManifestSource& file : manifest.sources) {
    if (!file.digest.empty()) read.insert(file.path);
  }
  std::set<std::string_view> shared;
  for (const ManifestSource& file : spec.sources) {
    if (read.contains(file.path)) shared.insert(file.path);
  }
  return shared;
}

}  // namespace

Result<std::string> FindOtherSource(OpenedConversion& opened, const JobSpec& spec) {
  const Target& target = opened.target();
  const std::string none;
  const auto folder = OutputDirectory::Open(spec.target.folder);
  if (!folder.ok()) return none;
  const auto bytes = folder->ReadFile(spec.manifest_name, kMaxManifestBytes);
  if (!bytes.ok()) return none;
  const auto manifest = ParseManifest(*bytes, spec.manifest_name);
  if (!manifest.ok() || manifest->plan != spec.fingerprint) return none;
  const std::set<std::string_view> joined = JoinedFiles(*manifest, spec);
  std::set<std::string_view> shared = SharedSources(*manifest, spec);
  const SourceNames names = NamesOf(*opened.source);
  int planned = 0;
  int compared = 0;
  for (int64_t rank = 0; rank < target.files() && !joined.empty(); ++rank) {
    if (shared.empty() || planned == kMostFiles || compared == kMostValues) break;
    const std::string path = target.PathOf(rank);
    if (!joined.contains(path)) continue;
    const auto earlier = ReadEarlier(*folder, path);
    if (!earlier) continue;
    const auto is_shared = [&](const ManifestSource& file) { return shared.contains(file.path); };
    if (std::none_of(earlier->head.sources.begin(), earlier->head.sources.end(), is_shared)) {
      continue;
    }
    ++planned;
    PlanFindings findings;
    const auto plan = target.Plan(rank, findings);
    if (!plan.ok()) continue;  // a file of another rank is missing here
    if (!HasSameSources(*plan, names, earlier->head)) continue;
    for (const FileId file : plan->sources) {
      const std::string& name = names.at(file).path;
      const Content* content = shared.erase(name) > 0 ? ChooseContent(*plan, file) : nullptr;
      if (content == nullptr) continue;
      const auto before = earlier->digests.find(content->target.offset);
      if (before == earlier->digests.end() || before->second.empty()) continue;
      RESHARD_ASSIGN_OR_RETURN(const std::string now,
                               DigestNow(opened.source->files(), *plan, *content));
      if (now != before->second) return name;
      if (++compared == kMostValues) break;
    }
  }
  return none;
}

}  // namespace reshard
