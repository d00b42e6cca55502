#include "src/convert/conversion_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "format/container/container.h"
#include "format/container_table/container_table.h"
#include "src/base/number_text.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/conversion_plan.h"
#include "src/convert/reader_check.h"
#include "src/digest/xxh3.h"
#include "src/full/full_folder.h"
#include "src/io/storage.h"
#include "src/mindspore/output_check.h"
#include "src/mindspore/rank_pattern.h"
#include "src/mindspore/resume_files.h"
#include "src/os/path_location.h"
#include "src/os/used_files.h"
#include "src/record/option_json.h"
#include "src/record/origin.h"

namespace reshard {
namespace {

// Appends a name of any bytes, with its length as the separator.
void AppendDelimited(std::string& out, std::string_view name) {
  AppendNumber(out, name.size());
  out += ':';
  out += name;
  out += ' ';
}

std::string Delimited(std::string_view name) {
  std::string out;
  AppendDelimited(out, name);
  return out;
}

// Order and repetitions do not matter.
void AddPatterns(std::string_view kind, const std::vector<std::string>& patterns, Xxh3& digest) {
  for (const std::string& pattern : std::set<std::string>(patterns.begin(), patterns.end())) {
    digest.Update(fmt::format("{} {}\n", kind, Delimited(pattern)));
  }
}

// Whether this process looks after the file. Another one has looked after all files of a source
// that it has found.
bool IsOwn(const OpenedSource& source, const std::set<FileId>& opened, const ChosenFile& file) {
  return !source.is_known() || opened.contains(file.id);
}

// If a pattern names a folder for each rank, these are the source's folders, like rank folders. If
// it names files side by side, their place does not matter.
Status CheckOutsideOfPattern(const OpenedSource& source, const std::string& pattern,
                             const std::string& target) {
  if (source.each_alone() || !IsRankPattern(pattern)) return {};
  const std::set<FileId> opened = source.opened_known();
  for (const ChosenFile& file : source.chosen()) {
    if (file.relative_path.find('/') == std::string::npos) continue;
    if (!IsOwn(source, opened, file)) continue;
    const std::filesystem::path path = source.path(file);
    RESHARD_RETURN_IF_ERROR(CheckOutside(target, path.parent_path().string()));
  }
  return {};
}

Status CheckReplacesNoInput(const OpenedSource& source, const std::string& path) {
  const auto there = Storage::Of(path).Stat(path);
  const auto same = there.ok() ? NotedInput(*there) : std::nullopt;
  if (!same) return {};
  const auto& chosen = source.chosen();
  const bool is_source = std::any_of(chosen.begin(), chosen.end(), [&](const auto& file) {
    return file.identity.key() == there->key();
  });
  return InvalidArgumentError(fmt::format(
      "the output {} would replace {}{}; choose another target folder", Escape(path),
      is_source ? "the source file " : "", Escape(*same) + (is_source ? "" : ", which is read")));
}

// A file that is read must not be replaced, under any of its names. A source must not be beside an
// output, because a rank folder holds one checkpoint. The latter does not apply if each file is
// converted alone.
Status CheckSourcesStay(const OpenedSource& source, const WorkList& work,
                        const std::string& target_folder) {
  const auto stat = [](const std::string& folder) { return Storage::Of(folder).Stat(folder); };
  std::map<FileIdentity::Key, const ChosenFile*> folders;
  const std::set<FileId> opened = source.opened_known();
  for (const ChosenFile& file : source.chosen()) {
    if (!IsOwn(source, opened, file)) continue;
    const auto folder = stat(FolderOf(source.path(file)));
    if (folder.ok() && !source.each_alone()) folders.emplace(folder->key(), &file);
  }
  for (const PlanReport::TargetFile& target : work.targets) {
    const std::string path = fmt::format("{}/{}", target_folder, target.path);
    RESHARD_RETURN_IF_ERROR(CheckReplacesNoInput(source, path));
    RESHARD_RETURN_IF_ERROR(
        CheckReplacesNoInput(source, fmt::format("{}/{}", target_folder, RecordPath(target.path))));
    const auto folder = stat(FolderOf(path));
    if (!folder.ok()) continue;  // it will be made
    const auto beside = folders.find(folder->key());
    if (beside != folders.end()) {
      return InvalidArgumentError(fmt::format(
          "the output {} would lie beside the source file {}; choose another target folder",
          Escape(path), Escape(source.path(*beside->second))));
    }
  }
  return {};
}

// Returns the path that is read in `folder`; no value if there is none.
Result<std::optional<std::string>> FindRead(const std::string& folder) {
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, Storage::Of(folder).KindOf(folder));
  if (kind == PathKind::kMissing) return std::optional<std::string>();
  RESHARD_ASSIGN_OR_RETURN(const PathLocation location, Storage::Of(folder).Locate(folder));
  for (std::string& path : NotedInputs()) {
    RESHARD_ASSIGN_OR_RETURN(const PathLocation input, Storage::Of(path).Locate(path));
    if (input.From(location)) return std::optional(std::move(path));
  }
  return std::optional<std::string>();
}

// Files that an earlier run has staged may be cleared, and are not a checkpoint to convert. Files
// in a manifest may be pruned.
Status CheckNothingRemovedIsRead(const std::string& target, bool prune) {
  RESHARD_ASSIGN_OR_RETURN(auto read, FindRead(target + "/.reshard"));
  if (read) {
    return InvalidArgumentError(
        fmt::format("{}: is an input, but lies in the staging folder of the target {}; choose "
                    "another target folder, or move the file",
                    Escape(*read), Escape(target)));
  }
  if (!prune) return {};
  RESHARD_ASSIGN_OR_RETURN(read, FindRead(target));
  if (!read) return {};
  return InvalidArgumentError(
      fmt::format("{}: is an input, but lies in the target {}, where `prune` removes files; choose "
                  "another target folder, or leave the option out",
                  Escape(*read), Escape(target)));
}

std::optional<std::pair<uint64_t, uint64_t>> SourceStep(const OpenedSource& source) {
  const auto step = source.step();
  if (!step) return std::nullopt;
  return std::pair(static_cast<uint64_t>(step->epoch), static_cast<uint64_t>(step->step));
}

// Returns 32 hexadecimal digits over the strategies' layouts, the training step if file names have
// it, and all other options that change the outputs. The existing files do not count. So hosts with
// different files, each with those for its target ranks, do one plan together.
std::string PlanFingerprint(const OpenedSource& source, const ConversionSpec& given) {
  ConversionSpec spec = given;
  const TargetSpec& target = spec.target;
  const Selection& selection = spec.selection;
  const Selection::Unmatched unmatched = selection.unmatched.value_or(Selection::Unmatched::kCopy);
  Xxh3 digest;
  digest.Update("reshard plan 1\n");
  digest.Update(Delimited(target.prefix));
  const Container& container = TargetContainer(source, target);
  // Plans for .ckpt files keep the fingerprint of the versions that wrote no others.
  if (&container != &DefaultContainer()) {
    digest.Update(fmt::format("format={}\n", container.name));
  }
  if (target.states_crc) digest.Update("crc\n");
  if (target.encryption) {
    digest.Update(fmt::format("encryption {}\n", EncryptionModeName(*target.encryption)));
  }
  if (source.each_alone()) digest.Update("each file\n");
  if (!target.names.empty()) digest.Update(fmt::format("names {}\n", Delimited(target.names)));
  if (IsWholeFolder(target.format)) {
    digest.Update(
        fmt::format("folder={} {}\n", static_cast<int>(*target.format), MostFileBytes(target)));
  }
  const Renames& source_names = source.names().from_files.renames();
  for (const auto& [in_source, name] : source_names.names) {
    digest.Update(fmt::format("name {}{}\n", Delimited(in_source), Delimited(name)));
  }
  for (const auto& [in_source, name] : source_names.patterns) {
    digest.Update(fmt::format("name pattern {}{}\n", Delimited(in_source), Delimited(name)));
  }
  digest.Update(fmt::format("unmatched={}\n", static_cast<int>(unmatched)));
  AddPatterns("include", selection.include, digest);
  AddPatterns("exclude", selection.exclude, digest);
  for (const auto& [from, to] : selection.renames.names) {
    digest.Update(fmt::format("rename {}{}\n", Delimited(from), Delimited(to)));
  }
  for (const auto& [from, to] : selection.renames.patterns) {
    digest.Update(fmt::format("rename pattern {}{}\n", Delimited(from), Delimited(to)));
  }
  for (const Selection::CastRule& rule : selection.casts) {
    digest.Update(fmt::format("cast {}{}\n", Delimited(rule.pattern),
                              rule.dtype ? DTypeName(*rule.dtype) : "keep"));
  }
  const Strategy* source_strategy = source.rule().source();
  const Strategy* target_strategy = source.rule().target();
  if (source_strategy != nullptr) {
    digest.Update(fmt::format("source {}\n", StrategyDigest(*source_strategy)));
  }
  if (target_strategy != nullptr) {
    digest.Update(fmt::format("target {}\n", StrategyDigest(*target_strategy)));
  }
  for (const HolderGroups::List& list : source.rule().groups().lists()) {
    digest.Update(fmt::format("holders {}\n", list.ranks));
  }
  if (const auto step = source.step()) {
    digest.Update(fmt::format("step={}_{}\n", step->epoch, step->step));
  }
  // Wherever they lie.
  for (const ChosenFile& file : source.companions()) {
    digest.Update(
        fmt::format("companion {}{}\n", Delimited(file.relative_path), file.identity.size()));
  }
  // Options of later versions; the others are above.
  for (const Option& option : AllOptions()) {
    if (option.effect != Effect::kBytes || IsUsual(option, spec)) continue;
    digest.Update(
        fmt::format("option {}\n", OptionAsJson(option, *ValueIn(option, PartsOf(spec)))));
  }
  return digest.HexDigest();
}

// The chosen files, the index that names them, if there is one, and the companions.
std::vector<ChosenFile> AllFilesOf(const OpenedSource& source) {
  std::vector<ChosenFile> files = source.chosen();
  if (source.index()) files.push_back(*source.index());
  files.insert(files.end(), source.companions().begin(), source.companions().end());
  return files;
}

// Returns a line for each chosen file that tells whether it is still the same one on this host.
std::vector<std::string> IdentityLines(const OpenedSource& source) {
  std::vector<std::string> lines;
  for (const auto& [rank, path, id, identity] : AllFilesOf(source)) {
    // Not its device: that is another number when the file system is mounted anew.
    lines.push_back(fmt::format("{}inode={} size={} mtime={} ctime={}", Delimited(path),
                                identity.inode(), identity.size(), identity.mtime_ns(),
                                identity.ctime_ns()));
  }
  return lines;
}

// As IdentityLines, but equal on all hosts that share the file, which call its file system and the
// file by numbers of their own.
std::vector<std::string> SharedIdentityLines(const OpenedSource& source) {
  std::vector<std::string> lines;
  for (const auto& [rank, path, id, identity] : AllFilesOf(source)) {
    lines.push_back(
        fmt::format("{}size={} mtime={}", Delimited(path), identity.size(), identity.mtime_ns()));
  }
  return lines;
}

// Returns the stamp of each chosen file. One of several files that go by one path has none.
std::vector<SourceStamp> StampsOf(const OpenedSource& source) {
  std::map<std::string, SourceStamp> stamps;
  for (const auto& [rank, path, id, identity] : AllFilesOf(source)) {
    const SourceStamp stamp = {.path = path,
                               .size = identity.size(),
                               .mtime_ns = identity.mtime_ns(),
                               .inode = identity.inode()};
    const auto [known, is_new] = stamps.emplace(path, stamp);
    if (!is_new && known->second != stamp) known->second = {.path = path, .size = identity.size()};
  }
  std::vector<SourceStamp> all;
  all.reserve(stamps.size());
  for (auto& [path, stamp] : stamps) all.push_back(std::move(stamp));
  return all;
}

}  // namespace

std::string StrategyDigest(const Strategy& strategy) {
  Xxh3 digest;
  digest.Update(
      fmt::format("pipeline={} own_stage={}\n", strategy.is_pipeline(), strategy.own_stage()));
  std::map<const ParameterLayout*, std::string> known;  // equal ones are held once
  std::string line;
  for (const Strategy::Stage& stage : strategy.stages()) {
    digest.Update("stage\n");
    for (const auto [name, layout] : stage) {
      std::string& words = known[&layout];
      if (words.empty()) {
        words = fmt::format("{} {} {} {}\n", layout.device_matrix, layout.tensor_map,
                            layout.opt_weight_shard_step, layout.opt_weight_shard_size);
      }
      line.clear();
      AppendDelimited(line, name);
      line += words;
      digest.Update(line);
    }
  }
  return digest.HexDigest();
}

std::set<int64_t> SourceRanks(const WorkList& work) {
  std::set<int64_t> ranks;
  for (const PlanReport::SourceFile& file : work.sources) ranks.insert(file.rank);
  return ranks;
}

Result<JobSpec> MakeJobSpec(const OpenedSource& source, const WorkList& work,
                            const ConvertOptions& options) {
  const TargetSpec& target = options.target;
  std::vector<std::string> paths;
  paths.reserve(work.targets.size());
  for (const PlanReport::TargetFile& file : work.targets) paths.push_back(file.path);
  if (target.encryption_key) NoteKeyFile(target.encryption_key->file());
  RESHARD_RETURN_IF_ERROR(CheckOutputsOutside(target.folder, paths));
  RESHARD_RETURN_IF_ERROR(CheckOutsideOfPattern(source, options.source.path, target.folder));
  RESHARD_RETURN_IF_ERROR(CheckSourcesStay(source, work, target.folder));
  RESHARD_RETURN_IF_ERROR(CheckNothingRemovedIsRead(target.folder, options.prune));
  JobSpec spec;
  spec.target = target;
  spec.checks = options.checks;
  spec.output = static_cast<const OutputChoice&>(options);
  spec.fingerprint = PlanFingerprint(source, options);
  if (const auto stage = source.rule().stage_alone()) {
    spec.manifest_name = fmt::format("manifest_part{}.json", *stage);
  }
  if (target.encryption) {
    RESHARD_ASSIGN_OR_RETURN(spec.key_check, KeyCheck(*target.encryption_key));
  }
  for (const PlanReport::TargetFile& file : work.targets) {
    spec.files.push_back({.path = file.path, .size = file.size});
    spec.files.back().encryption = target.encryption;
    spec.files.back().key_check = spec.key_check;
  }
  const Strategy* source_strategy = source.rule().source();
  const Strategy* target_strategy = source.rule().target();
  if (source_strategy != nullptr) spec.source_strategy = StrategyDigest(*source_strategy);
  if (target_strategy != nullptr) spec.target_strategy = StrategyDigest(*target_strategy);
  const std::set<int64_t> read = SourceRanks(work);
  for (const ChosenFile& file : source.chosen()) {
    if (read.contains(file.rank))
      spec.sources.push_back({file.relative_path, file.identity.size()});
  }
  const bool copies = std::any_of(work.targets.begin(), work.targets.end(), [](const auto& file) {
    return file.kind == FileKind::kCompanion;
  });
  if (copies) {
    for (const ChosenFile& file : source.companions()) {
      spec.sources.push_back({file.relative_path, file.identity.size()});
    }
  }
  spec.source_identities = options.shard ? SharedIdentityLines(source) : IdentityLines(source);
  for (const std::string& name :
       {spec.manifest_name, ChecksumsName(spec.manifest_name), std::string(kOriginName)}) {
    RESHARD_RETURN_IF_ERROR(
        CheckReplacesNoInput(source, fmt::format("{}/{}", target.folder, name)));
  }
  spec.stamps = StampsOf(source);
  ConversionSpec stated = static_cast<const ConversionSpec&>(options);
  if (!source.each_alone()) stated.source = source.spec();
  spec.origin = EncodeOrigin(stated, {.plan = spec.fingerprint,
                                      .source_strategy = spec.source_strategy,
                                      .target_strategy = spec.target_strategy,
                                      .step = SourceStep(source)});
  spec.check_readers = [rules = SetInFolder{.folder = target.folder,
                                            .files = {},
                                            .gone = {},
                                            .has_own_names = HasOwnNames(target.names),
                                            .each_alone = source.each_alone()}](
                           const NamesToCome& names) { return CheckReaders(rules, names); };
  spec.stop = options.run.stop;
  return spec;
}

}  // namespace reshard
