#include "tools/cli/conversion_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "reshard/strategy.h"
#include "tools/cli/command.h"
#include "tools/cli/command_table.h"
#include "tools/cli/shared_options.h"
#include "tools/page/text_format.h"

namespace reshard {
namespace {

const std::map<std::string, TargetFormat> kFormats = {{"ckpt", TargetFormat::kCkpt},
                                                      {"safetensors", TargetFormat::kSafetensors},
                                                      {"unified", TargetFormat::kUnified},
                                                      {"huggingface", TargetFormat::kHuggingFace}};

// Turns the words for true and false into those that the parser knows. MindFormers itself takes
// every text for true.
CLI::Validator Truth() {
  const auto check = [](std::string& text) -> std::string {
    std::string word = text;
    for (char& letter : word) letter = static_cast<char>(std::tolower(letter));
    const bool yes = word == "true" || word == "1";
    if (!yes && word != "false" && word != "0") return "has to be True or False; found " + text;
    text = yes ? "true" : "false";
    return "";
  };
  return {check, ""};
}

// "None" and nothing stand for no strategy.
std::string StrategyPath(const std::string& text) { return text == "None" ? "" : text; }

struct ParsedIo {
  IoChoice io;
  std::string error;
};

ParsedIo ParseIo(std::string_view text) {
  ParsedIo parsed;
  if (text == "auto") return parsed;
  while (parsed.error.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view how = text.substr(0, comma);
    SourceIo& source = parsed.io.source;
    TargetIo& target = parsed.io.target;
    if ((how == "map" || how == "pread") && source == SourceIo::kAuto) {
      source = how == "map" ? SourceIo::kMap : SourceIo::kPread;
    } else if ((how == "direct" || how == "buffered") && target == TargetIo::kAuto) {
      target = how == "direct" ? TargetIo::kDirect : TargetIo::kBuffered;
    } else {
      parsed.error = fmt::format(
          "has to be auto, or map or pread, direct or buffered, or one of each; found {}",
          PrintableName(how));
    }
    if (comma == text.size()) break;
    text.remove_prefix(comma + 1);
  }
  return parsed;
}

}  // namespace

void MindFormersSpelling::AddTo(CLI::App& app) {
  const auto add = [&app](const char* name, auto& variable, const char* type, const char* words) {
    return app.add_option(name, variable, words)->type_name(type)->group("As in MindFormers");
  };
  constexpr size_t kMostDigits = 9;  // of an int
  add("--src_checkpoint,--src_ckpt_dir", source_, "SRC", "The same as SRC");
  add("--dst_checkpoint_dir,--dst_checkpoint,--dst_ckpt_dir", target_, "DST", "The same as DST");
  add("--src_strategy,--src_ckpt_strategy", source_strategy_, "S",
      "As --src-strategy; None or empty: no strategy")
      ->expected(0, 1)
      ->excludes(FindOption(app, "--src-strategy"));
  add("--dst_strategy,--dst_ckpt_strategy", target_strategy_, "D",
      "As --dst-strategy; None or empty: no strategy")
      ->expected(0, 1)
      ->excludes(FindOption(app, "--dst-strategy"));
  add("--transform_by_rank", by_rank_, "True|False",
      "Only target rank --rank_id (default False: all)")
      ->transform(Truth())
      ->excludes(FindOption(app, "--rank"));
  add("--rank_id", rank_, "N", "Target rank for --transform_by_rank (default 0)")
      ->transform(WholeNumber())
      ->excludes(FindOption(app, "--rank"));
  add("--world_size", world_size_, "W", "Fail unless there are W target ranks")
      ->transform(WholeNumber());
  add("--transform_process_num", processes_, "J", "The same as --jobs")
      ->transform(WholeNumber(kMostDigits))
      ->excludes(FindOption(app, "--jobs"));
}

Result<std::vector<MindFormersSpelling>> MindFormersSpelling::ForEachFile(
    const std::string& target) const {
  namespace fs = std::filesystem;
  std::set<std::string> names;
  std::error_code error;
  if (source_.empty() || !fs::is_directory(source_, error)) {
    return std::vector<MindFormersSpelling>();
  }
  for (fs::directory_iterator entry(source_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code none;
    if (name.starts_with("rank_") && entry->is_directory(none)) {
      return std::vector<MindFormersSpelling>();
    }
    if (name.ends_with(".ckpt") && !name.starts_with('.') && entry->is_regular_file(none)) {
      names.insert(name);
    }
  }
  if (error) {
    return IoError(
        fmt::format("{}: cannot list the folder: {}", PrintableName(source_), error.message()),
        error.value());
  }
  std::map<std::string, std::string> by_folder;  // files by the names of target folders
  std::vector<MindFormersSpelling> spellings;
  for (const std::string& name : names) {
    const auto [other, is_new] = by_folder.emplace(name.substr(0, name.find('.')), name);
    if (!is_new) {
      return MismatchError(fmt::format(
          "{}: both {} and {} would be converted into the folder {}; rename one of them",
          PrintableName(source_), PrintableName(other->second), PrintableName(name),
          PrintableName(other->first)));
    }
    MindFormersSpelling& spelling = spellings.emplace_back(*this);
    spelling.source_ = fs::path(source_) / name;
    spelling.target_ = fs::path(target) / other->first;
  }
  return spellings;
}

void MindFormersSpelling::ApplyTo(ConvertOptions& options) const {
  if (source_strategy_) options.source.strategy = StrategyPath(*source_strategy_);
  if (target_strategy_) options.target.strategy = StrategyPath(*target_strategy_);
  if (processes_) options.run.jobs = *processes_;
  if (by_rank_) options.selection.ranks = {rank_.value_or(0)};
}

Status MindFormersSpelling::CheckWorldSize(const std::string& target_strategy) const {
  if (!world_size_) return {};
  int64_t ranks = 1;
  if (!target_strategy.empty()) {
    const Result<Strategy> strategy = ReadStrategy(target_strategy);
    if (!strategy.ok()) return strategy.status();
    ranks = strategy->stages * strategy->devices_per_stage;
  }
  if (*world_size_ == ranks) return {};
  return InvalidArgumentError(
      fmt::format("--world_size: expected {}, the target ranks {}, found {}", ranks,
                  target_strategy.empty() ? "without a target strategy"
                                          : "of " + PrintableName(target_strategy),
                  *world_size_));
}

std::optional<Warning> MindFormersSpelling::RanksLeftOut() const {
  if (!by_rank_ || !world_size_ || !processes_ || *processes_ == 0) return std::nullopt;
  const int64_t share = *world_size_ / *processes_;
  if (share < 2) return std::nullopt;
  const int64_t first = rank_.value_or(0);
  return Warning{
      WarningCode::kSharesLeft,
      fmt::format(
          "only target rank {} is converted; with --transform_process_num {} of --world_size {} a "
          "process of MindFormers would convert the ranks {} to {}: leave out --transform_by_rank "
          "to "
          "convert all",
          first, *processes_, *world_size_, first, first + share - 1)};
}

std::vector<CLI::Option*> AddFormatOptions(CLI::App& app, TargetSpec& target) {
  const auto set = [&target](const std::string& format) { target.format = kFormats.at(format); };
  return {
      app.add_option_function<std::string>("--format", set,
                                           "Format of the target files (default: the source's)")
          ->type_name("ckpt|safetensors|unified|huggingface")
          ->check(CLI::IsMember({"ckpt", "safetensors", "unified", "huggingface"}).description("")),
      app.add_option("--part-size", target.part_size,
                     "Size of a file of --format unified (default 3G)")
          ->type_name("SIZE")
          ->transform(ByteSize(SizeUnits::kBytesDecimal))
          ->default_str(""),
      app.add_option("--shard-size", target.shard_size,
                     "Size of a file of --format huggingface (default 5GB; 1GB is 1000^3 bytes, 1G "
                     "is 1024^3)")
          ->type_name("SIZE")
          ->transform(ByteSize(SizeUnits::kBytesDecimal))
          ->default_str(""),
      app.add_option("--names", target.names,
                     "Names of the target files (default rank_{rank}/{prefix}{rank}.{ext})")
          ->type_name("PATTERN")};
}

void ConversionArguments::AddTo(CLI::App& app) {
  AddPositional(app, "SRC", options_.source.path,
                "Folder with rank_N/*.ckpt or *.safetensors, a pattern such as node{rank}/a.ckpt, "
                "or full tensors: a file, a unified or Hugging Face folder")
      ->required(false);
  AddPositional(app, "DST", options_.target.folder,
                "Target folder, made if it is missing; it gets files rank_N/PREFIXN.ckpt")
      ->required(false);
  app.parse_complete_callback([this] { Complete(); });
  const auto begin_group = [&app](const char* name) { app.option_defaults()->group(name); };
  AddStrategyOptions(app, options_.source.strategy, options_.target.strategy);
  AddRankOption(app, options_.selection.ranks, "Write only these target ranks, such as 3 or 0-7,9");
  app.add_flag("--force", options_.force, "Replace existing outputs");
  app.add_flag("--resume", resume_,
               "Keep what an interrupted run of the same command finished; =verify checks its "
               "digests first")
      ->type_name("[=verify]")
      ->check(CLI::IsMember({"true", "verify"}).description(""));
  begin_group("Source");
  AddSourceFilesOption(app, options_.source.files);
  AddSuffixOption(app, options_.source.suffix);
  name_map_.AddTo(app);
  AddGroupInfoOption(app, options_.source.group_info);
  AddKeyOptions(app, options_.source.key);
  begin_group("Target");
  app.add_option("--prefix", options_.target.prefix,
                 "Begin the names of target files with P (default checkpoint_)")
      ->type_name("P");
  AddFormatOptions(app, options_.target);
  FindOption(app, "--format")->group("Options");
  app.add_flag("--prune", options_.prune, "Remove files that only the replaced manifest lists");
  AddEncryptOptions(app, options_.target.encryption, options_.target.encryption_key);
  app.add_flag("--crc", options_.target.states_crc,
               "Add a CRC-32, for load_checkpoint(crc_check=True)");
  begin_group("Parameters");
  choice_.AddTo(app);
  app.add_option("--dtype-overflow", dtype_overflow_,
                 "What to do if --dtype makes finite values infinite or NaN (default warn)")
      ->type_name("warn|error")
      ->check(CLI::IsMember({"warn", "error"}).description(""));
  AddUnmatchedOption(app, options_.selection.unmatched);
  begin_group("Checks");
  app.add_flag("--check-replicas", check_replicas_,
               "Compare the source's replicas before writing: all bytes, a sample (default) or "
               "none; exit 3 if they differ")
      ->type_name("[=none|sample|all]")
      ->check(CLI::IsMember({"true", "none", "sample", "all"}).description(""));
  app.add_option("--reference", options_.checks.reference,
                 "Refuse other dtypes or full shapes than those of FILE, a full checkpoint of the "
                 "same model")
      ->type_name("FILE");
  app.add_option("--expect-parameters", expected_parameters_,
                 "Refuse a source of more or fewer parameters, as in 6.74B; counted to the digits "
                 "that are given")
      ->type_name("N")
      ->check(CLI::Validator(
          [](std::string& text) { return ParseParameterCount(text).status().message(); }, ""));
  AddPartialOption(app, options_.checks.partial);
  app.add_flag("--no-checksum", no_checksum_,
               "Neither check nor write checksums; verify then compares sizes only");
  begin_group("Run");
  AddJobsOption(app, options_.run.jobs,
                "Threads; 0 is one per core (default: one per core, but at most 4)");
  AddMemoryLimitOption(app, options_.memory_limit);
  app.add_option(
         "--io", io_,
         "map or pread for sources, direct or buffered for targets, or one of each (default auto)")
      ->type_name("auto|map|pread|direct|buffered[,HOW]")
      ->check(CLI::Validator([](std::string& text) { return ParseIo(text).error; }, ""));
  begin_group("Options");
}

void ConversionArguments::Complete() {
  const bool by_option = !options_.source.files.empty() || !mindformers_.source().empty();
  if (by_option && options_.target.folder.empty())
    options_.target.folder.swap(options_.source.path);
  const auto twice = [](bool both, const char* what, const char* other) {
    if (both) throw CLI::ExcludesError(what, other);
  };
  twice(!options_.source.files.empty() && !options_.source.path.empty(), "SRC", "--source");
  twice(!mindformers_.source().empty() && !options_.source.path.empty(), "SRC", "--src_checkpoint");
  twice(!mindformers_.source().empty() && !options_.source.files.empty(), "--source",
        "--src_checkpoint");
  twice(!mindformers_.target().empty() && !options_.target.folder.empty(), "DST",
        "--dst_checkpoint_dir");
  if (!by_option && options_.source.path.empty()) throw CLI::RequiredError("SRC");
  if (mindformers_.target().empty() && options_.target.folder.empty())
    throw CLI::RequiredError("DST");
}

ConvertOptions ConversionArguments::WithoutChoice() const {
  ConvertOptions options = options_;
  if (!mindformers_.source().empty()) options.source.path = mindformers_.source();
  if (!mindformers_.target().empty()) options.target.folder = mindformers_.target();
  mindformers_.ApplyTo(options);
  options.io = ParseIo(io_).io;
  if (!expected_parameters_.empty()) {
    options.checks.parameters = *ParseParameterCount(expected_parameters_);
  }
  options.checks.checksum = !no_checksum_;
  options.checks.refuse_overflow = dtype_overflow_ == "error";
  if (check_replicas_ == "none") options.checks.replicas = CheckReplicas::kNone;
  if (check_replicas_ == "true" || check_replicas_ == "all") {
    options.checks.replicas = CheckReplicas::kAll;
  }
  options.resume = resume_ == "true"     ? Resume::kTrust
                   : resume_ == "verify" ? Resume::kVerify
                                         : Resume::kNo;
  return options;
}

Result<ConvertOptions> ConversionArguments::Options() const {
  ConvertOptions options = WithoutChoice();
  if (Status status = choice_.Fill(options.selection); !status.ok()) return status;
  if (Status status = name_map_.Fill(options.source); !status.ok()) return status;
  return options;
}

std::string LargestAsText(const std::vector<TensorInfo>& largest) {
  Table table({{""}, {""}, {""}, {"", Align::kRight}});
  for (const TensorInfo& parameter : largest) {
    table.AddRow({PrintableName(parameter.name), std::string(DTypeName(parameter.dtype)),
                  ShapeText(parameter.kind, parameter.dtype, parameter.shape),
                  FormatBytes(parameter.bytes)});
  }
  return table.ToText();
}

std::string ConfirmedText(const std::optional<ReplicaSample>& sample) {
  if (!sample || sample->parameters == 0) return {};
  if (sample->confirming == 0) return "not confirmed: no replica of a matrix was compared";
  return fmt::format("confirmed by {}", FormatCount(sample->confirming, "replica"));
}

nlohmann::ordered_json SampleAsJson(const std::optional<ReplicaSample>& sample) {
  if (!sample) return nullptr;
  return {{"parameters", sample->parameters},
          {"comparisons", sample->comparisons},
          {"confirming", sample->confirming},
          {"files", sample->files},
          {"files_opened", sample->files_opened},
          {"reads", sample->reads},
          {"bytes", sample->bytes},
          {"seconds", sample->seconds}};
}

nlohmann::ordered_json LargestAsJson(const std::vector<TensorInfo>& largest) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const TensorInfo& parameter : largest) {
    out.push_back({{"name", parameter.name},
                   {"dtype", DTypeName(parameter.dtype)},
                   {"full_shape", LogicalShape(parameter.kind, parameter.dtype, parameter.shape)},
                   {"bytes", parameter.bytes}});
  }
  return out;
}

std::string TotalsText(const ParameterTotals& totals) {
  std::string text = fmt::format("weights {} parameters", ParameterCountText(totals.weights));
  if (totals.optimizer > 0) {
    text += fmt::format(", optimizer {}", ParameterCountText(totals.optimizer));
  }
  return text;
}

std::string ChosenTotalsText(const ParameterTotals& chosen, const ParameterTotals& source) {
  if (chosen == source) return TotalsText(source);
  return fmt::format("chosen: {}; the whole source: {}", TotalsText(chosen), TotalsText(source));
}

std::string StageAloneText(int64_t stage) {
  return fmt::format("stage {} of {} or more, alone: load all parts together", stage,
                     std::max<int64_t>(stage + 1, 2));
}

nlohmann::ordered_json TotalsAsJson(const std::optional<ParameterTotals>& totals) {
  if (!totals) return nullptr;
  return {{"weights", totals->weights}, {"optimizer", totals->optimizer}};
}

}  // namespace reshard
