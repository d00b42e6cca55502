#include "src/convert/write_targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/memory_usage.h"
#include "src/os/staged_file.h"
#include "src/os/threads.h"
#include "src/write/gather.h"
#include "src/write/part_writer.h"

namespace reshard {
SourceNames NamesOf(const OpenedSource& source) {
  SourceNames names;
  for (const auto* files : {&source.chosen(), &source.companions()}) {
    for (const ChosenFile& file : *files) {
      names[file.id] = {.path = file.relative_path, .size = file.identity.size()};
    }
  }
  return names;
}

std::vector<TargetShare> SharesOf(const WorkList& list, const std::vector<ManifestFile>& files,
                                  const std::vector<FilePart>& parts) {
  std::map<std::string_view, size_t> targets;
  for (size_t i = 0; i < list.targets.size(); ++i) targets.emplace(list.targets[i].path, i);
  std::vector<TargetShare> shares;
  shares.reserve(parts.size());
  for (const FilePart& part : parts) shares.push_back({targets.at(files[part.file].path), part});
  std::sort(shares.begin(), shares.end(), [](const TargetShare& a, const TargetShare& b) {
    return std::pair(a.target, a.part.range.offset) < std::pair(b.target, b.part.range.offset);
  });
  return shares;
}

std::vector<std::vector<size_t>> GroupParts(const WorkList& list,
                                            const std::vector<TargetShare>& parts, size_t most) {
  std::vector<std::vector<size_t>> groups;
  std::map<std::vector<int64_t>, size_t> open;  // source ranks to the group that still takes files
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto [found, added] =
        open.try_emplace(list.targets[parts[i].target].source_ranks, groups.size());
    if (added || groups[found->second].size() >= most) {
      found->second = groups.size();
      groups.emplace_back();
    }
    groups[found->second].push_back(i);
  }
  return groups;
}

void BeginReading(OpenedConversion& opened, const MemoryBudget& budget) {
  const WorkList& list = opened.work();
  SourceFiles& files = opened.source->files();
  if (!files.HasReadFiles()) return;
  const uint64_t held = budget.measured->meter.Look();
  const auto rest =
      DivideRest(budget, list, held - std::min(held, files.Buffered()), files.HeldForHeaders());
  if (!rest.ok()) return;  // FitMemory says so
  files.SetWindowBudget(rest->window_bytes, rest->header_bytes);
  std::vector<TargetShare> parts;
  parts.reserve(list.targets.size());
  for (size_t i = 0; i < list.targets.size(); ++i)
    parts.push_back({i, {i, {0, list.targets[i].size}}});
  uint64_t room = rest->window_bytes / 4 * 3;
  for (const std::vector<size_t>& group : GroupParts(list, parts, MaxGroup(*rest, list))) {
    // As ChunkFeed asks for them.
    const uint64_t share = group.size() == 1 ? room : std::min(room, rest->window_bytes / 2);
    for (const size_t part : group) {
      const PlanReport::TargetFile& file = list.targets[part];
      PlanFindings findings;
      findings.silent = true;
      const auto plan = opened.target().Plan(file.rank, findings);
      if (!plan.ok()) return;
      const uint64_t length = std::min(file.size, share / group.size());
      const TargetBytes bytes{&*plan, {0, length}, file.size};
      if (!PrefetchTargets(files, {&bytes, 1}).ok()) return;
      room -= std::min(room, length);
    }
    if (room < kWindowBytes) return;
  }
}

Result<Written> WriteTargets(const Conversion& conversion, const std::vector<TargetShare>& parts,
                             const Destination& destination, const SharedWork& shared) {
  if (parts.empty()) return Written{};
  OpenedConversion& opened = conversion.opened;
  const ConvertOptions& options = conversion.options;
  TimelineRecorder& timeline = conversion.timeline;
  OpenedSource& source = *opened.source;
  const WorkList& list = opened.work();
  // The blocks of an encrypted file begin anywhere.
  const IoChoice::Target mode =
      options.target.encryption ? IoChoice::Target::kBuffered : options.io.target;
  const MemoryBudget budget =
      IsDirect(mode, destination.storage) ? PastPageCache(conversion.budget) : conversion.budget;
  source.files().SetWindowBudget(budget.window_bytes, budget.header_bytes);
  WriteBack write_back(budget.write_back_bytes);
  WriteCounts counts;
  PartWork work;
  work.groups = GroupParts(list, parts, MaxGroup(budget, list));
  std::vector<uint64_t> lengths;
  std::vector<size_t> targets;  // by the job's numbers of the files
  work.parts.reserve(parts.size());
  lengths.reserve(parts.size());
  for (const TargetShare& share : parts) {
    work.parts.push_back(share.part);
    lengths.push_back(share.part.range.length);
    targets.resize(std::max(targets.size(), share.part.file + 1));
    targets[share.part.file] = share.target;
  }
  work.plan = [&](size_t file) -> Result<PlanHandle> {
    return opened.TakePlan(list.targets[targets[file]]);
  };
  work.digests = options.checks.checksum;
  if (const auto& encrypted = options.target.encryption) {
    RESHARD_ASSIGN_OR_RETURN(work.encryption,
                             BlockCipher::Make(options.target.encryption_key, *encrypted));
  }
  work.refuse_overflow = options.checks.refuse_overflow;
  work.fingerprint = destination.fingerprint;
  work.sources = NamesOf(source);
  work.write = {mode, &write_back};
  work.progress = [&](uint64_t bytes, bool kept) {
    if (kept) {
      if (destination.kept) destination.kept(bytes);
      if (shared.progress) shared.progress(bytes);
      return;
    }
    const uint64_t held = budget.measured->Look() + write_back.bytes();
    budget.measured->Note(held);
    if (timeline.records()) {
      timeline.AddWritten(bytes, counts.gathered, source.files().FilledBytes(), held);
    }
    if (shared.progress) shared.progress(bytes);
  };
  work.part_done = shared.file_done;
  LaneOptions lanes = LanesFor(budget, destination.storage, lengths);
  lanes.most_open = MostOpen(budget, list);
  RESHARD_RETURN_IF_ERROR(
      WriteParts(source.files(), work, destination.sink, lanes, counts, shared.stop));
  const SourceAccessCounts sources = source.files().access_counts();
  return Written{.kept = counts.kept,
                 .bytes_read = counts.content_bytes,
                 .memory_peak = counts.kept == parts.size() ? 0 : budget.measured->peak.load(),
                 .io = {.sources_mapped = sources.mapped,
                        .sources_read = sources.read,
                        .targets_direct = counts.direct,
                        .targets_buffered = counts.buffered}};
}

Status CheckPublication(const WorkList& list, const TargetJob& job, const SharedWork& shared) {
  const auto check = [&](size_t i, const std::stop_token& stop) -> Status {
    const PlanReport::TargetFile& file = list.targets[i];
    RESHARD_ASSIGN_OR_RETURN(const bool as_recorded, job.IsAsRecorded(file.path, stop));
    if (shared.progress) shared.progress(file.size);
    if (shared.file_done) shared.file_done();
    if (as_recorded) return {};
    return CorruptError(fmt::format(
        "{}: {} was damaged after it was written, before it was published; remove the folder "
        ".reshard there, and run again with `force` to write all files anew",
        Escape(job.spec().target.folder), Escape(file.path)));
  };
  return RunWorkers(shared.workers, list.targets.size(), check, shared.stop);
}

}  // namespace reshard
