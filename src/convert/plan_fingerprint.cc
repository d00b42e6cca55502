#include "src/convert/plan_fingerprint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string_view>

#include "src/digest/xxh3.h"

namespace reshard {
namespace {

// A name of any bytes, told apart from what follows it by its length.
std::string Delimited(std::string_view name) { return fmt::format("{}:{} ", name.size(), name); }

// Their order and repetitions change nothing.
void AddPatterns(std::string_view kind, const std::vector<std::string>& patterns, Xxh3& digest) {
  for (const std::string& pattern : std::set<std::string>(patterns.begin(), patterns.end())) {
    digest.Update(fmt::format("{} {}\n", kind, Delimited(pattern)));
  }
}

}  // namespace

std::string StrategyDigest(const Strategy& strategy) {
  Xxh3 digest;
  digest.Update(
      fmt::format("pipeline={} own_stage={}\n", strategy.is_pipeline(), strategy.own_stage()));
  for (const StrategyStage& stage : strategy.stages()) {
    digest.Update("stage\n");
    for (const auto [name, layout] : stage.layouts()) {
      digest.Update(Delimited(name));
      digest.Update(fmt::format("{} {} {} {}\n", layout.device_matrix, layout.tensor_map,
                                layout.opt_weight_shard_step, layout.opt_weight_shard_size));
    }
  }
  return digest.HexDigest();
}

std::string PlanFingerprint(const OpenedSource& source, const std::string& prefix,
                            const Selection& selection) {
  Xxh3 digest;
  digest.Update("reshard plan 1\n");
  digest.Update(Delimited(prefix));
  digest.Update(fmt::format("unmatched={}\n", static_cast<int>(selection.unmatched)));
  AddPatterns("include", selection.include, digest);
  AddPatterns("exclude", selection.exclude, digest);
  for (const auto& [from, to] : selection.renames) {
    digest.Update(fmt::format("rename {}{}\n", Delimited(from), Delimited(to)));
  }
  const Strategy* source_strategy = source.rule().source();
  const Strategy* target_strategy = source.rule().target();
  if (source_strategy != nullptr) {
    digest.Update(fmt::format("source {}\n", StrategyDigest(*source_strategy)));
  }
  if (target_strategy != nullptr) {
    digest.Update(fmt::format("target {}\n", StrategyDigest(*target_strategy)));
  }
  for (const HolderGroups::List& list : source.shards().groups().lists()) {
    digest.Update(fmt::format("holders {}\n", list.ranks));
  }
  if (const auto step = source.step()) {
    digest.Update(fmt::format("step={}_{}\n", step->epoch, step->step));
  }
  return digest.HexDigest();
}

std::vector<std::string> IdentityLines(const OpenedSource& source) {
  std::vector<std::string> lines;
  for (const auto& [rank, path, id, identity] : source.chosen()) {
    // Not its device: that is another number when the file system is mounted anew.
    lines.push_back(fmt::format("{}inode={} size={} mtime={} ctime={}", Delimited(path),
                                identity.inode, identity.size, identity.mtime_ns,
                                identity.ctime_ns));
  }
  return lines;
}

std::vector<std::string> SharedIdentityLines(const OpenedSource& source) {
  std::vector<std::string> lines;
  for (const auto& [rank, path, id, identity] : source.chosen()) {
    lines.push_back(
        fmt::format("{}size={} mtime={}", Delimited(path), identity.size, identity.mtime_ns));
  }
  return lines;
}

}  // namespace reshard
