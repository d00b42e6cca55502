#include "tools/cli/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>
#include <variant>

#include "reshard/checkpoint.h"
#include "reshard/convert.h"
#include "reshard/parameters.h"
#include "reshard/tensor.h"
#include "tools/cli/messages.h"
#include "tools/cli/shard_report.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/stop_on_signal.h"
#include "tools/cli/strategy_report.h"
#include "tools/cli/unknown_words.h"
#include "tools/page/parameter_table.h"
#include "tools/page/text_format.h"

namespace reshard {
namespace {

constexpr size_t kMostModules = 13;  // with the lines above and below they fit a screen

std::string_view StoredTypeText(const StoredArray& parameter) {
  return parameter.kind == ArrayKind::kMapTensor ? "map" : DTypeName(parameter.dtype);
}

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

bool IsFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

std::string Unfinished(const std::string& folder) {
  return fmt::format(
      "{}: a conversion into this folder is unfinished; `FindStatus` tells how far "
      "it is",
      PrintableName(folder));
}

// The checkpoints that lie in the folder itself, in the order of names.
std::vector<std::string> CheckpointsIn(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::filesystem::path extension = entry->path().extension();
    if ((extension == ".ckpt" || extension == ".safetensors") &&
        !IsFolder(entry->path().string())) {
      files.push_back(entry->path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

Status NoSuchParameter(const ShardedCheckpoint& checkpoint, const std::string& typed) {
  std::vector<std::string> all;
  for (const ShardedCheckpoint::Tensor& tensor : checkpoint.tensors()) all.push_back(tensor.name);
  return NotFoundError(fmt::format("the checkpoint has no tensor \"{}\"; {}", PrintableName(typed),
                                   NamesMeant(typed, all, "reshard inspect")));
}

// The parameters of `checkpoint` that the filter takes, in file order. They belong to the
// checkpoint.
std::vector<const StoredArray*> SelectParameters(const Checkpoint& checkpoint,
                                                 const NameFilter& filter) {
  std::vector<const StoredArray*> selected;
  for (const StoredArray& parameter : checkpoint.parameters()) {
    if (filter.Takes(parameter.name)) selected.push_back(&parameter);
  }
  return selected;
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
    table.AddRow({PrintableName(parameter->name), std::string(StoredTypeText(*parameter)),
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
    modules.Add(parameter->name, StoredTypeText(*parameter), parameter->bytes);
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

// Adds the shown parameters of the checkpoint.
void AddTo(ContentTotals& totals, const Checkpoint& checkpoint,
           const std::vector<const StoredArray*>& parameters) {
  ++totals.files;
  for (const StoredArray* parameter : parameters) {
    for (ContentTotal* total : {&totals.all, &totals.by_dtype[StoredTypeText(*parameter)],
                                &totals.by_group[checkpoint.GroupOf(*parameter)]}) {
      ++total->parameters;
      total->bytes += parameter->bytes;
    }
  }
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

void FolderSummary::Add(const Checkpoint& checkpoint, std::optional<int64_t> rank,
                        const std::vector<const StoredArray*>& parameters) {
  uint64_t bytes = 0;
  for (const StoredArray* parameter : parameters) {
    bytes += parameter->bytes;
    modules_.Add(parameter->name, StoredTypeText(*parameter), parameter->bytes);
  }
  const auto alike = [&](const Row& row) {
    return rank && row.parameters == parameters.size() && row.size == checkpoint.file_size() &&
           row.bytes == bytes;
  };
  auto row = std::find_if(rows_.begin(), rows_.end(), alike);
  if (row == rows_.end()) {
    rows_.push_back({.ranks = {},
                     .first = checkpoint.path(),
                     .files = 0,
                     .parameters = parameters.size(),
                     .size = checkpoint.file_size(),
                     .bytes = bytes});
    row = std::prev(rows_.end());
  }
  ++row->files;
  if (rank) row->ranks.push_back(*rank);
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
  AddPositional(app(), "PATH", paths_,
                "Checkpoint file, folder with rank_N/*.ckpt, pattern with {rank}, strategy file or "
                "folder of stage files");
  AddJsonLinesOption();
  app().add_flag("--long", long_,
                 "List every parameter; of a folder, every parameter of every file");
  table_.AddTo(app(), kInspectCall);
  app()
      .add_option("--param", parameter_,
                  "List which ranks hold which box of this parameter; needs --strategy")
      ->type_name("NAME");
  app().add_flag("--values", values_,
                 "Read the content and list each parameter's minimum, maximum and mean, its NaNs "
                 "and infinities");
  AddJobsOption(app(), jobs_)->description("Threads that read for --values; 0 is one per core");
}

Status InspectCommand::CheckOptions() const {
  if (values_ && !parameter_.empty()) {
    return InvalidArgumentError("--param and --values exclude each other");
  }
  if (!parameter_.empty() && strategy_.empty()) {
    return InvalidArgumentError("--param needs --strategy");
  }
  if (long_ && (values_ || !parameter_.empty())) {
    return InvalidArgumentError("--long excludes --values and --param");
  }
  return {};
}

SourceSpec InspectCommand::SourceOf(const std::string& path) const {
  SourceSpec source = source_;
  source.path = path;
  source.key = key_;
  return source;
}

int InspectCommand::Run() {
  SetOwnWords({{"source.strategy", "--strategy"}});
  OptionParts parts = PartsOf(filter_);
  parts.source = &source_;
  parts.key = &key_;
  const Status given = table_.ApplyTo(parts);
  if (!given.ok()) return Fail(given);
  strategy_ = source_.strategy.path();
  if (!strategy_.empty()) found_.sharded.emplace();
  if (const Status status = CheckOptions(); !status.ok()) return Fail(status);
  // The document begins as JsonDocument() without its closing brace. Of lines, each checkpoint has
  // its own.
  if (json() && !json_lines()) {
    std::string head = ToJsonText(JsonDocument());
    head.pop_back();
    PrintData(head + ",\"checkpoints\":[");
  }
  for (const std::string& path : paths_) {
    if (!cancelled_) InspectPath(path);
  }
  if (filter_.given() && parameter_.empty() && !filter_matched_ && exit_code_ == 0) {
    Warn({filter_.NothingTaken()});
  }
  if (json()) {
    JsonReport rest(json_lines() ? JsonDocument() : nlohmann::ordered_json::object());
    Describe(found_, rest);
    const std::string text = ToJsonText(rest.Take()) + '\n';
    PrintData(json_lines() ? text : "]," + text.substr(1));
  } else if (checkpoints_ > 0) {
    PrintData(ToText(found_.totals, only_folders_));
  }
  return exit_code_;
}

void InspectCommand::InspectPath(const std::string& path) {
  if (!parameter_.empty()) {
    InspectShards(path);
  } else if (!strategy_.empty() && values_) {
    InspectValues(path);
  } else if (!strategy_.empty()) {
    InspectTensors(path);
  } else if (IsFolder(path) || path.find("{rank}") != std::string::npos) {
    InspectFolder(path);
  } else {
    InspectFile(path);
  }
}

void InspectCommand::InspectFile(const std::string& path) {
  const Result<Checkpoint> checkpoint = Checkpoint::Open(path, key_, Checkpoint::Purpose::kListing);
  if (checkpoint.ok()) {
    ShowCheckpoint(*checkpoint, std::nullopt);
    return;
  }
  const Result<Strategy> strategy = ReadStrategy(path);
  if (strategy.ok()) {
    ShowStrategy(*strategy);
    return;
  }
  // A file that parses as a strategy is one, even if its layouts contradict each other.
  const bool is_strategy = strategy.status().code() == StatusCode::kMismatch;
  Report(path, is_strategy ? strategy.status() : checkpoint.status());
}

void InspectCommand::InspectFolder(const std::string& path) {
  const Result<RankFiles> ranks = ListRankFiles(SourceOf(path));
  if (!ranks.ok()) {
    if (ranks.status().code() != StatusCode::kNotFound) return Report(path, ranks.status());
    return InspectFiles(path, ranks.status());
  }
  if (!quiet()) PrintNotes(ranks->notes);
  TellIfUnfinished(path);
  Warn(ranks->warnings);
  BeginFolder(path, ranks->files.size(), ranks->step);
  for (size_t place = 0; place < ranks->files.size(); ++place) {
    if (cancelled_) break;
    const RankFiles::File& file = ranks->files[place];
    const Result<Checkpoint> checkpoint = Checkpoint::Open(*ranks, place, key_);
    if (checkpoint.ok()) {
      ShowCheckpoint(*checkpoint, file.rank);
    } else {
      Report(file.path, checkpoint.status());
    }
  }
  EndFolder();
}

// Such as a set that a conversion with --force is going to replace.
void InspectCommand::TellIfUnfinished(const std::string& folder) const {
  if (quiet() || !IsFolder(folder + "/.reshard")) return;
  const Result<StatusReport> status = FindStatus(folder);
  if (status.ok() && status->state == StatusReport::State::kPublished) return;
  PrintNotes({Unfinished(folder)});
}

void InspectCommand::InspectFiles(const std::string& path, const Status& not_ranks) {
  const Result<Strategy> strategy = ReadStrategy(path);
  if (strategy.ok()) return ShowStrategy(*strategy);
  const std::vector<std::string> files = CheckpointsIn(path);
  if (files.empty() && IsFolder(path + "/.reshard")) {
    return Report(path, NotFoundError(Unfinished(path)));
  }
  if (files.empty()) {
    const bool of_ranks =
        !source_.suffix.empty() || strategy.status().code() == StatusCode::kNotFound;
    return Report(path, of_ranks ? not_ranks : strategy.status());
  }
  BeginFolder(path, files.size(), "");
  for (const std::string& file : files) {
    if (!cancelled_) InspectFile(file);
  }
  EndFolder();
}

void InspectCommand::BeginFolder(const std::string& path, uint64_t files, const std::string& step) {
  if (long_ || values_ || json()) return;
  folder_.emplace();
  PrintData(fmt::format("{}: {}{}\n", PrintableName(path), FormatCount(files, "file"),
                        step.empty() ? "" : ", step " + step));
}

void InspectCommand::EndFolder() {
  if (folder_ && !folder_->empty()) PrintData(folder_->ToText() + '\n');
  folder_.reset();
}

void InspectCommand::InspectTensors(const std::string& path) {
  const Result<ShardedCheckpoint> checkpoint = ShardedCheckpoint::Open(SourceOf(path));
  if (!checkpoint.ok()) return Report(path, checkpoint.status());
  if (!quiet()) PrintNotes(checkpoint->notes());
  Warn(checkpoint->warnings());
  ParameterTable table({{"DTYPE"}, {"FULL SHAPE"}, {"SIZE", Align::kRight}, {"CUT"}});
  table.FoldCopies({0, 2});
  FullTensors found{.path = path};
  for (const ShardedCheckpoint::Tensor& tensor : checkpoint->tensors()) {
    if (!filter_.Takes(tensor.name)) continue;
    filter_matched_ = true;
    const Result<std::vector<ShardedCheckpoint::Shard>> shards = checkpoint->Shards(tensor.name);
    if (!shards.ok()) return Report(path, shards.status());
    if (json()) {
      found.cut.push_back({tensor, InElements(tensor, *shards)});
    } else {
      table.Add(
          tensor.name,
          {std::string(DTypeName(tensor.dtype)), ShapeText(tensor.kind, tensor.dtype, tensor.shape),
           FormatBytes(tensor.bytes), CutText(tensor, *shards)},
          tensor.stage);
    }
  }
  if (!json()) return PrintData(table.ToText(long_));
  found_.sharded->push_back(std::move(found));
}

void InspectCommand::InspectShards(const std::string& path) {
  const Result<ShardedCheckpoint> checkpoint = ShardedCheckpoint::Open(SourceOf(path));
  if (!checkpoint.ok()) return Report(path, checkpoint.status());
  if (!quiet()) PrintNotes(checkpoint->notes());
  Warn(checkpoint->warnings());
  const ShardedCheckpoint::Tensor* const tensor = checkpoint->Find(parameter_);
  if (tensor == nullptr) return Report(path, NoSuchParameter(*checkpoint, parameter_));
  const Result<std::vector<ShardedCheckpoint::Shard>> shards = checkpoint->Shards(parameter_);
  if (!shards.ok()) return Report(path, shards.status());
  if (!json()) return PrintData(ShardsAsText(*tensor, *shards));
  found_.sharded->push_back({.path = path, .cut = {{*tensor, InElements(*tensor, *shards)}}});
}

Result<StatisticsReport> InspectCommand::Measure(const std::string& path) const {
  ContentOptions options;
  options.source = SourceOf(path);
  if (!IsFolder(path)) {
    options.source.suffix.clear();
    options.source.format.reset();
  }
  options.run.jobs = jobs_;
  options.include = filter_.include;
  options.exclude = filter_.exclude;
  return CallStoppable(options, progress_style(), MeasureValues);
}

void InspectCommand::InspectValues(const std::string& path) {
  const Result<StatisticsReport> report = Measure(path);
  if (!report.ok()) return Report(path, report.status());
  Warn(report->warnings);
  filter_matched_ |= !report->parameters.empty();
  if (!json()) return PrintData(ValuesAsText(report->parameters));
  found_.sharded->push_back({.path = path, .values = report->parameters});
}

void InspectCommand::ShowCheckpoint(const Checkpoint& checkpoint, std::optional<int64_t> rank) {
  const std::vector<const StoredArray*> parameters = SelectParameters(checkpoint, filter_);
  std::vector<StatisticsReport::Parameter> statistics;
  if (values_) {
    Result<StatisticsReport> report = Measure(checkpoint.path());
    if (!report.ok()) return Report(checkpoint.path(), report.status());
    statistics = std::move(report->parameters);
  }
  std::vector<UnreadTensor> unread;
  for (const UnreadTensor& tensor : checkpoint.unread()) {
    if (filter_.Takes(tensor.name)) unread.push_back(tensor);
  }
  Warn(checkpoint.warnings());
  AddTo(found_.totals, checkpoint, parameters);
  filter_matched_ |= !parameters.empty() || !unread.empty();
  if (json()) {
    const std::string separator = checkpoints_ == 0 ? "" : ",";
    const nlohmann::ordered_json document = AsJson(InspectedFile{.path = checkpoint.path(),
                                                                 .rank = rank,
                                                                 .size = checkpoint.file_size(),
                                                                 .crc = checkpoint.crc(),
                                                                 .parameters = parameters,
                                                                 .statistics = statistics,
                                                                 .unread = unread});
    if (json_lines()) {
      PrintJsonLine("checkpoint", document);
    } else {
      PrintData(separator + ToJsonText(document));
    }
  } else if (folder_) {
    folder_->Add(checkpoint, rank, parameters);
  } else {
    only_folders_ = false;
    // Into a file or a pipe the list goes as it is.
    const bool too_many = !long_ && !filter_.given() && !verbose() && StdoutIsTerminal() &&
                          parameters.size() > ParameterTable::kScreenRows;
    PrintData(CheckpointLine(checkpoint, rank) +
              (values_    ? ValuesAsText(statistics)
               : too_many ? ModulesAsText(parameters)
                          : ParametersAsText(parameters, verbose())) +
              '\n');
  }
  ++checkpoints_;
}

void InspectCommand::ShowStrategy(const Strategy& strategy) {
  if (!quiet()) PrintNotes(strategy.notes());
  ShownStrategy shown = ShownOf(strategy, filter_);
  filter_matched_ |= !shown.parameters.empty();
  if (json()) {
    found_.strategies.push_back(std::move(shown));
  } else {
    PrintData(StrategyAsText(shown, {.every_parameter = long_, .every_field = verbose()}) + '\n');
  }
}

void InspectCommand::Warn(const std::vector<Warning>& warnings) {
  PrintWarnings(warnings);
  found_.warnings.insert(found_.warnings.end(), warnings.begin(), warnings.end());
}

void InspectCommand::Report(const std::string& path, const Status& status) {
  const int exit_code = Fail(status);
  if (exit_code_ == 0) exit_code_ = exit_code;
  cancelled_ |= status.code() == StatusCode::kCancelled;
  found_.errors.push_back({path, status});
}

}  // namespace reshard
