#include "tools/cli/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>
#include <variant>

#include "reshard/checkpoint.h"
#include "reshard/tensor.h"
#include "tools/cli/messages.h"
#include "tools/cli/shard_report.h"
#include "tools/cli/stop_on_signal.h"
#include "tools/cli/strategy_report.h"
#include "tools/cli/unknown_words.h"
#include "tools/page/inspection.h"
#include "tools/page/parameter_table.h"
#include "tools/page/text_format.h"

namespace reshard {
namespace {

constexpr size_t kMostModules = 13;  // with the lines above and below they fit a screen

void AddStretches(const StoredArray& parameter, Table& table) {
  if (parameter.content.size() > 1) {
    for (const ByteRange& range : parameter.content) {
      table.AddRow({"  value", "", "", fmt::format("{}", range.offset),
                    fmt::format("{}", range.length), ""});
    }
  }
  for (size_t i = 0; i < parameter.map_tensor.size(); ++i) {
    const StoredArray::MapTensorPart& part = parameter.map_tensor[i];
    table.AddRow({fmt::format("  {}", kMapTensorParts[i % std::size(kMapTensorParts)]),
                  PrintableName(part.type), FormatList(part.shape),
                  fmt::format("{}", part.content.offset), fmt::format("{}", part.content.length),
                  ""});
  }
}

std::string ToText(double number) { return fmt::format("{:.6g}", number); }

std::string ToText(const std::optional<StatisticsReport::Number>& number) {
  if (!number) return "-";
  if (const auto* real = std::get_if<double>(&*number)) return ToText(*real);
  return std::visit([](auto exact) { return fmt::format("{}", exact); }, *number);
}

// A line about the file. `rank` is the rank of its folder.
std::string CheckpointLine(const Checkpoint& checkpoint, std::optional<int64_t> rank) {
  std::string out = rank ? fmt::format("rank {}: ", *rank) : std::string();
  out += fmt::format("{}: checkpoint, {}, {}", PrintableName(checkpoint.path()),
                     FormatCount(checkpoint.parameters().size(), "parameter"),
                     FormatBytes(checkpoint.file_size()));
  if (const std::optional<uint64_t> crc = checkpoint.crc()) {
    out += fmt::format(", CRC-32 {:#010x}", *crc);
  }
  return out + '\n';
}

// A table of parameters. `verbose` adds a row for each stretch of a content that lies in several,
// and for each part of a MapTensor.
std::string ParametersAsText(const std::vector<const StoredArray*>& parameters, bool verbose) {
  Table table({{"NAME"},
               {"DTYPE"},
               {"SHAPE"},
               {"OFFSET", Align::kRight},
               {"BYTES", Align::kRight},
               {"VALUES", Align::kRight}});
  for (const StoredArray* parameter : parameters) {
    const std::optional<uint64_t> offset = ContentOffset(*parameter);
    table.AddRow({PrintableName(parameter->name), std::string(StoredTypeName(*parameter)),
                  ShapeText(parameter->kind, parameter->dtype, parameter->shape),
                  offset ? fmt::format("{}", *offset) : "-", fmt::format("{}", parameter->bytes),
                  fmt::format("{}", parameter->framed.size())});
    if (verbose) AddStretches(*parameter, table);
  }
  return table.ToText();
}

// The modules that the parameters belong to, on a screen.
std::string ModulesAsText(const std::vector<const StoredArray*>& parameters) {
  ModuleTree modules;
  for (const StoredArray* parameter : parameters) {
    modules.Add(parameter->name, StoredTypeName(*parameter), parameter->bytes);
  }
  return modules.ToText(kMostModules) +
         fmt::format("  --long lists all {} parameters, as output into a file or pipe does\n",
                     parameters.size());
}

// A table with a row for each; numbers other than integers get six digits.
std::string ValuesAsText(const std::vector<StatisticsReport::Parameter>& parameters) {
  Table table({{"NAME"},
               {"DTYPE"},
               {"SHAPE"},
               {"MIN", Align::kRight},
               {"MAX", Align::kRight},
               {"MEAN", Align::kRight},
               {"NAN", Align::kRight},
               {"INF", Align::kRight}});
  for (const StatisticsReport::Parameter& parameter : parameters) {
    std::vector<std::string> row = {PrintableName(parameter.name),
                                    std::string(TypeName(parameter.kind, parameter.dtype)),
                                    ShapeText(parameter.kind, parameter.dtype, parameter.shape)};
    if (const auto& found = parameter.statistics) {
      row.insert(row.end(), {ToText(found->least), ToText(found->greatest),
                             found->mean ? ToText(*found->mean) : "-",
                             fmt::format("{}", found->nans), fmt::format("{}", found->infinities)});
    } else {
      row.insert(row.end(), 5, "-");
    }
    table.AddRow(std::move(row));
  }
  return table.ToText();
}

using TotalsByName = std::map<std::string_view, ContentTotal>;

std::string TableOf(std::string_view header, const TotalsByName& totals) {
  Table table({{header}, {"PARAMETERS", Align::kRight}, {"SIZE", Align::kRight}});
  for (const auto& [name, total] : totals) {
    table.AddRow(
        {std::string(name), fmt::format("{}", total.parameters), FormatBytes(total.bytes)});
  }
  return table.ToText();
}

std::string LineOf(const TotalsByName& totals) {
  std::string text;
  for (const auto& [name, total] : totals) {
    text += fmt::format("{}{} {}", text.empty() ? "  " : ", ", name, FormatBytes(total.bytes));
  }
  return text + '\n';
}

// `in_lines`: in three lines, without tables.
std::string ToText(const ContentTotals& totals, bool in_lines) {
  std::string all =
      fmt::format("total: {}, {}, {} of content\n", FormatCount(totals.files, "checkpoint"),
                  FormatCount(totals.all.parameters, "parameter"), FormatBytes(totals.all.bytes));
  if (totals.all.parameters == 0) return all;
  if (in_lines) return all + LineOf(totals.by_dtype) + LineOf(totals.by_group);
  return all + TableOf("DTYPE", totals.by_dtype) + '\n' + TableOf("PREFIX", totals.by_group);
}

}  // namespace

void FolderSummary::Add(const InspectedFile& file) {
  uint64_t bytes = 0;
  for (const StoredArray* parameter : file.parameters) {
    bytes += parameter->bytes;
    modules_.Add(parameter->name, StoredTypeName(*parameter), parameter->bytes);
  }
  const auto alike = [&](const Row& row) {
    return file.rank && row.parameters == file.parameters.size() && row.size == file.size &&
           row.bytes == bytes;
  };
  auto row = std::find_if(rows_.begin(), rows_.end(), alike);
  if (row == rows_.end()) {
    rows_.push_back({.ranks = {},
                     .first = file.path,
                     .files = 0,
                     .parameters = file.parameters.size(),
                     .size = file.size,
                     .bytes = bytes});
    row = std::prev(rows_.end());
  }
  ++row->files;
  if (file.rank) row->ranks.push_back(*file.rank);
}

std::string FolderSummary::ToText() const {
  constexpr size_t kMostRows = 8;
  Table table({{"RANKS"},
               {"PARAMETERS", Align::kRight},
               {"SIZE", Align::kRight},
               {rows_.size() < 2 && rows_.front().files == 1 ? "FILE" : "FIRST FILE"}});
  uint64_t left = 0;
  for (const Row& row : rows_) {
    if (static_cast<size_t>(&row - rows_.data()) >= kMostRows) {
      left += row.files;
      continue;
    }
    table.AddRow(
        {row.ranks.empty() ? "-" : FormatRanks(row.ranks), fmt::format("{}", row.parameters),
         FormatBytes(row.size) + (row.files > 1 ? " each" : ""), PrintableName(row.first)});
  }
  std::string text = table.ToText();
  if (left > 0)
    text += fmt::format("  and {} more; --long lists them all\n", FormatCount(left, "file"));
  return modules_.empty() ? text : text + '\n' + modules_.ToText(kMostModules);
}

InspectCommand::InspectCommand(CLI::App& parent)
    : Command(parent, "inspect",
              "Show the content of a checkpoint, a folder of ranks or a strategy",
              {"reshard inspect ckpt_8/rank_0/net-1_100.ckpt",
               "reshard inspect ckpt_8 --include 'adam_m.*'",
               "reshard inspect ckpt_8 --strategy s8.ckpt            # full tensors and their cut",
               "reshard inspect ckpt_8 --strategy s8.ckpt --param lm_head.weight",
               "reshard inspect ckpt_8 --strategy s8.ckpt --values",
               "reshard inspect ckpt_8 strategy_8.ckpt --json"}) {
  AddPositional(app(), "PATH", options_.paths,
                "Checkpoint file, folder with rank_N/*.ckpt, pattern with {rank}, strategy file or "
                "folder of stage files");
  AddJsonLinesOption();
  app().add_flag("--long", long_,
                 "List every parameter; of a folder, every parameter of every file");
  table_.AddTo(app(), kInspectCall);
  app()
      .add_option("--param", options_.tensor,
                  "List which ranks hold which box of this parameter; needs --strategy")
      ->type_name("NAME");
  app().add_flag("--values", options_.values,
                 "Read the content and list each parameter's minimum, maximum and mean, its NaNs "
                 "and infinities");
  AddJobsOption(app(), options_.run.jobs)
      ->description("Threads that read for --values; 0 is one per core");
}

Status InspectCommand::CheckOptions() const {
  if (options_.values && !options_.tensor.empty()) {
    return InvalidArgumentError("--param and --values exclude each other");
  }
  if (!options_.tensor.empty() && options_.source.strategy.empty()) {
    return InvalidArgumentError("--param needs --strategy");
  }
  if (long_ && (options_.values || !options_.tensor.empty())) {
    return InvalidArgumentError("--long excludes --values and --param");
  }
  return {};
}

int InspectCommand::Run() {
  SetOwnWords({{"source.strategy", "--strategy"}});
  const Status given = table_.ApplyTo(PartsOf(options_));
  if (!given.ok()) return Fail(given);
  if (const Status status = CheckOptions(); !status.ok()) return Fail(status);
  // The document begins as JsonDocument() without its closing brace. Of lines, each checkpoint has
  // its own.
  if (json() && !json_lines()) {
    std::string head = ToJsonText(JsonDocument());
    head.pop_back();
    PrintData(head + ",\"checkpoints\":[");
  }
  const Inspection found = Inspect(options_, *this);
  if (json()) {
    JsonReport rest(json_lines() ? JsonDocument() : nlohmann::ordered_json::object());
    Describe(found, {}, rest);
    const std::string text = ToJsonText(rest.Take()) + '\n';
    PrintData(json_lines() ? text : "]," + text.substr(1));
  } else if (checkpoints_ > 0) {
    PrintData(ToText(found.totals, only_folders_));
  }
  return exit_code_;
}

void InspectCommand::BeginFolder(const std::string& path, uint64_t files, const std::string& step) {
  if (long_ || options_.values || json()) return;
  folder_.emplace();
  PrintData(fmt::format("{}: {}{}\n", PrintableName(path), FormatCount(files, "file"),
                        step.empty() ? "" : ", step " + step));
}

void InspectCommand::EndFolder() {
  if (folder_ && !folder_->empty()) PrintData(folder_->ToText() + '\n');
  folder_.reset();
}

void InspectCommand::Notes(const std::vector<std::string>& notes) {
  if (!quiet()) PrintNotes(notes);
}

void InspectCommand::Error(const Status& status) {
  const int exit_code = Fail(status);
  if (exit_code_ == 0) exit_code_ = exit_code;
}

void InspectCommand::BeginTensors() {
  tensors_.emplace(
      std::vector<Table::Column>{{"DTYPE"}, {"FULL SHAPE"}, {"SIZE", Align::kRight}, {"CUT"}});
  tensors_->FoldCopies({0, 2});
}

bool InspectCommand::KeepsTensor(const CutTensor& cut) {
  const auto& [tensor, shards] = cut;
  if (json()) return true;
  if (!options_.tensor.empty()) {
    PrintData(ShardsAsText(tensor, shards));
  } else {
    tensors_->Add(
        tensor.name,
        {std::string(DTypeName(tensor.dtype)), ShapeText(tensor.kind, tensor.dtype, tensor.shape),
         FormatBytes(tensor.bytes), CutText(tensor, shards)},
        tensor.stage);
  }
  return false;
}

void InspectCommand::EndTensors(const FullTensors& tensors) {
  if (json() || !options_.tensor.empty()) return;
  PrintData(options_.values ? ValuesAsText(tensors.values) : tensors_->ToText(long_));
}

std::string InspectCommand::AdviceFor(const std::string& tensor,
                                      const ShardedCheckpoint& checkpoint) {
  std::vector<std::string> all;
  for (const ShardedCheckpoint::Tensor& each : checkpoint.tensors()) all.push_back(each.name);
  return "; " + NamesMeant(tensor, all, "reshard inspect");
}

Result<StatisticsReport> InspectCommand::Measure(const ContentOptions& options) {
  return CallStoppable(options, progress_style(), MeasureValues);
}

void InspectCommand::File(const Checkpoint& checkpoint, const InspectedFile& file) {
  const std::vector<const StoredArray*>& parameters = file.parameters;
  if (json_lines()) {
    PrintJsonLine("checkpoint", AsJson(file));
  } else if (json()) {
    PrintData((checkpoints_ == 0 ? "" : ",") + ToJsonText(AsJson(file)));
  } else if (folder_) {
    folder_->Add(file);
  } else {
    only_folders_ = false;
    // Into a file or a pipe the list goes as it is.
    const bool too_many = !long_ && options_.include.empty() && options_.exclude.empty() &&
                          !verbose() && StdoutIsTerminal() &&
                          parameters.size() > ParameterTable::kScreenRows;
    PrintData(CheckpointLine(checkpoint, file.rank) +
              (options_.values ? ValuesAsText(file.statistics)
               : too_many      ? ModulesAsText(parameters)
                               : ParametersAsText(parameters, verbose())) +
              '\n');
  }
  ++checkpoints_;
}

void InspectCommand::Layouts(const ShownStrategy& strategy) {
  if (json()) return;
  PrintData(StrategyAsText(strategy, {.every_parameter = long_, .every_field = verbose()}) + '\n');
}

}  // namespace reshard
