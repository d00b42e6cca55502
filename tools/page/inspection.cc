#include "tools/page/inspection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "reshard/convert.h"
#include "reshard/parameters.h"
#include "reshard/tensor.h"
#include "tools/page/strategy_words.h"
#include "tools/page/text_format.h"

namespace reshard {
namespace {

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

// The parts of a tensor with boxes that count elements, also elements smaller than a byte.
CutTensor InElements(const ShardedCheckpoint::Tensor& tensor,
                     std::vector<ShardedCheckpoint::Shard> shards) {
  const auto elements = static_cast<int64_t>(ElementsOfItem(tensor.dtype));
  for (ShardedCheckpoint::Shard& shard : shards) {
    if (shard.box.dims() == 0) continue;
    shard.box.begin.back() *= elements;
    shard.box.extent.back() *= elements;
  }
  return {tensor, std::move(shards)};
}

class Walk {
 public:
  Walk(const InspectOptions& options, InspectSink& to)
      : options_(options), filter_{options.include, options.exclude}, to_(to) {}

  Inspection Run() {
    if (!options_.source.strategy.empty()) found_.sharded.emplace();
    for (const std::string& path : options_.paths) {
      if (!stopped()) Path(path);
    }
    if (filter_.given() && options_.tensor.empty() && !filter_matched_ && found_.errors.empty()) {
      Warn({filter_.NothingTaken()});
    }
    return std::move(found_);
  }

 private:
  bool stopped() const { return cancelled_ || options_.run.stop.stop_requested(); }

  ContentOptions OptionsFor(const std::string& path) const {
    ContentOptions options = static_cast<const ContentOptions&>(options_);
    options.source.path = path;
    return options;
  }

  void Path(const std::string& path) {
    if (found_.sharded) {
      if (options_.values) return Values(path);
      Tensors(path);
    } else if (IsFolder(path) || path.find("{rank}") != std::string::npos) {
      Folder(path);
    } else {
      File(path);
    }
  }

  void File(const std::string& path) {
    const Result<Checkpoint> checkpoint =
        Checkpoint::Open(path, options_.source.key, Checkpoint::Purpose::kListing);
    if (checkpoint.ok()) return Show(*checkpoint, std::nullopt);
    const Result<Strategy> strategy = ReadStrategy(path);
    if (strategy.ok()) return Show(*strategy);
    // A file that parses as a strategy is one, even if its layouts contradict each other.
    const bool is_strategy = strategy.status().code() == StatusCode::kMismatch;
    Fail(path, is_strategy ? strategy.status() : checkpoint.status());
  }

  void Folder(const std::string& path) {
    const Result<RankFiles> ranks = ListRankFiles(OptionsFor(path).source);
    if (!ranks.ok()) {
      if (ranks.status().code() != StatusCode::kNotFound) return Fail(path, ranks.status());
      return FilesIn(path, ranks.status());
    }
    to_.Notes(ranks->notes);
    TellIfUnfinished(path);
    Warn(ranks->warnings);
    to_.BeginFolder(path, ranks->files.size(), ranks->step);
    for (size_t place = 0; place < ranks->files.size() && !stopped(); ++place) {
      const RankFiles::File& file = ranks->files[place];
      const Result<Checkpoint> checkpoint = Checkpoint::Open(*ranks, place, options_.source.key);
      if (checkpoint.ok()) {
        Show(*checkpoint, file.rank);
      } else {
        Fail(file.path, checkpoint.status());
      }
    }
    to_.EndFolder();
  }

  // Such as a set that a conversion with `force` is going to replace.
  void TellIfUnfinished(const std::string& folder) {
    if (!IsFolder(folder + "/.reshard")) return;
    const Result<StatusReport> status = FindStatus(folder);
    if (status.ok() && status->state == StatusReport::State::kPublished) return;
    to_.Notes({Unfinished(folder)});
  }

  // A folder without rank folders. `not_ranks` says so.
  void FilesIn(const std::string& path, const Status& not_ranks) {
    const Result<Strategy> strategy = ReadStrategy(path);
    if (strategy.ok()) return Show(*strategy);
    const std::vector<std::string> files = CheckpointsIn(path);
    if (files.empty() && IsFolder(path + "/.reshard")) {
      return Fail(path, NotFoundError(Unfinished(path)));
    }
    if (files.empty()) {
      const bool of_ranks =
          !options_.source.suffix.empty() || strategy.status().code() == StatusCode::kNotFound;
      return Fail(path, of_ranks ? not_ranks : strategy.status());
    }
    to_.BeginFolder(path, files.size(), "");
    for (const std::string& file : files) {
      if (!stopped()) File(file);
    }
    to_.EndFolder();
  }

  void Tensors(const std::string& path) {
    const Result<ShardedCheckpoint> checkpoint = ShardedCheckpoint::Open(OptionsFor(path).source);
    if (!checkpoint.ok()) return Fail(path, checkpoint.status());
    to_.Notes(checkpoint->notes());
    Warn(checkpoint->warnings());
    const std::string& alone = options_.tensor;
    if (!alone.empty() && checkpoint->Find(alone) == nullptr) {
      return Fail(path, NotFoundError(fmt::format("the checkpoint has no tensor \"{}\"{}",
                                                  PrintableName(alone),
                                                  to_.AdviceFor(alone, *checkpoint))));
    }
    FullTensors found{.path = path};
    to_.BeginTensors();
    for (const ShardedCheckpoint::Tensor& tensor : checkpoint->tensors()) {
      if (!(alone.empty() ? filter_.Takes(tensor.name) : tensor.name == alone)) continue;
      filter_matched_ = true;
      Result<std::vector<ShardedCheckpoint::Shard>> shards = checkpoint->Shards(tensor.name);
      if (!shards.ok()) return Fail(path, shards.status());
      CutTensor cut = InElements(tensor, *std::move(shards));
      if (to_.KeepsTensor(cut)) found.cut.push_back(std::move(cut));
    }
    End(std::move(found));
  }

  Result<StatisticsReport> Measure(const std::string& path) {
    ContentOptions options = OptionsFor(path);
    if (!IsFolder(path)) {
      options.source.suffix.clear();
      options.source.format.reset();
    }
    return to_.Measure(options);
  }

  void Values(const std::string& path) {
    Result<StatisticsReport> report = Measure(path);
    if (!report.ok()) return Fail(path, report.status());
    Warn(report->warnings);
    filter_matched_ |= !report->parameters.empty();
    End({.path = path, .values = std::move(report->parameters)});
  }

  void End(FullTensors found) {
    to_.EndTensors(found);
    found_.sharded->push_back(std::move(found));
  }

  void Show(const Checkpoint& checkpoint, std::optional<int64_t> rank) {
    InspectedFile file{.path = checkpoint.path(),
                       .rank = rank,
                       .size = checkpoint.file_size(),
                       .crc = checkpoint.crc()};
    for (const StoredArray& parameter : checkpoint.parameters()) {
      if (filter_.Takes(parameter.name)) file.parameters.push_back(&parameter);
    }
    for (const UnreadTensor& tensor : checkpoint.unread()) {
      if (filter_.Takes(tensor.name)) file.unread.push_back(tensor);
    }
    if (options_.values) {
      Result<StatisticsReport> report = Measure(file.path);
      if (!report.ok()) return Fail(file.path, report.status());
      file.statistics = std::move(report->parameters);
    }
    Warn(checkpoint.warnings());
    ContentTotals& totals = found_.totals;
    ++totals.files;
    for (const StoredArray* parameter : file.parameters) {
      for (ContentTotal* total : {&totals.all, &totals.by_dtype[StoredTypeName(*parameter)],
                                  &totals.by_group[checkpoint.GroupOf(*parameter)]}) {
        ++total->parameters;
        total->bytes += parameter->bytes;
      }
    }
    filter_matched_ |= !file.parameters.empty() || !file.unread.empty();
    to_.File(checkpoint, file);
  }

  void Show(const Strategy& strategy) {
    to_.Notes(strategy.notes());
    const ShownStrategy& shown = found_.strategies.emplace_back(ShownOf(strategy, filter_));
    filter_matched_ |= !shown.parameters.empty();
    to_.Layouts(shown);
  }

  void Warn(const std::vector<Warning>& warnings) {
    to_.Warnings(warnings);
    found_.warnings.insert(found_.warnings.end(), warnings.begin(), warnings.end());
  }

  void Fail(const std::string& path, const Status& status) {
    to_.Error(status);
    cancelled_ |= status.code() == StatusCode::kCancelled;
    found_.errors.push_back({path, status});
  }

  const InspectOptions& options_;
  const NameFilter filter_;
  InspectSink& to_;
  Inspection found_;
  bool filter_matched_ = false;
  bool cancelled_ = false;
};

// An array that outlives its checkpoint.
struct OwnArray {
  explicit OwnArray(const StoredArray& of)
      : name(of.name),
        shape(of.shape),
        framed(of.framed.begin(), of.framed.end()),
        content(of.content.begin(), of.content.end()),
        map_tensor(of.map_tensor.begin(), of.map_tensor.end()),
        array{name, of.kind, of.dtype, shape, of.bytes, framed, content, map_tensor} {}
  OwnArray(const OwnArray&) = delete;
  OwnArray& operator=(const OwnArray&) = delete;

  const std::string name;
  const Shape shape;
  const std::vector<ByteRange> framed, content;
  const std::vector<StoredArray::MapTensorPart> map_tensor;
  const StoredArray array;
};

// Keeps the files.
struct Collector final : InspectSink {
  void File(const Checkpoint& /*checkpoint*/, const InspectedFile& file) override {
    InspectedFile& kept = files.emplace_back(file);
    for (const StoredArray*& parameter : kept.parameters) {
      parameter = &arrays.emplace_back(*parameter).array;
    }
  }

  std::vector<InspectedFile> files;
  std::deque<OwnArray> arrays;
};

}  // namespace

bool NameFilter::Takes(std::string_view name) const {
  const auto matches = [name](const std::string& pattern) { return GlobMatch(pattern, name); };
  return (include.empty() || std::any_of(include.begin(), include.end(), matches)) &&
         std::none_of(exclude.begin(), exclude.end(), matches);
}

Warning NameFilter::NothingTaken() const {
  std::string message;
  if (include.empty()) {
    message = "`exclude` leaves out every parameter";
  } else if (include.size() > 1 || !exclude.empty()) {
    message =
        "`include` and `exclude` leave no parameter; a pattern has to match a whole name, as "
        "*head* does";
  } else {
    message = fmt::format(
        "`include` matches no parameter: \"{}\"; a pattern has to match a whole name, as *head* "
        "does",
        PrintableName(include.front()));
  }
  return {WarningCode::kUnusedPatterns, std::move(message)};
}

ShownStrategy ShownOf(const Strategy& strategy, const NameFilter& filter) {
  ShownStrategy shown{.strategy = strategy, .meaning = StrategyInWords(strategy)};
  for (const Strategy::Stage& stage : strategy.stages()) {
    for (const auto [name, layout] : stage) {
      if (filter.Takes(name)) shown.parameters.push_back({stage.number(), name, &layout});
    }
  }
  return shown;
}

Inspection Inspect(const InspectOptions& options, InspectSink& to) {
  return Walk(options, to).Run();
}

Result<Inspection> InspectAll(const InspectOptions& options) {
  const auto collector = std::make_shared<Collector>();
  Inspection found = Inspect(options, *collector);
  if (!found.errors.empty() && collector->files.empty() && found.strategies.empty() &&
      (!found.sharded || found.sharded->empty())) {
    return found.errors.front().status;
  }
  found.checkpoints = {collector, &collector->files};
  return found;
}

}  // namespace reshard
