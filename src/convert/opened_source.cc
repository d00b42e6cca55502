#include "src/convert/opened_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "format/container_table/container_table.h"
#include "src/base/status_macros.h"
#include "src/convert/file_warnings.h"
#include "src/full/folder_tables.h"
#include "src/full/full_source.h"
#include "src/io/decrypted_file.h"
#include "src/io/storage.h"
#include "src/mindspore/group_info.h"
#include "src/mindspore/rank_pattern.h"
#include "src/mindspore/rank_source.h"
#include "src/mindspore/run_folder.h"
#include "src/mindspore/strategy_loader.h"
#include "src/mindspore/strategy_names.h"
#include "src/os/threads.h"
#include "src/sharded/sharded_source.h"
#include "src/source/listed_placement.h"

namespace reshard {
namespace {

// Returns the strategy that `named` names, if it does.
Result<std::optional<Strategy>> StrategyOf(const StrategyRef& named, const MemoryCheck& memory,
                                           std::vector<std::string>& notes) {
  std::optional<Strategy> strategy;
  if (named.empty()) return strategy;
  RESHARD_ASSIGN_OR_RETURN(strategy, LoadStrategy(named, memory));
  if (named.value() == nullptr) {
    notes.insert(notes.end(), strategy->notes().begin(), strategy->notes().end());
  }
  return strategy;
}

// The families whose sources state the places of tensors. The first family that recognizes a path
// takes it.
constexpr std::array<SourceFinder, 2> kFamilies = {FindShardedSource, FindFullSource};

// Whether no family can be there.
bool IsPlain(const SourceSpec& spec) {
  return !spec.files.empty() || !spec.strategy.empty() || IsRankPattern(spec.path);
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
      lone_parts_(limits.lone_parts),
      tables_(
          [this](FileId file, const std::shared_ptr<const FileTable>& like) {
            return MakeTable(file, like);
          },
          limits.table_bytes, TableCache::kUsualLeastKept) {}

Result<std::unique_ptr<OpenedSource>> OpenSource(const SourceSpec& spec, const SourceUse& use,
                                                 const SourceLimits& limits) {
  std::unique_ptr<OpenedSource> source(new OpenedSource(limits, spec.key));
  RESHARD_RETURN_IF_ERROR(source->Open(spec, use, true).status());
  return source;
}

Result<std::unique_ptr<OpenedSource>> OpenOfFamily(const SourceSpec& spec, const SourceUse& use,
                                                   const SourceLimits& limits) {
  std::unique_ptr<OpenedSource> source(new OpenedSource(limits, spec.key));
  RESHARD_ASSIGN_OR_RETURN(const bool is_open, source->Open(spec, use, false));
  if (!is_open) source.reset();
  return source;
}

Result<bool> OpenedSource::Open(const SourceSpec& given, const SourceUse& use, bool may_be_ranks) {
  spec_ = InRunFolder(given, notes_);
  if (IsPlain(spec_) && spec_.format.value_or(SourceFormat::kPlain) != SourceFormat::kPlain) {
    return InvalidArgumentError(
        "`source.format` is for folders whose files say how they are cut; with `source.strategy`, "
        "`source.files` or a pattern leave it out");
  }
  lists_unread_ = use.lists_unread;
  const SourceSpec& spec = spec_;
  TakeChoice(use.choice);
  RESHARD_ASSIGN_OR_RETURN(source_strategy_, StrategyOf(spec.strategy, memory_, notes_));
  RESHARD_ASSIGN_OR_RETURN(target_strategy_, StrategyOf(use.target.strategy, memory_, notes_));
  // The rule looks at names if there are two strategies.
  if (source_strategy_) RESHARD_RETURN_IF_ERROR(FitTargetNames(use.choice.renaming()));
  RESHARD_ASSIGN_OR_RETURN(HolderGroups groups, LoadGroupInfo(spec.group_info));
  RESHARD_RETURN_IF_ERROR(TakeNames(spec.name_map));
  RESHARD_ASSIGN_OR_RETURN(const bool is_of_family, FindAmongFamilies(spec, use));
  if (is_of_family) {
    RESHARD_RETURN_IF_ERROR(MakeRule(std::move(groups), false));
  } else if (may_be_ranks) {
    RESHARD_RETURN_IF_ERROR(FindByRank(spec, use, std::move(groups)));
  } else {
    return false;
  }
  if (found_.container == nullptr) {
    found_.container = &ContainerOfContent();
  } else {
    LookAtLoneFile();
  }
  if (found_.container->has_other_values) found_.looks_into_all = true;
  tensors_.emplace(files_, tables_, *found_.placement, memory_);
  if (!source_strategy_) RESHARD_RETURN_IF_ERROR(FitTargetNames(use.choice.renaming()));
  if (!is_known_) WarnOfUnusedKey();  // it looks into all files
  if (found_.looks_into_all) RESHARD_RETURN_IF_ERROR(LookIntoAll(use.opens_any_file));
  return true;
}

Result<bool> OpenedSource::FindAmongFamilies(const SourceSpec& spec, const SourceUse& use) {
  if (use.known != nullptr) return false;
  if (IsPlain(spec)) return false;
  SourceRequest request{.path = spec.path,
                        .format = spec.format,
                        .names = names_,
                        .wants = wants_,
                        .files_may_be_missing = use.opens_any_file,
                        .lists_unread = use.lists_unread,
                        .files = files_,
                        .memory = memory_};
  for (const SourceFinder find : kFamilies) {
    RESHARD_ASSIGN_OR_RETURN(std::optional<FoundSource> found, find(request));
    if (!found) continue;
    found_ = *std::move(found);
    for (const UnreadTensor& tensor : found_.unread) unread_.emplace(tensor.name, tensor.why);
    return true;
  }
  return false;
}

Status OpenedSource::FindByRank(const SourceSpec& spec, const SourceUse& use, HolderGroups groups) {
  if (use.known != nullptr) return TakeKnown(use, std::move(groups));
  RESHARD_ASSIGN_OR_RETURN(const RankFolder folder, FindRanks(spec));
  const Container* const named = ContainerNamed(folder.files.front().path);
  RESHARD_RETURN_IF_ERROR(MakeRule(std::move(groups), named == nullptr || named->may_be_one_stage));
  RESHARD_ASSIGN_OR_RETURN(RankSource ranks,
                           ChooseRanks(spec, use.target_ranks, folder, *rule_, use.choice, files_));
  found_ = std::move(ranks.found);
  found_.container = named;
  grid_ = ranks.grid;
  step_ = folder.files.front().step;
  TakeEmptyFiles(SourceName(spec));
  return {};
}

Status OpenedSource::TakeKnown(const SourceUse& use, HolderGroups groups) {
  is_known_ = true;
  const Container* const named = ContainerNamed(use.known->front().file.path);
  RESHARD_RETURN_IF_ERROR(MakeRule(std::move(groups), named == nullptr || named->may_be_one_stage));
  FoundSource found;
  found.files.reserve(use.known->size());
  for (const auto& [file, identity] : *use.known) {
    found.files.push_back({file.rank, file.relative_path, files_.Add(file.path), identity});
  }
  RankSource ranks = PlaceRanks(std::move(found), *rule_, use.choice);
  found_ = std::move(ranks.found);
  found_.container = named;
  grid_ = ranks.grid;
  step_ = use.known->front().file.step;
  TakeEmptyFiles({});
  return {};
}

Status OpenedSource::MakeRule(HolderGroups groups, bool may_be_alone) {
  const ConversionRule& rule = rule_.emplace(source_strategy_ ? &*source_strategy_ : nullptr,
                                             target_strategy_ ? &*target_strategy_ : nullptr,
                                             std::move(groups), may_be_alone);
  return rule.groups().CheckAgainst(rule);
}

Result<std::unique_ptr<OpenedSource>> OpenEachFile(const std::vector<LoneFile>& files,
                                                   const SourceLimits& limits,
                                                   std::shared_ptr<const EncryptionKey> key,
                                                   const ParameterChoice& choice) {
  std::unique_ptr<OpenedSource> source(new OpenedSource(limits, std::move(key)));
  source->each_alone_ = true;
  source->TakeChoice(choice);
  source->found_.container = &DefaultContainer();
  source->rule_.emplace(nullptr, nullptr);
  std::vector<FileId> ids;
  ids.reserve(files.size());
  source->found_.files.reserve(files.size());
  for (const auto& [path, relative_path] : files) {
    RESHARD_ASSIGN_OR_RETURN(const FileIdentity identity, Storage::Of(path).Pin(path));
    const FileId id = source->files_.Add(path, identity);
    source->found_.files.push_back({static_cast<int64_t>(ids.size()), relative_path, id, identity});
    ids.push_back(id);
  }
  source->found_.placement = std::make_unique<ListedPlacement>(ids);
  source->tensors_.emplace(source->files_, source->tables_, *source->found_.placement,
                           source->memory_);
  source->TakeEmptyFiles({});
  source->WarnOfUnusedKey();
  return source;
}

std::vector<std::optional<bool>> OpenedSource::LookForEncryption() const {
  std::vector<std::optional<bool>> is_encrypted(chosen().size());
  if (chosen().empty()) return is_encrypted;
  const auto look = [&](size_t i, const std::stop_token& /*stop*/) -> Status {
    if (chosen()[i].identity.size() == 0) return {};  // an empty file has no bytes to encrypt
    // Reading the file reports an error.
    const std::string& at = path(chosen()[i]);
    const Result<std::unique_ptr<ByteSource>> file = Storage::Of(at).Open(at);
    if (!file.ok()) return {};
    const Result<std::optional<TargetSpec::EncryptionMode>> mode = EncryptionModeOf(**file);
    if (mode.ok()) is_encrypted[i] = mode->has_value();
    return {};
  };
  static_cast<void>(RunWorkers(Askers(1), chosen().size(), look, std::stop_token()));
  return is_encrypted;
}

std::optional<std::string> OpenedSource::FindEncrypted() const {
  const std::vector<std::optional<bool>> is_encrypted = LookForEncryption();
  const auto found = std::find(is_encrypted.begin(), is_encrypted.end(), std::optional(true));
  if (found == is_encrypted.end()) return std::nullopt;
  return path(chosen()[static_cast<size_t>(found - is_encrypted.begin())]);
}

void OpenedSource::WarnOfUnusedKey() {
  if (files_.key() == nullptr) return;
  const std::vector<std::optional<bool>> is_encrypted = LookForEncryption();
  FirstFew plain;
  for (size_t i = 0; i < is_encrypted.size(); ++i) {
    if (is_encrypted[i] == false) plain.Add(Escape(path(chosen()[i])));
  }
  if (plain.count() > 0) found_.warnings.push_back(UnusedKeyWarning(plain, chosen().size()));
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
  for (const ChosenFile& file : chosen()) {
    if (file.identity.size() > 0) continue;
    ranks.Add(file.rank);
    paths.Add(Escape(path(file)));
  }
  if (ranks.count() == 0 || ranks.count() == chosen().size()) return;
  has_empty_files_ = true;
  const std::string where = each_alone_ ? paths.Joined() : ranks.ToWords("rank");
  found_.warnings.push_back(
      {WarningCode::kEmptyRankFolders,
       fmt::format("{}{} of {} files {} empty (0 bytes), as for a rank without parameters: {}",
                   name.empty() ? "" : name + ": ", ranks.count(), chosen().size(),
                   ranks.count() == 1 ? "is" : "are", where)});
}

Status OpenedSource::FitTargetNames(const Renaming& renaming) {
  if (!target_strategy_ || renaming.empty()) return {};
  bool has_old_names = false;
  if (source_strategy_) {
    RESHARD_ASSIGN_OR_RETURN(has_old_names, HasOldNames(*source_strategy_, renaming));
  }
  for (size_t i = 0; !source_strategy_ && !has_old_names && i < chosen().size(); ++i) {
    const auto table = tables_.Get(chosen()[i].id);
    if (!table.ok()) continue;  // reading its tensors reports that
    for (const StoredArray& array : (*table)->arrays()) {
      RESHARD_ASSIGN_OR_RETURN(has_old_names, Changes(renaming, std::string(array.name)));
      if (has_old_names) break;
    }
  }
  if (!has_old_names) return {};
  RESHARD_ASSIGN_OR_RETURN(const std::optional<Strategy> fitting,
                           WithOldNames(*target_strategy_, renaming));
  if (fitting) *target_strategy_ = *fitting;
  return {};
}

Status OpenedSource::TakeNames(const Renames& name_map) {
  if (name_map.empty()) return {};
  Result<Renames> from_files = InverseOf(name_map);
  if (!from_files.ok()) {
    const Status& status = from_files.status();
    return status.WithMessage(fmt::format("`name_map`: the source's {}", status.message()));
  }
  RESHARD_RETURN_IF_ERROR(CheckRenames(name_map));
  names_ = {.from_files = Renaming(*std::move(from_files)), .to_files = Renaming(name_map)};
  return {};
}

Result<IndexedFile> OpenedSource::ReadTable(FileId file,
                                            const std::shared_ptr<const FileTable>& like) {
  if (found_.tables) return found_.tables->Read(files_, file, memory_, like);
  const auto read = has_empty_files_ ? ReadTableInSet : ReadFileTable;
  return read(files_, file, memory_, like);
}

Result<IndexedFile> OpenedSource::MakeTable(FileId file,
                                            const std::shared_ptr<const FileTable>& like) {
  if (is_known_) RESHARD_RETURN_IF_ERROR(CheckKnown(file));
  RESHARD_ASSIGN_OR_RETURN(IndexedFile table, ReadTable(file, like));
  if (table.states_redundancy()) states_redundancy_ = true;
  if (!table.shards().begins.empty() && !StatesParts()) {
    const std::lock_guard lock(mutex_);
    with_offsets_.insert(file);
  }
  if (!table.shards().mesh.empty() && !StatesParts()) {
    RESHARD_RETURN_IF_ERROR(CheckHoldsNoPart(
        files_.path(file), table, [this](const std::string& name) { return WantsOfFile(name); },
        lone_parts_));
    if (lone_parts_ == LoneParts::kListed) {
      const std::lock_guard lock(mutex_);
      of_parts_.insert_or_assign(file, WarningOfParts(files_.path(file), table.shards().mesh));
    }
  }
  if (table.beside().values > 0) {
    const std::lock_guard lock(mutex_);
    others_.insert_or_assign(file, BesideArrays{table.beside().values, table.beside().objects});
  }
  if (!table.beside().unread.empty()) RESHARD_RETURN_IF_ERROR(TakeUnread(table));
  if (!names_.empty()) {
    RESHARD_ASSIGN_OR_RETURN(table, WithNames(std::move(table), names_, files_.path(file)));
  }
  if (!found_.tables) return table;
  return found_.tables->Choose(std::move(table), files_.path(file));
}

Result<std::optional<IndexedFile>> OpenedSource::Tell(const ChosenFile& file) const {
  std::optional<IndexedFile> table;
  if (!found_.tables) return table;
  RESHARD_ASSIGN_OR_RETURN(table, found_.tables->Tell(files_, file));
  if (!table || names_.empty()) return table;
  RESHARD_ASSIGN_OR_RETURN(table, WithNames(*std::move(table), names_, files_.path(file.id)));
  return table;
}

void OpenedSource::TakeChoice(const ParameterChoice& choice) {
  if (choice.TakesAll()) return;
  wants_ = [choice](std::string_view name) { return choice.Takes(name); };
}

Result<bool> OpenedSource::WantsOfFile(const std::string& name) const {
  if (!wants_) return true;
  RESHARD_ASSIGN_OR_RETURN(const std::string new_name, names_.from_files.NewNameOf(name));
  return wants_(new_name);
}

Status OpenedSource::CheckKnown(FileId file) {
  RESHARD_ASSIGN_OR_RETURN(const FileIdentity now, files_.Identity(file));
  const auto known = std::find_if(chosen().begin(), chosen().end(),
                                  [file](const ChosenFile& chosen) { return chosen.id == file; });
  if (known != chosen().end() &&
      (now.size() != known->identity.size() || now.mtime_ns() != known->identity.mtime_ns())) {
    return ChangedError(fmt::format(
        "{}: the file has changed since the first share planned: {}; when no program writes to the "
        "sources, remove .reshard in the target folder and run all shares again",
        Escape(files_.path(file)), DescribeChange(known->identity, now)));
  }
  const std::lock_guard lock(mutex_);
  opened_known_.insert(file);
  return {};
}

std::set<FileId> OpenedSource::opened_known() const {
  const std::lock_guard lock(mutex_);
  return opened_known_;
}

Result<std::optional<uint64_t>> OpenedSource::CoveredByCrc(FileId file) {
  if (found_.container->covered_by_crc != nullptr) return reshard::CoveredByCrc(files_, file);
  RESHARD_ASSIGN_OR_RETURN(const TableHandle table, tables_.Get(file));
  return CoveredBytes(table->content_crcs());
}

std::set<FileId> OpenedSource::FilesWithOffsets() const {
  const std::lock_guard lock(mutex_);
  return with_offsets_;
}

Status OpenedSource::TakeUnread(IndexedFile& table) {
  BesideArrays beside = table.beside();
  for (UnreadTensor& tensor : beside.unread) {
    RESHARD_ASSIGN_OR_RETURN(tensor.name, names_.from_files.NewNameOf(std::move(tensor.name)));
  }
  table.set_beside(std::move(beside));
  if (!lists_unread_) {
    const Status status = CheckNoneUnread(
        table, files_.path(table.file()),
        [this](const std::string& name) -> Result<bool> { return !wants_ || wants_(name); });
    if (!status.ok()) {
      return status.WithMessage(status.message() + ", or leave it out with `exclude`");
    }
  }
  const std::lock_guard lock(mutex_);
  for (const UnreadTensor& tensor : table.beside().unread) {
    unread_.emplace(tensor.name, tensor.why);
  }
  return {};
}

std::map<std::string, std::string> OpenedSource::Unread() const {
  const std::lock_guard lock(mutex_);
  return unread_;
}

std::vector<Warning> OpenedSource::warnings() const {
  std::vector<Warning> warnings = found_.warnings;
  const std::lock_guard lock(mutex_);
  for (const auto& [file, warning] : of_parts_) warnings.push_back(warning);
  std::vector<BesideOfFile> files;
  files.reserve(others_.size());
  for (const auto& [file, beside] : others_) files.push_back({files_.path(file), &beside});
  for (Warning& warning : WarningsOfOthers(files)) warnings.push_back(std::move(warning));
  if (!lists_unread_ || unread_.empty()) return warnings;
  std::vector<UnreadTensor> unread;
  unread.reserve(unread_.size());
  for (const auto& [name, why] : unread_) unread.push_back({name, why});
  warnings.push_back(WarningOfUnread(SourceName(spec_), unread));
  return warnings;
}

size_t OpenedSource::Askers(size_t workers) const {
  return chosen().empty() ? workers : reshard::Askers(path(chosen().front()), workers);
}

Status OpenedSource::LookIntoAll(bool opens_any_file) {
  const auto look = [&](size_t i, const std::stop_token& /*stop*/) -> Status {
    const Status status = tables_.Get(chosen()[i].id).status();
    if (!opens_any_file) RESHARD_RETURN_IF_ERROR(status);
    return CheckMemory(memory_);
  };
  // Without a server, more threads would only take more memory.
  RESHARD_RETURN_IF_ERROR(RunWorkers(Askers(1), chosen().size(), look, std::stop_token()));
  if (!found_.tables) return {};
  for (Warning& warning : found_.tables->Warnings()) found_.warnings.push_back(std::move(warning));
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

void OpenedSource::LookAtLoneFile() {
  if (found_.tables != nullptr) return;  // its family knows what it is
  if (chosen().size() != 1 || files_.key() != nullptr) return;
  const FileId file = chosen().front().id;
  std::vector<std::byte> head(
      std::min<uint64_t>(chosen().front().identity.size(), kSignatureBytes));
  // Reading its table reports an error.
  if (head.empty() || !files_.Read(file, 0, head).ok()) return;
  const Container* const found = ContainerCertainlyOf(head);
  if (found != nullptr && found->has_other_values) found_.container = found;
}

const Container& OpenedSource::ContainerOfContent() {
  for (const ChosenFile& file : chosen()) {
    if (file.identity.size() == 0) continue;
    const Result<uint64_t> size = files_.Size(file.id);
    std::vector<std::byte> head(size.ok() ? std::min<uint64_t>(*size, kSignatureBytes) : 0);
    // Reading the file reports an error.
    if (head.empty() || !files_.Read(file.id, 0, head).ok()) continue;
    const Result<const Container*> found = ContainerOf(head, *size);
    if (found.ok()) return **found;
  }
  return DefaultContainer();
}

}  // namespace reshard
