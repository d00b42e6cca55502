#include "src/convert/write_targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/counted_work.h"
#include "src/os/memory_usage.h"
#include "src/os/staged_file.h"
#include "src/os/threads.h"
#include "src/write/part_writer.h"

namespace reshard {
namespace {

WriteMode WriteModeOf(TargetIo io) {
  switch (io) {
    case TargetIo::kDirect:
      return WriteMode::kDirect;
    case TargetIo::kBuffered:
      return WriteMode::kBuffered;
    case TargetIo::kAuto:
      break;
  }
  return WriteMode::kAuto;
}

}  // namespace

SourceNames NamesOf(const OpenedSource& source) {
  SourceNames names;
  for (const OpenedSource::File& file : source.chosen()) {
    names[file.id] = {.path = file.relative_path, .size = file.identity.size};
  }
  return names;
}

std::vector<TargetShare> SharesOf(const PlanReport& plan, const std::vector<ManifestFile>& files,
                                  const std::vector<FilePart>& parts) {
  std::map<std::string_view, size_t> targets;
  for (size_t i = 0; i < plan.targets.size(); ++i) targets.emplace(plan.targets[i].path, i);
  std::vector<TargetShare> shares;
  shares.reserve(parts.size());
  for (const FilePart& part : parts) shares.push_back({targets.at(files[part.file].path), part});
  std::sort(shares.begin(), shares.end(), [](const TargetShare& a, const TargetShare& b) {
    return std::pair(a.target, a.part.range.offset) < std::pair(b.target, b.part.range.offset);
  });
  return shares;
}

std::vector<std::vector<size_t>> GroupParts(const PlanReport& plan,
                                            const std::vector<TargetShare>& parts, size_t most) {
  std::vector<std::vector<size_t>> groups;
  std::map<std::vector<int64_t>, size_t> open;  // source ranks to the group that still takes files
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto [found, added] =
        open.try_emplace(plan.targets[parts[i].target].source_ranks, groups.size());
    if (added || groups[found->second].size() >= most) {
      found->second = groups.size();
      groups.emplace_back();
    }
    groups[found->second].push_back(i);
  }
  return groups;
}

Result<Written> WriteTargets(OpenedSource& source, const Planner& planner, const PlanReport& plan,
                             const std::vector<TargetShare>& parts, const PartSink& sink,
                             StorageKind storage, const std::string& fingerprint,
                             const ConvertOptions& options, const MemoryBudget& budget,
                             const std::function<void(uint64_t)>& progress,
                             TimelineRecorder& timeline) {
  if (parts.empty()) return Written{};
  MemoryMeter& meter = budget.measured->meter;
  WriteBack write_back(budget.write_back_bytes);
  WriteCounts counts;
  PartWork work;
  work.groups = GroupParts(plan, parts, MaxGroup(budget, plan));
  std::vector<uint64_t> lengths;
  std::map<size_t, size_t> targets;  // by the job's numbers of the files
  for (const TargetShare& share : parts) {
    work.parts.push_back(share.part);
    lengths.push_back(share.part.range.length);
    targets.emplace(share.part.file, share.target);
  }
  work.plan = [&](size_t file) -> Result<TargetPlan> {
    const TargetFileSummary& expected = plan.targets[targets.at(file)];
    PlanNotes notes;
    notes.silent = true;  // all has been said by the first pass
    RESHARD_ASSIGN_OR_RETURN(TargetPlan target, planner.PlanTarget(expected.rank, notes));
    if (target.size == expected.size) return target;
    return InternalError(
        fmt::format("{}: planned {} bytes, then {}", expected.path, expected.size, target.size));
  };
  work.digests = options.checksum;
  work.fingerprint = fingerprint;
  work.sources = NamesOf(source);
  work.write = {WriteModeOf(options.io.target), &write_back};
  work.progress = [&](uint64_t bytes, bool kept) {
    if (kept) {
      if (progress) progress(bytes);
      return;
    }
    const uint64_t held = meter.Look() + source.files().Held() + write_back.bytes();
    budget.measured->Note(held);
    if (timeline.records()) {
      timeline.AddWritten(bytes, counts.gathered, source.files().FilledBytes(), held);
    }
    if (progress) progress(bytes);
  };
  LaneOptions lanes = LanesFor(budget, storage, lengths);
  lanes.most_open = MostOpen(budget, plan);
  RESHARD_RETURN_IF_ERROR(WriteParts(source.files(), work, sink, lanes, counts, options.stop));
  const SourceAccessCounts sources = source.files().access_counts();
  return Written{.kept = counts.kept,
                 .bytes_read = counts.content_bytes,
                 .memory_peak = counts.kept == parts.size() ? 0 : budget.measured->peak.load(),
                 .io = {.sources_mapped = sources.mapped,
                        .sources_read = sources.read,
                        .targets_direct = counts.direct,
                        .targets_buffered = counts.buffered}};
}

Status CheckPublication(const PlanReport& plan, const TargetJob& job, const ConvertOptions& options,
                        const std::function<void(uint64_t)>& progress) {
  const auto check = [&](size_t i, const std::stop_token& stop) -> Status {
    const TargetFileSummary& file = plan.targets[i];
    RESHARD_ASSIGN_OR_RETURN(const bool as_recorded, job.IsAsRecorded(file.path, stop));
    if (progress) progress(file.size);
    if (as_recorded) return {};
    return CorruptError(fmt::format(
        "{}: {} was damaged after it was written, before it was published; remove the folder "
        ".reshard there, and run again with --force to write all files anew",
        Escape(options.target), Escape(file.path)));
  };
  return RunWorkers(Workers(options.jobs), plan.targets.size(), check, options.stop);
}

}  // namespace reshard
