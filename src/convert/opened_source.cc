#include "src/convert/opened_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "format/container/other_files.h"
#include "format/container_table/container_table.h"
#include "format/mindspore_checkpoint/mindspore_container.h"
#include "format/safetensors/safetensors_container.h"
#include "format/weight_map/weight_map_codec.h"
#include "src/base/status_macros.h"
#include "src/full/folder_tables.h"
#include "src/full/full_folder.h"
#include "src/io/byte_source.h"
#include "src/io/decrypted_file.h"
#include "src/mindspore/group_info.h"
#include "src/mindspore/made_strategy.h"
#include "src/mindspore/rank_list.h"
#include "src/mindspore/rank_pattern.h"
#include "src/mindspore/strategy_loader.h"
#include "src/os/paths.h"
#include "src/os/threads.h"
#include "src/os/used_files.h"
#include "src/source/listed_placement.h"

namespace reshard {
namespace {

// About as many files as a target file is often put together from.
constexpr size_t kLeastIndexes = 16;

// Returns the strategy that `spec`, a SourceSpec or a TargetSpec, names, if it does; `side` is the
// name that messages have for it.
template <typename Spec>
Result<std::optional<CheckedStrategy>> StrategyOf(const Spec& spec, std::string_view side,
                                                  const MemoryCheck& memory,
                                                  std::vector<std::string>& notes) {
  std::optional<CheckedStrategy> strategy;
  if (spec.layouts != nullptr) {
    if (!spec.strategy.empty()) {
      return InvalidArgumentError(fmt::format(
          "the {} has two strategies, the file {} and one of memory ({}); give one of them", side,
          Escape(spec.strategy), Escape(NameOf(*spec.layouts))));
    }
    RESHARD_ASSIGN_OR_RETURN(strategy, StrategyOf(*spec.layouts));
  } else if (!spec.strategy.empty()) {
    RESHARD_ASSIGN_OR_RETURN(strategy, LoadStrategy(spec.strategy, memory));
    notes.insert(notes.end(), strategy->notes().begin(), strategy->notes().end());
  }
  return strategy;
}

// Returns the source ranks that some target ranks need; nothing where the strategies do not tell,
// which planning reports.
std::optional<std::set<int64_t>> NeededRanks(const ConversionRule& rule,
                                             const std::vector<int64_t>& target_ranks) {
  std::set<int64_t> needed;
  for (const int64_t rank : target_ranks) {
    const Result<std::vector<int64_t>> list = RankList(rule, rank);
    if (!list.ok()) return std::nullopt;
    needed.insert(list->begin(), list->end());
  }
  return needed;
}

// Returns the ranks from `first` up to `end` that the target ranks (none: all) need, without files
// of their own or of a rank that holds the same weights.
NumberRanges MissingRanks(const std::vector<OpenedSource::File>& chosen, int64_t first, int64_t end,
                          const ConversionRule& rule, const std::vector<int64_t>& target_ranks) {
  const auto has_file = [&](int64_t rank) {
    const auto place = std::lower_bound(
        chosen.begin(), chosen.end(), rank,
        [](const OpenedSource::File& file, int64_t wanted) { return file.rank < wanted; });
    return place != chosen.end() && place->rank == rank;
  };
  std::optional<std::set<int64_t>> needed;
  if (!target_ranks.empty()) needed = NeededRanks(rule, target_ranks);
  NumberRanges missing;
  for (int64_t rank = first; rank < end; ++rank) {
    if (has_file(rank) || (needed && !needed->contains(rank))) continue;
    const auto holders = rule.groups().HoldersLike(rank);
    if (std::none_of(holders.begin(), holders.end(), has_file)) missing.Add(rank);
  }
  return missing;
}

// Returns the files that `spec` names.
Result<RankFolder> FindFiles(const SourceSpec& spec) {
  if (!spec.files.empty()) return TakeRankFiles(spec.files, {spec.suffix});
  if (IsRankPattern(spec.path)) return FindRankFiles(spec.path, {spec.suffix});
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, KindOf(spec.path));
  if (kind == PathKind::kMissing || kind == PathKind::kDirectory) {
    return FindRankFiles(spec.path, {spec.suffix});
  }
  // Opening says what is wrong with what is neither file nor folder.
  if (spec.has_strategy()) {
    return MismatchError(
        fmt::format("{}: is one file, but with a source strategy ({}) the source has to be the "
                    "folder that holds "
                    "rank_N/*.ckpt",
                    Escape(spec.path),
                    Escape(spec.layouts == nullptr ? spec.strategy : NameOf(*spec.layouts))));
  }
  const std::string name = std::filesystem::path(spec.path).filename().string();
  return RankFolder{{{0, spec.path, name, std::nullopt}}, {}};
}

// Returns the folder of whole tensors, or the one such file, that `spec` names; nothing where it
// names something else.
Result<std::optional<FullFolder>> FolderOf(const SourceSpec& spec) {
  const std::optional<FullFolder> none;
  if (!spec.files.empty() || spec.has_strategy() || IsRankPattern(spec.path)) return none;
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, KindOf(spec.path));
  if (kind == PathKind::kDirectory) return FindFullFolder(spec.path);
  if (kind != PathKind::kFile || ContainerNamed(spec.path) != &kSafetensorsContainer) {
    return none;
  }
  return std::optional(FullFolder{FolderFamily::kHuggingFace, {}, spec.path});
}

// Fails where a file that is no index is something else that can be told.
Status CheckIsIndex(const FileBytes& file) {
  std::string head(std::min<uint64_t>(file.size, kHeaderPage), '\0');
  RESHARD_RETURN_IF_ERROR(file.read(0, std::as_writable_bytes(std::span(head))));
  const std::string_view other = KindOfOtherFile(head);
  if (other.empty() || head.starts_with('{')) return {};
  return CorruptError(fmt::format("{}: expected an index of safetensors files, found {}",
                                  Escape(file.path), other));
}

// How messages call the source.
std::string SourceName(const SourceSpec& spec) {
  return spec.files.empty() ? Escape(spec.path) : "`source.files`";
}

}  // namespace

OpenedSource::OpenedSource(const SourceLimits& limits, std::shared_ptr<const EncryptionKey> key)
    : files_({.window_budget = limits.window_bytes,
              .header_budget = limits.header_bytes,
              .access = limits.access,
              .stop = limits.stop,
              .key = std::move(key),
              .pages = limits.pages}),
      memory_(limits.memory),
      tables_(
          [this](FileId file, const std::shared_ptr<const FileTable>& like) {
            return MakeTable(file, like);
          },
          limits.table_bytes, kLeastIndexes) {}

Result<std::unique_ptr<OpenedSource>> OpenSource(const SourceSpec& spec, const SourceUse& use,
                                                 const SourceLimits& limits) {
  std::unique_ptr<OpenedSource> source(new OpenedSource(limits, spec.key));
  RESHARD_ASSIGN_OR_RETURN(source->source_strategy_,
                           StrategyOf(spec, "source", limits.memory, source->notes_));
  RESHARD_ASSIGN_OR_RETURN(source->target_strategy_,
                           StrategyOf(use.target, "target", limits.memory, source->notes_));
  RESHARD_ASSIGN_OR_RETURN(HolderGroups groups, LoadGroupInfo(spec.group_info));
  RESHARD_ASSIGN_OR_RETURN(const std::optional<FullFolder> whole, FolderOf(spec));
  RankFolder folder;
  if (!whole) {
    RESHARD_ASSIGN_OR_RETURN(folder, FindFiles(spec));
  }
  const Container* const named =
      whole ? &kSafetensorsContainer : ContainerNamed(folder.files.front().path);
  if (named != nullptr) source->container_ = named;
  const ConversionRule& rule =
      source->rule_.emplace(source->source_strategy_ ? &*source->source_strategy_ : nullptr,
                            source->target_strategy_ ? &*source->target_strategy_ : nullptr,
                            std::move(groups), source->container_->may_be_one_stage);
  RESHARD_RETURN_IF_ERROR(rule.groups().CheckAgainst(rule));
  RESHARD_RETURN_IF_ERROR(source->TakeNames(spec.name_map));
  RESHARD_RETURN_IF_ERROR(whole ? source->ChooseFolder(spec, use, *whole)
                                : source->ChooseFiles(spec, use.target_ranks, folder));
  if (!whole) source->TakeEmptyFiles(SourceName(spec));
  if (named == nullptr) source->container_ = &source->ContainerOfContent();
  std::map<int64_t, FileId> rank_files;
  for (const OpenedSource::File& file : source->chosen_) rank_files.emplace(file.rank, file.id);
  if (rule.source() != nullptr) {
    auto grid = std::make_unique<GridPlacement>(rule, std::move(rank_files), use.choice);
    source->grid_ = grid.get();
    source->placement_ = std::move(grid);
  } else if (source->folder_) {
    source->placement_ = std::make_unique<ListedPlacement>(
        std::move(rank_files), source->folder_->weights(), source->folder_->rest());
  } else {
    source->placement_ = std::make_unique<ListedPlacement>(std::move(rank_files));
  }
  source->tensors_.emplace(source->files_, source->tables_, *source->placement_, source->memory_);
  source->WarnOfUnusedKey();
  if (source->folder_) RESHARD_RETURN_IF_ERROR(source->CheckFolder(use.opens_any_file));
  return source;
}

Result<std::unique_ptr<OpenedSource>> OpenEachFile(const std::vector<LoneFile>& files,
                                                   const SourceLimits& limits,
                                                   std::shared_ptr<const EncryptionKey> key) {
  std::unique_ptr<OpenedSource> source(new OpenedSource(limits, std::move(key)));
  source->each_alone_ = true;
  source->rule_.emplace(nullptr, nullptr);
  std::vector<FileId> ids;
  ids.reserve(files.size());
  source->chosen_.reserve(files.size());
  for (const auto& [path, relative_path] : files) {
    RESHARD_ASSIGN_OR_RETURN(const FileIdentity identity, PinInput(path));
    const FileId id = source->files_.Add(path, identity);
    source->chosen_.push_back({static_cast<int64_t>(ids.size()), relative_path, id, identity});
    ids.push_back(id);
  }
  source->placement_ = std::make_unique<ListedPlacement>(ids);
  source->tensors_.emplace(source->files_, source->tables_, *source->placement_, source->memory_);
  source->TakeEmptyFiles({});
  source->WarnOfUnusedKey();
  return source;
}

void OpenedSource::WarnOfUnusedKey() {
  if (files_.key() == nullptr || chosen_.empty()) return;
  std::vector<uint8_t> is_plain(chosen_.size());
  const auto look = [&](size_t i, const std::stop_token& /*stop*/) -> Status {
    if (chosen_[i].identity.size == 0) return {};  // has nothing to encrypt
    // Whoever reads the file says what is wrong with it.
    const Result<LocalFile> file = LocalFile::Open(path(chosen_[i]));
    if (!file.ok()) return {};
    const Result<std::optional<EncryptionMode>> mode = EncryptionModeOf(*file);
    is_plain[i] = mode.ok() && !*mode ? 1 : 0;
    return {};
  };
  static_cast<void>(RunWorkers(Askers(1), chosen_.size(), look, std::stop_token()));
  FirstFew plain;
  for (size_t i = 0; i < chosen_.size(); ++i) {
    if (is_plain[i] != 0) plain.Add(Escape(path(chosen_[i])));
  }
  if (plain.count() > 0) warnings_.push_back(UnusedKeyWarning(plain, chosen_.size()));
}

Warning UnusedKeyWarning(const FirstFew& plain, size_t files) {
  std::string message =
      files == 1 ? fmt::format("{}: is not encrypted; the key is not used for it", plain.Joined())
                 : fmt::format("{} of {} files {} not encrypted; the key is not used for {}: {}",
                               plain.count(), files, plain.count() == 1 ? "is" : "are",
                               plain.count() == 1 ? "it" : "them", plain.Joined());
  return {WarningCode::kKeyNotUsed, std::move(message)};
}

void OpenedSource::TakeEmptyFiles(const std::string& name) {
  NumberRanges ranks;
  FirstFew paths;
  for (const File& file : chosen_) {
    if (file.identity.size > 0) continue;
    ranks.Add(file.rank);
    paths.Add(Escape(path(file)));
  }
  if (ranks.count() == 0 || ranks.count() == chosen_.size()) return;
  has_empty_files_ = true;
  const std::string where = each_alone_ ? paths.Joined() : ranks.ToWords("rank");
  warnings_.push_back({WarningCode::kEmptyRankFolders,
                       fmt::format("{}{} of {} files {} empty (0 bytes), as that of a rank without "
                                   "parameters is: {}",
                                   name.empty() ? "" : name + ": ", ranks.count(), chosen_.size(),
                                   ranks.count() == 1 ? "is" : "are", where)});
}

Status OpenedSource::TakeNames(const std::map<std::string, std::string>& name_map) {
  for (const auto& [name, in_source] : name_map) {
    const auto [known, is_new] = new_names_.emplace(in_source, name);
    if (is_new) continue;
    return InvalidArgumentError(
        fmt::format("`name_map`: the source's {} stands for both {} and {}; remove one of them",
                    Quote(in_source), Quote(known->second), Quote(name)));
  }
  return {};
}

Result<IndexedFile> OpenedSource::MakeTable(FileId file,
                                            const std::shared_ptr<const FileTable>& like) {
  const auto read = has_empty_files_ ? ReadTableInSet : ReadFileTable;
  RESHARD_ASSIGN_OR_RETURN(IndexedFile table, read(files_, file, memory_, like));
  if (table.states_redundancy()) states_redundancy_ = true;
  if (!table.sharding_info().empty()) {
    const std::lock_guard lock(mutex_);
    saved_offsets_.insert_or_assign(file, table.sharding_info());
  }
  if (!new_names_.empty()) {
    RESHARD_ASSIGN_OR_RETURN(table, WithNames(std::move(table), new_names_, files_.path(file)));
  }
  if (!folder_) return table;
  const auto number = folder_numbers_.find(file);
  return folder_->Choose(std::move(table), number->second, files_.path(file));
}

std::map<FileId, std::string> OpenedSource::SavedOffsetsOfFiles() const {
  const std::lock_guard lock(mutex_);
  return saved_offsets_;
}

Status OpenedSource::AddFolderFile(const std::string& path, const std::string& name,
                                   int64_t number) {
  RESHARD_ASSIGN_OR_RETURN(const FileIdentity identity, PinInput(path));
  const FileId id = files_.Add(path, identity);
  folder_numbers_.emplace(id, number);
  chosen_.push_back({number, name, id, identity});
  return {};
}

Status OpenedSource::AddIndexedFiles(const std::string& folder, const SourceUse& use,
                                     const WeightMap& weights) {
  std::vector<uint8_t> counts(weights.files.size(), use.choice.TakesAll() ? 1 : 0);
  if (!use.choice.TakesAll()) {
    for (const MappedWeight& weight : weights.weights) {
      if (counts[weight.file] == 0 && use.choice.Takes(weight.name)) counts[weight.file] = 1;
    }
  }
  FirstFew missing;
  for (size_t i = 0; i < weights.files.size(); ++i) {
    const std::string path = PathIn(folder, weights.files[i]);
    const auto number = static_cast<int64_t>(i);
    const Status added = AddFolderFile(path, weights.files[i], number);
    if (added.code() != StatusCode::kNotFound) {
      RESHARD_RETURN_IF_ERROR(added);
    } else if (use.opens_any_file) {
      const FileId id = files_.Add(path);
      folder_numbers_.emplace(id, number);
      chosen_.push_back({number, weights.files[i], id, {}});
    } else if (counts[i] != 0) {
      missing.Add(Escape(weights.files[i]));
    }
  }
  if (missing.count() == 0) return {};
  const std::string index = Escape(path(*index_));
  if (missing.count() == weights.files.size()) {
    return MismatchError(fmt::format(
        "{}: names {} file{}, none of which is there: {}; is it the index of another folder? Copy "
        "the files beside it, or remove it",
        index, missing.count(), missing.count() == 1 ? "" : "s", missing.Joined()));
  }
  return MismatchError(fmt::format(
      "{}: names {} files, and {} of them {} not there: {}; complete the folder, or leave their "
      "tensors out with `exclude`",
      index, weights.files.size(), missing.count(), missing.count() == 1 ? "is" : "are",
      missing.Joined()));
}

Status OpenedSource::ChooseFolder(const SourceSpec& spec, const SourceUse& use,
                                  const FullFolder& folder) {
  if (folder.index.empty()) {
    const bool is_file = folder.lone == spec.path;
    folder_ = std::make_unique<FolderTables>(WeightMap(), 0, std::string(), use.choice);
    WarnOfOthers(is_file ? "" : PathIn(spec.path, folder.lone), folder,
                 [&](const std::string& name) { return name == folder.lone; });
    return AddFolderFile(is_file ? spec.path : PathIn(spec.path, folder.lone),
                         std::filesystem::path(folder.lone).filename().string(), 0);
  }
  const std::string index = PathIn(spec.path, folder.index);
  RESHARD_ASSIGN_OR_RETURN(const FileIdentity identity, PinInput(index));
  const FileId id = files_.Add(index, identity);
  index_ = {0, folder.index, id, identity};
  WeightMap weights;
  {
    RESHARD_ASSIGN_OR_RETURN(SourceReader reader, files_.OpenReader(id));
    const FileBytes bytes = BytesOf(reader, index);
    Result<WeightMap> parsed = ParseWeightMap(bytes, memory_);
    if (parsed.status().code() == StatusCode::kCorrupt) {
      RESHARD_RETURN_IF_ERROR(CheckIsIndex(bytes));
    }
    RESHARD_ASSIGN_OR_RETURN(weights, std::move(parsed));
  }
  RESHARD_RETURN_IF_ERROR(RenameWeights(new_names_, index, weights));
  RESHARD_RETURN_IF_ERROR(AddIndexedFiles(spec.path, use, weights));
  const auto is_mapped = [&weights](std::string_view name) {
    return std::find(weights.files.begin(), weights.files.end(), name) != weights.files.end();
  };
  std::optional<int64_t> rest;
  if (folder.family == FolderFamily::kUnified && !is_mapped(kHyperParamFile)) {
    const std::string beside = PathIn(spec.path, std::string(kHyperParamFile));
    RESHARD_ASSIGN_OR_RETURN(const PathKind kind, KindOf(beside));
    if (kind != PathKind::kMissing) {
      rest = static_cast<int64_t>(weights.files.size());
      RESHARD_RETURN_IF_ERROR(AddFolderFile(beside, std::string(kHyperParamFile), *rest));
    }
  }
  WarnOfOthers(index, folder, [&](const std::string& name) {
    return is_mapped(name) || (rest && name == kHyperParamFile);
  });
  folder_ = std::make_unique<FolderTables>(std::move(weights), rest, index, use.choice);
  return {};
}

void OpenedSource::WarnOfOthers(const std::string& taken, const FullFolder& folder,
                                const std::function<bool(const std::string&)>& is_read) {
  std::vector<std::string> others;
  for (const std::string& name : folder.files) {
    if (!is_read(name)) others.push_back(Escape(name));
  }
  if (others.empty()) return;
  warnings_.push_back(
      {WarningCode::kFilesNotRead,
       fmt::format("{}: {} checkpoints beside it, left out: {}", Escape(taken),
                   folder.index.empty() ? "is read without the" : "does not name these",
                   FirstOf(others))});
}

size_t OpenedSource::Askers(size_t workers) const {
  return chosen_.empty() ? workers : reshard::Askers(path(chosen_.front()), workers);
}

Status OpenedSource::CheckFolder(bool opens_any_file) {
  const auto look = [&](size_t i, const std::stop_token& /*stop*/) -> Status {
    const Status status = tables_.Get(chosen_[i].id).status();
    if (!opens_any_file) RESHARD_RETURN_IF_ERROR(status);
    return CheckMemory(memory_);
  };
  // Where no server has to be asked, threads would only take more memory.
  RESHARD_RETURN_IF_ERROR(RunWorkers(Askers(1), chosen_.size(), look, std::stop_token()));
  for (Warning& warning : folder_->Warnings()) warnings_.push_back(std::move(warning));
  return {};
}

Status CheckOneSource(const std::string& source, const std::map<int64_t, std::string>& files) {
  if (source.empty() == files.empty()) {
    return InvalidArgumentError(
        source.empty() ? "a source is needed"
                       : fmt::format("the source is named twice, as {} and by `source.files`; "
                                     "choose one",
                                     Escape(source)));
  }
  return {};
}

Status CheckSourceNamed(const std::string& source, const std::map<int64_t, std::string>& files,
                        const std::string& target) {
  if ((source.empty() && files.empty()) || target.empty()) {
    return InvalidArgumentError("a source and a target folder are needed");
  }
  return CheckOneSource(source, files);
}

const Container& OpenedSource::ContainerOfContent() {
  for (const File& file : chosen_) {
    if (file.identity.size == 0) continue;
    const Result<uint64_t> size = files_.Size(file.id);
    std::vector<std::byte> head(size.ok() ? std::min<uint64_t>(*size, kSignatureBytes) : 0);
    // Whoever reads the file says what is wrong with it.
    if (head.empty() || !files_.Read(file.id, 0, head).ok()) continue;
    const Result<const Container*> found = ContainerOf(head, *size);
    if (found.ok()) return **found;
  }
  return kMindSporeContainer;
}

Status OpenedSource::ChooseFiles(const SourceSpec& spec, const std::vector<int64_t>& target_ranks,
                                 const RankFolder& folder) {
  warnings_.insert(warnings_.end(), folder.warnings.begin(), folder.warnings.end());

  const int64_t first = rule_->SourceRank(0, 0);
  const int64_t end = rule_->SourceRank(rule_->source_stages() - 1, 0) + rule_->source_devices();
  const HolderGroups& groups = rule_->groups();
  const auto replicas = source_strategy_ ? std::span<const int64_t>() : groups.HoldersLike(first);
  NumberRanges extra;
  for (const RankFile& file : folder.files) {
    if ((file.rank < first || file.rank >= end) &&
        std::find(replicas.begin(), replicas.end(), file.rank) == replicas.end()) {
      extra.Add(file.rank);
      continue;
    }
    step_ = file.step;
    chosen_.push_back({file.rank, file.relative_path, files_.Add(file.path), {}});
  }
  const auto pin = [this](size_t i, const std::stop_token& /*stop*/) -> Status {
    File& file = chosen_[i];
    RESHARD_ASSIGN_OR_RETURN(file.identity, PinInput(path(file)));
    files_.Add(path(file), file.identity);
    return {};
  };
  RESHARD_RETURN_IF_ERROR(RunWorkers(Askers(1), chosen_.size(), pin, std::stop_token()));
  const NumberRanges missing = MissingRanks(chosen_, first, end, *rule_, target_ranks);

  NumberRanges known;
  known.AddRange(first, end - 1);
  const std::string all = known.ToWords("rank");
  const std::string by =
      source_strategy_ ? "by " + Escape(source_strategy_->path()) : "without a source strategy";
  if (extra.count() > 0 && !spec.files.empty()) {
    return InvalidArgumentError(
        fmt::format("`source.files`: expected source {} ({}), found {}", all, by, extra.ToText()));
  }
  if (chosen_.empty()) {
    return MismatchError(fmt::format("{}: expected {} ({}), found only {}", SourceName(spec), all,
                                     by, extra.ToWords("rank")));
  }
  if (missing.count() > 0) {
    warnings_.push_back(
        {WarningCode::kMissingRanks,
         fmt::format("{}: {} of {} ({}) {} missing: {}", SourceName(spec), missing.count(), all, by,
                     missing.count() == 1 ? "is" : "are", missing.ToText())});
  }
  if (extra.count() == 0) return {};
  if (!source_strategy_) {
    return MismatchError(fmt::format(
        "{}: found {} beside rank 0, and no strategy that says how tensors are cut; give the one "
        "that the checkpoint was saved with (`source.strategy`), or, where each rank has full "
        "tensors, one of the files as the source",
        SourceName(spec), extra.ToWords("rank")));
  }
  const std::string beyond = fmt::format(
      "{}: expected {} ({}), found {} more: {}", SourceName(spec), all, by,
      extra.count() == 1 ? "1 rank" : fmt::format("{} ranks", extra.count()), extra.ToText());
  if (rule_->stage_alone()) {  // they are of other stages
    warnings_.push_back({WarningCode::kRanksBeyondStrategy, beyond + "; not used"});
    return {};
  }
  const std::string hint =
      SwapHint(*rule_, folder.files.front().rank, folder.files.back().rank, folder.files.size());
  if (!hint.empty()) return MismatchError(beyond + "; " + hint);
  return MismatchError(beyond +
                       "; give the strategy that the checkpoint was saved with, all its stages, or "
                       "files or a pattern of its ranks only");
}

}  // namespace reshard
