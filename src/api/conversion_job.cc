#include "src/api/conversion_job.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <utility>

#include "src/api/convert_options_check.h"
#include "src/api/plan_fingerprint.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/file_identity.h"
#include "src/source/rank_pattern.h"

namespace reshard {
namespace {

// The folders that a pattern tells apart are the source's, as one with rank folders is. Where it
// names files side by side, they lie anywhere.
Status CheckOutsideOfPattern(const OpenedSource& source, const ConvertOptions& options) {
  if (!IsRankPattern(options.source)) return {};
  for (const OpenedSource::File& file : source.chosen()) {
    if (file.relative_path.find('/') == std::string::npos) continue;
    const std::filesystem::path path = source.path(file);
    RESHARD_RETURN_IF_ERROR(CheckOutside(options.target, path.parent_path().string()));
  }
  return {};
}

// A file that is read must not be one that is replaced, whatever the names it is reached by, nor
// one beside an output: a rank folder holds one checkpoint.
Status CheckSourcesStay(const OpenedSource& source, const PlanReport& plan,
                        const ConvertOptions& options) {
  const auto key = [](const FileIdentity& identity) {
    return std::pair(identity.device, identity.inode);
  };
  std::map<std::pair<uint64_t, uint64_t>, const OpenedSource::File*> sources;
  std::map<std::pair<uint64_t, uint64_t>, const OpenedSource::File*> folders;
  for (const OpenedSource::File& file : source.chosen()) {
    sources.emplace(key(file.identity), &file);
    const std::filesystem::path path = source.path(file);
    const auto folder = IdentityOf(path.has_parent_path() ? path.parent_path().string() : ".");
    if (folder.ok()) folders.emplace(key(*folder), &file);
  }
  for (const TargetFileSummary& target : plan.targets) {
    const std::string path = fmt::format("{}/{}", options.target, target.path);
    const auto folder = IdentityOf(std::filesystem::path(path).parent_path().string());
    if (!folder.ok()) continue;  // it will be made
    const auto there = IdentityOf(path);
    const auto same = there.ok() ? sources.find(key(*there)) : sources.end();
    if (same != sources.end()) {
      return InvalidArgumentError(fmt::format(
          "the output {} would replace the source file {}; choose another target folder",
          Escape(path), Escape(source.path(*same->second))));
    }
    const auto beside = folders.find(key(*folder));
    if (beside != folders.end()) {
      return InvalidArgumentError(fmt::format(
          "the output {} would lie beside the source file {}; choose another target folder",
          Escape(path), Escape(source.path(*beside->second))));
    }
  }
  return {};
}

}  // namespace

std::set<int64_t> RanksRead(const PlanReport& plan) {
  std::set<int64_t> ranks;
  for (const SourceFileSummary& file : plan.sources) ranks.insert(file.rank);
  return ranks;
}

Result<JobSpec> MakeJobSpec(const OpenedSource& source, const PlanReport& plan,
                            const ConvertOptions& options) {
  RESHARD_RETURN_IF_ERROR(CheckOutsideOfPattern(source, options));
  RESHARD_RETURN_IF_ERROR(CheckSourcesStay(source, plan, options));
  JobSpec spec;
  spec.target_folder = options.target;
  spec.fingerprint = PlanFingerprint(source, options);
  if (const auto stage = source.rule().stage_alone()) {
    spec.manifest_name = fmt::format("manifest_part{}.json", *stage);
  }
  for (const TargetFileSummary& target : plan.targets) {
    spec.files.push_back({target.path, target.size});
  }
  const Strategy* source_strategy = source.rule().source();
  const Strategy* target_strategy = source.rule().target();
  if (source_strategy != nullptr) spec.source_strategy = StrategyDigest(*source_strategy);
  if (target_strategy != nullptr) spec.target_strategy = StrategyDigest(*target_strategy);
  const std::set<int64_t> read = RanksRead(plan);
  for (const OpenedSource::File& file : source.chosen()) {
    if (read.contains(file.rank)) spec.sources.push_back({file.relative_path, file.identity.size});
  }
  spec.source_identities = options.shard ? SharedIdentityLines(source) : IdentityLines(source);
  spec.checksum = options.checksum;
  spec.force = options.force;
  spec.resume = options.resume;
  return spec;
}

}  // namespace reshard
