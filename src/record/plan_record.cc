#include "src/record/plan_record.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/record/part_record.h"
#include "src/record/record_fields.h"
#include "src/record/strict_json.h"

namespace reshard {
namespace {

constexpr uint64_t kPlanSchema = 1;

Fault PlanHeadFault(const PlanRecord& record) {
  if (record.states_redundancy <= 1) return std::nullopt;
  return fmt::format("states_redundancy is {}, but it is 0 or 1", record.states_redundancy);
}

// `previous` is the source before, null for the first.
Fault PlannedSourceFault(const PlannedSource& source, const PlannedSource* previous) {
  if (auto fault = RelativePathFault(source.path)) return fault;
  if (source.rank > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return fmt::format("rank {} is too large", source.rank);
  }
  if (previous == nullptr || previous->rank < source.rank) return std::nullopt;
  return fmt::format("rank {} after {}, but they are sorted and occur once", source.rank,
                     previous->rank);
}

constexpr JsonTable kPlanHeadTable =
    JsonTable{
        JsonFact<PlanRecord, SchemaVersion<kPlanSchema>>("schema_version"),
        JsonField<&PlanRecord::options, AsDigest>("options"),
        JsonField<&PlanRecord::job, AsDigest>("job"),
        JsonField<&PlanRecord::base, AsBytes>("base"),
        JsonField<&PlanRecord::base_mtime_ns, AsUnsigned>("base_mtime_ns"),
        JsonField<&PlanRecord::states_redundancy, AsUnsigned>("states_redundancy"),
        JsonField<&PlanRecord::strategy, AsBytes>("strategy"),
    }
        .CheckedBy<PlanHeadFault>();

constexpr JsonTable kPlannedSourceTable{
    JsonField<&PlannedSource::rank, AsUnsigned>("rank"),
    JsonField<&PlannedSource::path, AsBytes>("path"),
    JsonField<&PlannedSource::size, AsUnsigned>("size"),
    JsonField<&PlannedSource::mtime_ns, AsUnsigned>("mtime_ns"),
    JsonField<&PlannedSource::inode, AsUnsigned>("inode"),
    JsonField<&PlannedSource::folder_mtime_ns, AsUnsigned>("folder_mtime_ns"),
};

}  // namespace

Result<std::string> EncodePlanRecord(const PlanRecord& record) {
  const auto refuse = [](const std::string& fault) {
    return InvalidArgumentError(fmt::format("a plan record cannot hold this: {}", fault));
  };
  std::string line;
  if (const auto fault = AppendJson(kPlanHeadTable, record, JsonText::Style::kLine, line)) {
    return refuse(*fault);
  }
  std::string bytes = line + '\n';
  const PlannedSource* previous = nullptr;
  for (const PlannedSource& source : record.sources) {
    line.clear();
    Fault fault = AppendJson(kPlannedSourceTable, source, JsonText::Style::kLine, line);
    if (!fault) fault = PlannedSourceFault(source, previous);
    if (fault) return refuse(*fault);
    bytes += line;
    bytes += '\n';
    previous = &source;
  }
  Xxh3 lines;
  lines.Update(std::string_view{bytes});
  bytes += PartRecordSeal(lines, record.sources.size());
  return bytes;
}

Result<PlanRecord> ParsePlanRecord(std::string_view bytes, const std::string& path) {
  PlanRecord record;
  bool has_head = false;
  const auto take = [&](std::string_view line, const std::string& where) -> Status {
    if (!has_head) {
      has_head = true;
      return ReadStrictJson(line, where, kPlanHeadTable, record);
    }
    PlannedSource source;
    RESHARD_RETURN_IF_ERROR(ReadStrictJson(line, where, kPlannedSourceTable, source));
    const PlannedSource* const previous = record.sources.empty() ? nullptr : &record.sources.back();
    if (const auto fault = PlannedSourceFault(source, previous)) {
      return CorruptError(fmt::format("{}: {}", Escape(where), *fault));
    }
    record.sources.push_back(std::move(source));
    return {};
  };
  SealedLines lines(path);
  RESHARD_RETURN_IF_ERROR(lines.Feed(bytes, take));
  RESHARD_RETURN_IF_ERROR(lines.Finish());
  return record;
}

}  // namespace reshard
