#include "tools/cli/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/frontend/option_parts.h"
#include "tools/cli/messages.h"
#include "tools/cli/rank_findings.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/stop_on_signal.h"
#include "tools/page/parameter_table.h"
#include "tools/page/text_format.h"

namespace reshard {
namespace {

// With a column of ranks, if there are any to list.
std::string DigestTable(const DigestReport& report) {
  const bool by_rank = std::any_of(
      report.parameters.begin(), report.parameters.end(),
      [](const DigestReport::Parameter& parameter) { return !parameter.ranks.empty(); });
  std::vector<Table::Column> columns = {
      {"NAME"}, {"DTYPE"}, {"SHAPE"}, {"BYTES", Align::kRight}, {"DIGEST"}};
  if (by_rank) columns.push_back({"RANKS"});
  Table table(std::move(columns));
  for (const DigestReport::Parameter& parameter : report.parameters) {
    std::vector<std::string> row = {PrintableName(parameter.name),
                                    std::string(TypeName(parameter.kind, parameter.dtype)),
                                    ShapeText(parameter.kind, parameter.dtype, parameter.shape),
                                    fmt::format("{}", parameter.bytes), parameter.digest};
    if (by_rank) row.push_back(parameter.ranks.empty() ? "-" : FormatRanks(parameter.ranks));
    table.AddRow(std::move(row));
  }
  return table.ToText();
}

// A row for each dtype, and the digest of all.
std::string DigestTotals(const DigestReport& report) {
  struct Total {
    uint64_t values = 0;
    uint64_t bytes = 0;
  };
  std::map<std::string_view, Total> by_dtype;
  for (const DigestReport::Parameter& parameter : report.parameters) {
    Total& total = by_dtype[TypeName(parameter.kind, parameter.dtype)];
    ++total.values;
    total.bytes += parameter.bytes;
  }
  Table table({{"DTYPE"}, {"VALUES", Align::kRight}, {"SIZE", Align::kRight}});
  for (const auto& [dtype, total] : by_dtype) {
    table.AddRow({std::string(dtype), fmt::format("{}", total.values), FormatBytes(total.bytes)});
  }
  return fmt::format(
      "{}  digest of all: {}\n  --long lists each one, as output into a file or pipe does\n",
      table.ToText(), report.digest);
}

// If a parameter has several values, the first counts.
uint64_t NameCount(const DigestReport& report) {
  uint64_t count = 0;
  const std::string* last = nullptr;
  for (const DigestReport::Parameter& parameter : report.parameters) {
    if (last == nullptr || *last != parameter.name) ++count;
    last = &parameter.name;
  }
  return count;
}

// The text of the column RELATION.
std::string RelationText(const DiffReport::Parameter& diff) {
  if (diff.relation != DiffReport::Relation::kOtherType) {
    return std::string(RelationName(diff.relation));
  }
  if (diff.a->kind == diff.b->kind && diff.a->dtype == diff.b->dtype) return "other shape";
  return diff.a->shape == diff.b->shape ? "other dtype" : "other dtype, shape";
}

// How the summary calls so many parameters.
std::string_view RelationOfMany(DiffReport::Relation relation) {
  return relation == DiffReport::Relation::kOtherType ? "of another dtype or shape"
                                                      : RelationName(relation);
}

std::string TypeText(const std::optional<TensorInfo>& type) {
  if (!type) return "-";
  return fmt::format("{} {}", TypeName(type->kind, type->dtype),
                     ShapeText(type->kind, type->dtype, type->shape));
}

// As short as it can be without loss; the same in every locale.
std::string NumberText(double number) { return fmt::format("{}", number); }

std::string ValuesText(const DiffReport::ValueDifference& values, const Shape& shape) {
  std::vector<std::string> parts;
  if (values.numbers > 0) {
    parts.push_back(fmt::format("{} of {} elements by at most {}", values.numbers,
                                ElementCount(shape).value_or(0), NumberText(values.greatest)));
  }
  if (values.nan_against_number > 0) {
    parts.push_back(fmt::format("{} NaN against a number", values.nan_against_number));
  }
  if (values.nan_against_nan > 0) {
    parts.push_back(fmt::format("{} NaN of other bits", values.nan_against_nan));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// A line with the ranks of one side whose value no rank of the other side holds.
std::string OwnRanksText(const std::string& name, const std::vector<int64_t>& ranks,
                         std::string_view side, std::string_view other) {
  if (ranks.empty()) return "";
  return fmt::format("{}: {} {} of {} {} that no rank of {} holds\n", PrintableName(name),
                     ranks.size() == 1 ? "rank" : "ranks", FormatRanks(ranks), side,
                     ranks.size() == 1 ? "holds a value" : "hold values", other);
}

}  // namespace

DigestCommand::DigestCommand(CLI::App& parent)
    : Command(parent, "digest", "Print a digest of each parameter; it is the same in every layout",
              {"reshard digest ckpt_8 --strategy s8.ckpt",
               "reshard digest ckpt_8 --strategy s8.ckpt -q > before   # then diff before after",
               "reshard digest full/rank_0/model.ckpt --json"}) {
  AddPositional(app(), "PATH", options_.source.path,
                "Folder with rank_N/*.ckpt or *.safetensors. Without a strategy also one file, a "
                "unified folder or a Hugging Face folder");
  table_.AddTo(app(), kDigestCall);
  app().add_flag("--long", long_, "List every parameter on a terminal too");
  AddJsonLinesOption();
  AddJobsOption(app(), options_.run.jobs);
}

int DigestCommand::Run() {
  SetOwnWords({{"source.strategy", "--strategy"}});
  if (const Status given = table_.ApplyTo(PartsOf(options_)); !given.ok()) return Fail(given);
  const auto print = [this](const DigestReport& report, double seconds) {
    if (json()) {
      PrintReport(report, {.place = options_.source.path, .seconds = seconds});
    } else {
      const bool fold =
          !long_ && StdoutIsTerminal() && report.parameters.size() > ParameterTable::kScreenRows;
      PrintData(fold ? DigestTotals(report) : DigestTable(report));
      if (report.replicas) PrintData(ReplicaLines(*report.replicas, ""));
    }
    if (!quiet()) {
      PrintNotes(report.notes);
      if (report.replicas) PrintNotes(OwnValueNotes(*report.replicas, ""));
      PrintWords(fmt::format("{}, {} read in {} ({}){}",
                             FormatCount(NameCount(report), "parameter"),
                             FormatBytes(report.bytes_read), FormatSeconds(seconds),
                             FormatRate(report.bytes_read, seconds),
                             report.replicas ? "; " + ReplicasText(*report.replicas) : ""));
    }
    return report.replicas && report.replicas->differing > 0 ? 1 : 0;
  };
  return RunStoppable(options_, progress_style(), DigestCheckpoint, print);
}

DiffCommand::DiffCommand(CLI::App& parent)
    : Command(parent, "diff", "Compare two checkpoints of any layouts; exit 1 if they differ",
              {"reshard diff ckpt_8 ckpt_4 --a-strategy s8.ckpt --b-strategy s4.ckpt",
               "reshard diff run1/model.ckpt run2/model.ckpt --values"}) {
  AddPositional(app(), "A", options_.source.path,
                "Folder with rank_N/*.ckpt or *.safetensors. Without a strategy also one file, a "
                "unified folder or a Hugging Face folder");
  AddPositional(app(), "B", options_.b.path, "The same");
  table_.AddTo(app(), kDiffCall);
  app().add_flag("--long", long_, "List every parameter on a terminal too");
  AddJsonLinesOption();
  AddJobsOption(app(), options_.run.jobs);
}

int DiffCommand::Run() {
  SetOwnWords({{"source.strategy", "--a-strategy or --b-strategy"},
               {"source.format", "--a-format or --b-format"}});
  if (const Status given = table_.ApplyTo(PartsOf(options_)); !given.ok()) return Fail(given);
  options_.b.key = options_.source.key;
  const auto print = [this](const DiffReport& report, double seconds) {
    if (json()) {
      PrintReport(report, {.seconds = seconds});
    } else {
      PrintText(report);
    }
    if (!quiet()) {
      PrintNotes(report.notes);
      for (const auto& [side, replicas] : {std::pair(" of A", &report.a), {" of B", &report.b}}) {
        if (*replicas) PrintNotes(OwnValueNotes(**replicas, side));
      }
      PrintSummary(report, seconds);
    }
    return report.equal() ? 0 : 1;
  };
  return RunStoppable(options_, progress_style(), Diff, print);
}

void DiffCommand::PrintSummary(const DiffReport& report, double seconds) const {
  std::string counts;
  for (const DiffReport::Relation relation :
       {DiffReport::Relation::kEqual, DiffReport::Relation::kDifferent,
        DiffReport::Relation::kOtherType, DiffReport::Relation::kOnlyInA,
        DiffReport::Relation::kOnlyInB}) {
    const uint64_t count = report.Count(relation);
    if (count == 0 && relation != DiffReport::Relation::kEqual) continue;
    if (!counts.empty()) counts += ", ";
    counts += fmt::format("{} {}", count, RelationOfMany(relation));
  }
  PrintWords(fmt::format("{}: {}; {} compared, {} read in {} ({}){}",
                         FormatCount(report.parameters.size(), "parameter"), counts,
                         FormatBytes(report.bytes), FormatBytes(report.bytes_read),
                         FormatSeconds(seconds), FormatRate(report.bytes_read, seconds),
                         report.a ? "; " + ReplicasText(*report.a, *report.b) : ""));
}

void DiffCommand::PrintText(const DiffReport& report) const {
  std::vector<Table::Column> columns = {{"RELATION"}, {"A"}, {"B"}};
  if (options_.values) columns.push_back({"VALUES"});
  ParameterTable table(std::move(columns));
  for (const DiffReport::Parameter& diff : report.parameters) {
    if (diff.relation == DiffReport::Relation::kEqual && !verbose()) continue;
    std::vector<std::string> cells = {RelationText(diff), TypeText(diff.a), TypeText(diff.b)};
    if (options_.values) {
      cells.push_back(diff.values ? ValuesText(*diff.values, diff.a->shape) : "-");
    }
    table.Add(diff.name, std::move(cells));
  }
  if (!table.empty()) PrintData(table.ToText(long_ || !StdoutIsTerminal()));
  for (const DiffReport::Parameter& diff : report.parameters) {
    PrintData(OwnRanksText(diff.name, diff.a_ranks, "A", "B"));
    PrintData(OwnRanksText(diff.name, diff.b_ranks, "B", "A"));
  }
  if (report.a) PrintData(ReplicaLines(*report.a, " of A"));
  if (report.b) PrintData(ReplicaLines(*report.b, " of B"));
}

}  // namespace reshard
