// OpenedSource: a source checkpoint with its strategies, ready for planning.
//
// It cannot be moved or copied, because its parts refer to one another. Thread-safe once open.
#ifndef RESHARD_SRC_CONVERT_OPENED_SOURCE_H_
#define RESHARD_SRC_CONVERT_OPENED_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/container/container.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "reshard/strategy.h"
#include "src/base/memory_check.h"
#include "src/base/quote.h"
#include "src/io/source_files.h"
#include "src/mindspore/conversion_rule.h"
#include "src/mindspore/each_file.h"
#include "src/mindspore/grid_placement.h"
#include "src/mindspore/rank_folder.h"
#include "src/os/file_identity.h"
#include "src/plan/parameter_choice.h"
#include "src/sharded/lone_parts.h"
#include "src/source/found_source.h"
#include "src/source/indexed_file.h"
#include "src/source/source.h"
#include "src/source/table_cache.h"

namespace reshard {

// A file of a rank as another process found it. This process compares size and time of modification
// when it opens the file.
struct KnownFile {
  RankFile file;
  FileIdentity identity;
};

// The use of a source.
struct SourceUse {
  TargetSpec target = {};                  // its strategy is read
  std::vector<int64_t> target_ranks = {};  // that are wanted; none: all
  // Of a folder of full tensors, files and tensors that are left out may be missing.
  ParameterChoice choice = {};
  // Opening a file of full tensors reports its errors.
  bool opens_any_file = false;
  // The files of ranks, if another process has found them: then no folder is listed, and only the
  // files that are needed are opened.
  const std::vector<KnownFile>* known = nullptr;
  // Tensors that cannot be read are only listed (OpenedSource::Unread). Otherwise, opening a file
  // with one that `choice` takes is an error.
  bool lists_unread = false;
};

// Limits for the parts of a source, and the access to files.
struct SourceLimits {
  uint64_t table_bytes = uint64_t{256} << 20;
  uint64_t window_bytes = uint64_t{64} << 20;
  uint64_t header_bytes = 0;  // as SourceFiles::Options::header_budget
  IoChoice::Source access = IoChoice::Source::kAuto;
  std::stop_token stop = {};  // as in SourceFiles
  // Of files that no other file of the source completes.
  LoneParts lone_parts = LoneParts::kRefused;
  MemoryCheck memory = {};  // asked while strategies, files and plans are gone through
  std::shared_ptr<std::atomic<uint64_t>> pages = {};  // as SourceFiles counts them
};

class OpenedSource;

// Loads the strategies and chooses the files. Opens the files of a folder of full tensors; opens
// others only if there is a key, or if no name tells the container. All code that reads a sharded
// checkpoint opens it in this way.
// Errors: as LoadStrategy and FindRankFiles, and
//   kMismatch: all files of the source's ranks are missing, or there are more ranks than the source
//     strategy has
Result<std::unique_ptr<OpenedSource>> OpenSource(const SourceSpec& spec, const SourceUse& use = {},
                                                 const SourceLimits& limits = {});

// As OpenSource, for a source that states the places of its tensors, such as a folder of whole
// tensors; null if `spec` names none.
Result<std::unique_ptr<OpenedSource>> OpenOfFamily(const SourceSpec& spec, const SourceUse& use,
                                                   const SourceLimits& limits = {});

// Opens `files` by themselves: without strategies, and with the index of a file as its rank.
// Tensors that cannot be read and that `choice` leaves out do not count. Errors: as Storage::Pin.
Result<std::unique_ptr<OpenedSource>> OpenEachFile(const std::vector<LoneFile>& files,
                                                   const SourceLimits& limits = {},
                                                   std::shared_ptr<const EncryptionKey> key = {},
                                                   const ParameterChoice& choice = {});

class OpenedSource {
 public:
  OpenedSource(const OpenedSource&) = delete;
  OpenedSource& operator=(const OpenedSource&) = delete;

  // As given to OpenSource, with the folders that were found in a run's output folder.
  const SourceSpec& spec() const { return spec_; }
  SourceFiles& files() { return files_; }
  const SourceFiles& files() const { return files_; }
  const std::string& path(const ChosenFile& file) const { return files_.path(file.id); }
  // The container of the files. The names of the chosen files, which all have the same extension,
  // tell it. Without an extension, the content of the first file that is not empty does.
  const Container& container() const { return *found_.container; }
  TableCache& tables() { return tables_; }
  const TableCache& tables() const { return tables_; }
  const ConversionRule& rule() const { return *rule_; }
  const NamesInFiles& names() const { return names_; }
  // The places of shards by the strategies; null without a source strategy.
  const GridPlacement* grid() const { return grid_; }
  const Source& tensors() const { return *tensors_; }
  const std::vector<ChosenFile>& chosen() const { return found_.files; }  // ascending by rank
  // Returns the number of threads that should index the chosen files: `workers`, or more if they
  // are on a server (open_files.h).
  size_t Askers(size_t workers) const;
  // Whether the source lists the parts of all its tensors, which were proved to be whole.
  bool StatesParts() const { return found_.placement->all_tensors() != nullptr; }
  // Whether each file stands by itself, by OpenEachFile.
  bool each_alone() const { return each_alone_; }
  // Whether another process has found the files (SourceUse::known), and which files were opened
  // then.
  bool is_known() const { return is_known_; }
  std::set<FileId> opened_known() const;
  // Returns the path of a chosen file that is encrypted; no value if none is. A file that cannot be
  // read does not count: reading it reports the error.
  std::optional<std::string> FindEncrypted() const;
  // Whether a file that was opened states whether redundancy was removed from the set.
  bool states_redundancy() const { return states_redundancy_; }
  // Says that a file states that which this process need not open.
  void set_states_redundancy() { states_redundancy_ = true; }
  // As CoveredByCrc of indexed_file.h.
  Result<std::optional<uint64_t>> CoveredByCrc(FileId file);
  // As FamilyTables::Tell, with the names of the source.
  Result<std::optional<IndexedFile>> Tell(const ChosenFile& file) const;
  // The files that were opened and have the metadata DCP_SHARDING_INFO.
  std::set<FileId> FilesWithOffsets() const;
  // The tensors that cannot be read, of files that were opened and by the metadata of a family:
  // those that are not asked for; all with SourceUse::lists_unread.
  std::map<std::string, std::string> Unread() const;  // why not, by name
  // As FoundSource has them.
  bool files_are_numbered() const { return found_.files_are_numbered; }
  const std::optional<ChosenFile>& index() const { return found_.index; }
  // Files that are copied as they are (companions.h).
  const std::vector<ChosenFile>& companions() const { return companions_; }
  void set_companions(std::vector<ChosenFile> files) { companions_ = std::move(files); }
  std::span<const std::string> indexed() const { return found_.indexed; }
  // Whether `name` is in no index, but in the file for names that the index lacks.
  bool IsBeside(std::string_view name) const {
    return found_.rest && found_.placement->HomeOf(name) == found_.rest;
  }
  // The training step of all chosen files, if their names have it.
  const std::optional<TrainingStep>& step() const { return step_; }
  // Those about the files that were opened are among them.
  std::vector<Warning> warnings() const;
  // Notes about the folders that were found, and about the strategies, which need no action.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  friend Result<std::unique_ptr<OpenedSource>> OpenSource(const SourceSpec& spec,
                                                          const SourceUse& use,
                                                          const SourceLimits& limits);
  friend Result<std::unique_ptr<OpenedSource>> OpenOfFamily(const SourceSpec& spec,
                                                            const SourceUse& use,
                                                            const SourceLimits& limits);
  friend Result<std::unique_ptr<OpenedSource>> OpenEachFile(
      const std::vector<LoneFile>& files, const SourceLimits& limits,
      std::shared_ptr<const EncryptionKey> key, const ParameterChoice& choice);
  OpenedSource(const SourceLimits& limits, std::shared_ptr<const EncryptionKey> key);
  // Returns whether there is a source; rank files are one only if `may_be_ranks`.
  Result<bool> Open(const SourceSpec& given, const SourceUse& use, bool may_be_ranks);
  // Returns whether a family knows the path; then its files are found.
  Result<bool> FindAmongFamilies(const SourceSpec& spec, const SourceUse& use);
  // Finds the files, and makes the rule.
  Status FindByRank(const SourceSpec& spec, const SourceUse& use, HolderGroups groups);
  Status TakeKnown(const SourceUse& use, HolderGroups groups);
  Status MakeRule(HolderGroups groups, bool may_be_alone);
  // Says which container the chosen files are.
  const Container& ContainerOfContent();
  // Takes a lone file of torch.save as one, although its name tells another container.
  void LookAtLoneFile();
  // Says which files are not encrypted if a key was given.
  void WarnOfUnusedKey();
  // Whether the chosen files are encrypted, by index; no value for an empty file or an error.
  std::vector<std::optional<bool>> LookForEncryption() const;
  // Takes empty files as the files of ranks without parameters, if others have parameters. `name`
  // is the source's.
  void TakeEmptyFiles(const std::string& name);
  // Opens each file and reports those that do not fit.
  Status LookIntoAll(bool opens_any_file);
  // Gives tensors of a table that cannot be read their names in the source. Errors: kUnsupported if
  // one is asked for.
  Status TakeUnread(IndexedFile& table);
  void TakeChoice(const ParameterChoice& choice);
  Status TakeNames(const Renames& name_map);
  // Takes the name of an array in its file.
  Result<bool> WantsOfFile(const std::string& name) const;
  // Gives the target strategy the source's names, if it has the new ones that `renaming` gives
  // them. Of files, those that cannot be read do not count.
  Status FitTargetNames(const Renaming& renaming);
  Result<IndexedFile> ReadTable(FileId file, const std::shared_ptr<const FileTable>& like);
  Result<IndexedFile> MakeTable(FileId file, const std::shared_ptr<const FileTable>& like);
  // Whether the file, which is open, is as another process found it. Errors: kChanged.
  Status CheckKnown(FileId file);

  SourceSpec spec_;
  SourceFiles files_;
  const MemoryCheck memory_;
  const LoneParts lone_parts_;
  NamesInFiles names_;
  std::function<bool(std::string_view)> wants_;  // empty: all
  TableCache tables_;
  std::optional<Strategy> source_strategy_;
  std::optional<Strategy> target_strategy_;
  std::optional<ConversionRule> rule_;
  FoundSource found_;  // refers to rule_
  std::vector<ChosenFile> companions_;
  const GridPlacement* grid_ = nullptr;
  std::optional<Source> tensors_;
  bool each_alone_ = false;
  bool is_known_ = false;
  bool lists_unread_ = false;     // as SourceUse has it
  bool has_empty_files_ = false;  // of ranks without parameters
  std::atomic<bool> states_redundancy_ = false;
  mutable std::mutex mutex_;
  std::set<FileId> with_offsets_;              // guarded by mutex_
  std::map<FileId, BesideArrays> others_;      // likewise; without unread tensors
  std::map<std::string, std::string> unread_;  // likewise; why, by name
  std::map<FileId, Warning> of_parts_;         // likewise; of LoneParts::kListed
  std::set<FileId> opened_known_;              // guarded by mutex_
  std::optional<TrainingStep> step_;
  std::vector<std::string> notes_;
};

// Returns the warning that a key was not used for `plain`, the unencrypted ones of `files` files.
// There is at least one.
Warning UnusedKeyWarning(const FirstFew& plain, size_t files);

// Fails with kInvalidArgument unless one source, a path or files, is named.
Status CheckOneSource(const std::string& source, const std::map<int64_t, std::string>& files);
// The same for a target, too.
Status CheckSourceNamed(const std::string& source, const std::map<int64_t, std::string>& files,
                        const std::string& target);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_OPENED_SOURCE_H_
