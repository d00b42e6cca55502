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
#include "src/frontend/option_parts.h"
#include "tools/cli/command.h"
#include "tools/cli/command_table.h"
#include "tools/page/text_format.h"

namespace reshard {
namespace {

// Turns words for true and false into those that the parser knows. MindFormers itself treats every
// text as true.
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

// "None" and the empty text stand for no strategy.
std::string StrategyPath(const std::string& text) { return text == "None" ? "" : text; }

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
      return MismatchError(
          fmt::format("{}: both {} and {} would be converted into the folder {}; rename one",
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

Status MindFormersSpelling::CheckWorldSize(const TargetSpec& target) const {
  if (!world_size_) return {};
  const std::string& path = target.strategy.path();
  const Cluster& cluster = target.cluster;
  // More ranks are refused anyway, and products stay within 64 bits.
  const auto bounded = [](int64_t number) { return std::min<int64_t>(number, 1 << 20); };
  int64_t ranks = bounded(cluster.tensor_parallel) * bounded(cluster.data_parallel) *
                  bounded(cluster.pipeline_stages);
  std::string of = cluster == Cluster() ? "without a target strategy" : "of the new cluster";
  if (!path.empty()) {
    const Result<Strategy> strategy = ReadStrategy(path);
    if (!strategy.ok()) return strategy.status();
    ranks = strategy->ranks();
    of = "of " + PrintableName(path);
  }
  if (*world_size_ == ranks) return {};
  return InvalidArgumentError(fmt::format(
      "--world_size: expected {}, the target ranks {}, found {}", ranks, of, *world_size_));
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

void ConversionArguments::AddTo(CLI::App& app, Call call) {
  AddPositional(app, "SRC", options_.source.path,
                "Folder with rank_N/*.ckpt or *.safetensors, a pattern such as node{rank}/a.ckpt, "
                "or without a strategy: a file with full tensors, or a folder of Hugging Face, "
                "PyTorch (DCP, FSDP) or MindSpore (unified, MindFormers 2.0)")
      ->required(false);
  AddPositional(app, "DST", options_.target.folder,
                "Target folder, made if it is missing; it gets rank_N/checkpoint_N.ckpt (--prefix)")
      ->required(false);
  app.parse_complete_callback([this] { Complete(); });
  table_.AddTo(app, call);
  AddJobsOption(app, options_.run.jobs)->group("Run");
}

void ConversionArguments::Complete() {
  const bool has_files = table_.Has("source.files");
  const bool by_option = has_files || !mindformers_.source().empty();
  if (by_option && options_.target.folder.empty())
    options_.target.folder.swap(options_.source.path);
  const auto twice = [](bool both, const char* what, const char* other) {
    if (both) throw CLI::ExcludesError(what, other);
  };
  if (mindformers_.source().empty()) {
    table_.RequireOneSource(options_.source.path);
  } else {
    twice(!options_.source.path.empty(), "SRC", "--src_checkpoint");
    twice(has_files, "--source", "--src_checkpoint");
  }
  twice(!mindformers_.target().empty() && !options_.target.folder.empty(), "DST",
        "--dst_checkpoint_dir");
  if (mindformers_.target().empty() && options_.target.folder.empty())
    throw CLI::RequiredError("DST");
}

Result<ConvertOptions> ConversionArguments::Options() const {
  ConvertOptions options = options_;
  if (!mindformers_.source().empty()) options.source.path = mindformers_.source();
  if (!mindformers_.target().empty()) options.target.folder = mindformers_.target();
  if (Status status = table_.ApplyTo(PartsOf(options)); !status.ok()) return status;
  mindformers_.ApplyTo(options);
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

std::string ConfirmedText(const std::optional<Findings::ReplicaSample>& sample) {
  if (!sample || sample->parameters == 0) return {};
  if (sample->confirming == 0) return "not confirmed: no replica of a matrix was compared";
  return fmt::format("confirmed by {}", FormatCount(sample->confirming, "replica"));
}

std::string TotalsText(const Findings::Totals& totals) {
  std::string text = fmt::format("weights {} elements", ParameterCountText(totals.weights));
  if (totals.optimizer > 0) {
    text += fmt::format(", optimizer {}", ParameterCountText(totals.optimizer));
  }
  return text;
}

std::string ChosenTotalsText(const Findings::Totals& chosen, const Findings::Totals& source) {
  if (chosen == source) return TotalsText(source);
  return fmt::format("chosen: {}; the whole source: {}", TotalsText(chosen), TotalsText(source));
}

std::string StageAloneText(int64_t stage) {
  return fmt::format("stage {} of {} or more, alone: load all parts together", stage,
                     std::max<int64_t>(stage + 1, 2));
}

}  // namespace reshard
