#include "src/convert/option_checks.h"

#include <fmt/format.h>

#include <cerrno>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/rename_map/name_rules.h"
#include "format/rename_map/rename_map_codec.h"
#include "format/rename_map/renaming.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/opened_source.h"
#include "src/convert/rounded_count.h"
#include "src/full/full_folder.h"
#include "src/io/shared_work.h"
#include "src/io/storage.h"
#include "src/mindspore/mindspore_target.h"
#include "src/mindspore/rank_pattern.h"
#include "src/mindspore/resume_files.h"
#include "src/mindspore/run_folder.h"
#include "src/os/path_location.h"
#include "src/os/system_call.h"
#include "src/plan/parameter_choice.h"
#include "src/sharded/sharded_folder.h"

namespace reshard {
namespace {

// For errors that come before the source is opened: a missing source is reported first.
Status CheckSourceExists(const SourceSpec& source) {
  if (source.path.empty() || IsRankPattern(source.path)) return {};
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, Storage::Of(source.path).KindOf(source.path));
  return kind == PathKind::kMissing ? ErrnoStatus(ENOENT, "open", source.path) : Status();
}

Status CheckResume(OutputChoice::Resume resume, bool checksum) {
  if (resume != OutputChoice::Resume::kVerify || checksum) return {};
  return InvalidArgumentError(
      "`resume=verify` compares digests, `checksum=false` leaves them out; choose one");
}

}  // namespace

Status CheckFormat(const TargetSpec& target, const Selection& selection) {
  if (!target.names.empty() && !HasMindFormersNames(target)) {
    RESHARD_RETURN_IF_ERROR(CheckNamePattern(target.names));
  }
  if (target.part_size == 0 || target.shard_size == 0) {
    return InvalidArgumentError("`part_size` and `shard_size` have to be more than 0");
  }
  if (target.removes_redundancy && target.strategy.empty() && !HasCluster(target)) {
    return InvalidArgumentError(
        "`removes_redundancy` needs ranks that hold the same: give `target.strategy`");
  }
  if (!IsWholeFolder(target.format)) return {};
  const auto no = [](std::string_view what) {
    return InvalidArgumentError(fmt::format(
        "{} is for files of ranks, and a folder of full tensors has none; leave it out", what));
  };
  if (!target.strategy.empty()) return no("`target.strategy`");
  if (HasCluster(target)) return no("`tensor_parallel`, or another size of a cluster,");
  if (!selection.ranks.empty()) return no("`ranks`");
  if (!target.names.empty()) return no("`names`");
  return {};
}

namespace {

Status CheckEncryption(const TargetSpec& target, IoChoice::Target io) {
  if (target.encryption && HasMindFormersNames(target)) {
    return InvalidArgumentError(
        "`encryption` would encrypt the meta.json of each rank, which `names=mindformers` writes; "
        "give a pattern of names instead");
  }
  if (!target.encryption != !target.encryption_key) {
    return InvalidArgumentError(
        "`encryption` and `encryption_key` belong together: give both or leave both out");
  }
  if (!target.encryption) return {};
  if (target.format && *target.format != TargetFormat::kCkpt) {
    return InvalidArgumentError("`encryption` is for .ckpt files; safetensors files have none");
  }
  if (target.companions) {
    return InvalidArgumentError(
        "`companions` and `encryption` exclude each other: the copies would be encrypted, too");
  }
  if (target.states_crc) {
    return InvalidArgumentError(
        "`crc` and `encryption` exclude each other: MindSpore loads no file that has both");
  }
  if (io == IoChoice::Target::kDirect) {
    return InvalidArgumentError(
        "`io.target=direct` and `encryption` exclude each other: encrypted blocks begin anywhere");
  }
  return CheckKey(*target.encryption_key, *target.encryption);
}

// The number is found with the digests.
Status CheckCrcChoice(bool states_crc, bool checksum) {
  if (checksum || !states_crc) return {};
  return InvalidArgumentError(
      "`crc` and `checksum=false` exclude each other: the CRC of a file is computed with its "
      "digests; leave one out");
}

}  // namespace

Status CheckOutside(const std::string& target, const std::string& source) {
  RESHARD_RETURN_IF_ERROR(Storage::Of(source).Stat(source).status());
  RESHARD_ASSIGN_OR_RETURN(const PathLocation inner, Storage::Of(target).Locate(target));
  RESHARD_ASSIGN_OR_RETURN(const PathLocation outer, Storage::Of(source).Locate(source));
  if (!inner.From(outer)) return {};
  return InvalidArgumentError(
      fmt::format("the target {} is, or lies in, the source {}; choose a folder outside the source",
                  Escape(target), Escape(source)));
}

Result<bool> LacksStrategies(const SourceSpec& source, const TargetSpec& target) {
  if (!source.strategy.empty() || !target.strategy.empty() || HasCluster(target)) return false;
  if (IsWholeFolder(target.format)) return false;
  if (!target.format || source.path.empty() || IsRankPattern(source.path)) return true;
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, Storage::Of(source.path).KindOf(source.path));
  if (kind != PathKind::kDirectory) return true;
  RESHARD_ASSIGN_OR_RETURN(const std::optional<ShardedFolder> sharded,
                           FindShardedFolder(source.path, source.format));
  if (sharded) return false;
  RESHARD_ASSIGN_OR_RETURN(const std::optional<FullFolder> folder, FindFullFolder(source.path));
  return !folder.has_value();
}

namespace {

// A cluster takes the place of a strategy, and its own strategy is written.
Status CheckClusterAlone(const TargetSpec& target) {
  if (!HasCluster(target)) return {};
  if (!target.strategy.empty()) {
    return InvalidArgumentError(
        "`target.strategy` takes the place of `tensor_parallel` and the like; choose one");
  }
  if (target.encryption) {
    return InvalidArgumentError(
        "`encryption` would encrypt the strategy of the cluster; make that with `MakeStrategy`");
  }
  return {};
}

}  // namespace

Status CheckSpec(const ConversionSpec& spec) {
  RESHARD_RETURN_IF_ERROR(CheckFormat(spec.target, spec.selection));
  const SourceSpec source = InRunFolder(spec.source);
  RESHARD_ASSIGN_OR_RETURN(const bool lacks_strategies, LacksStrategies(source, spec.target));
  RESHARD_RETURN_IF_ERROR(CheckClusterAlone(spec.target));
  if (lacks_strategies) {
    RESHARD_RETURN_IF_ERROR(CheckSourceExists(spec.source));
    return InvalidArgumentError(
        "no strategy is given. If the source is sharded, give `source.strategy`. To write shards, "
        "give `target.strategy`. `Recode` writes files as they are in another format" +
        HintOfStrategyBeside(source));
  }
  const std::string& prefix = spec.target.prefix;
  constexpr size_t kLongestPrefix = 200;  // file names have at most 255 bytes
  if (prefix.find('/') != std::string::npos || prefix.find("..") != std::string::npos ||
      IsUnfitForNames(prefix) || prefix.size() > kLongestPrefix) {
    return InvalidArgumentError(fmt::format(
        "the prefix {} becomes part of file names: no slash, backslash or quote, no \"..\", no "
        "control characters, at most {} bytes",
        Quote(prefix), kLongestPrefix));
  }
  RESHARD_RETURN_IF_ERROR(CheckRenames(spec.selection.renames));
  return CheckCasts(spec.selection.casts);
}

Status CheckConvertOptions(const ConvertOptions& options) {
  RESHARD_RETURN_IF_ERROR(
      CheckSourceNamed(options.source.path, options.source.files, options.target.folder));
  RESHARD_RETURN_IF_ERROR(CheckSpec(options));
  if (options.prune && !options.selection.ranks.empty()) {
    return InvalidArgumentError(
        "`prune` needs a whole set, and `ranks` writes only a part; choose one");
  }
  RESHARD_RETURN_IF_ERROR(ExpectedParameters(options.checks).status());
  RESHARD_RETURN_IF_ERROR(CheckResume(options.resume, options.checks.checksum));
  RESHARD_RETURN_IF_ERROR(CheckCrcChoice(options.target.states_crc, options.checks.checksum));
  RESHARD_RETURN_IF_ERROR(CheckEncryption(options.target, options.io.target));
  if (options.resume == OutputChoice::Resume::kVerify && options.shard) {
    return InvalidArgumentError(
        "`resume=verify` is for a run without shares: a share keeps its finished files, and all "
        "files are read back before publication");
  }
  RESHARD_RETURN_IF_ERROR(CheckJobs(options.run.jobs));
  if (options.source.path.empty() || IsRankPattern(options.source.path)) return {};
  return CheckOutside(options.target.folder, InRunFolder(options.source).path);
}

OptionParts PartsOf(ConvertOptions& options) {
  OptionParts parts = PartsOf(static_cast<ConversionSpec&>(options));
  parts.checks = &options.checks;
  parts.output = &options;
  parts.force = &options.force;
  parts.memory_limit = &options.memory_limit;
  parts.io = &options.io;
  parts.shard = &options.shard;
  parts.run = &options.run;
  return parts;
}

Status CheckTakes(const ConvertOptions& given, Call call, std::string_view name) {
  ConvertOptions options = given;
  // How a call runs is everybody's, whether the command line says so or not.
  const auto is_of_run = [](const Option& option) {
    return option.type == OptionType::kSize || option.type == OptionType::kIo ||
           option.type == OptionType::kSeconds;
  };
  for (const Option& option : AllOptions()) {
    if ((option.calls & kConvertCall) == 0 || is_of_run(option)) continue;
    if (FindOptionNamed(option.name, call) != nullptr || IsUsual(option, options)) continue;
    return InvalidArgumentError(fmt::format("`{}", option.name) +
                                fmt::format("` is no option of {}; leave it out", name));
  }
  return {};
}

Status CheckRecodeOptions(const RecodeOptions& options) {
  RESHARD_RETURN_IF_ERROR(CheckTakes(options, kRecodeCall, "Recode"));
  const std::optional<TargetFormat>& format = options.target.format;
  RESHARD_RETURN_IF_ERROR(CheckSourceNamed(options.source.path, {}, options.target.folder));
  if (IsWholeFolder(format) || options.selection.unmatched == Selection::Unmatched::kDrop) {
    return InvalidArgumentError(
        "without strategies, files are rewritten whole, as .ckpt or safetensors; use `Convert` to "
        "drop tensors or to make a folder of full tensors");
  }
  if (options.decrypt && options.target.encryption) {
    return InvalidArgumentError("`decrypt` and `encryption` exclude each other; choose one");
  }
  if (options.decrypt && options.source.key == nullptr) {
    return InvalidArgumentError("`decrypt` needs the key of the source files: give `key`");
  }
  RESHARD_RETURN_IF_ERROR(CheckResume(options.resume, options.checks.checksum));
  RESHARD_RETURN_IF_ERROR(CheckCrcChoice(options.target.states_crc, options.checks.checksum));
  RESHARD_RETURN_IF_ERROR(CheckEncryption(options.target, options.io.target));
  RESHARD_RETURN_IF_ERROR(CheckJobs(options.run.jobs));
  return CheckRenames(options.selection.renames);
}

inline namespace v0_1 {

Result<Renames> ReadRenames(const std::string& path) {
  return CatchOutOfMemory([&]() -> Result<Renames> {
    RESHARD_ASSIGN_OR_RETURN(const std::string bytes,
                             Storage::Of(path).ReadWhole(path, kMaxRenameMapBytes));
    RESHARD_ASSIGN_OR_RETURN(Renames renames, ParseRenameMap(path, bytes));
    const Status status = CheckRenames(renames);
    if (!status.ok()) {
      return status.WithMessage(fmt::format("{}: {}", Escape(path), status.message()));
    }
    return renames;
  });
}

std::vector<std::string> NameRules() { return AllNameRules(); }

Result<std::string> NameRulesText(const std::string& rules) {
  const Renames* const found = FindNameRules(rules);
  if (found == nullptr) return UnknownNameRules(rules);
  return RenameMapText(*found);
}

}  // namespace v0_1

}  // namespace reshard
