#include "src/convert/conversion_spec.h"

#include <fmt/format.h>

#include <set>

#include "format/rename_map/rename_map_codec.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/byte_source.h"
#include "src/io/shared_work.h"
#include "src/mindspore/rank_pattern.h"
#include "src/os/paths.h"
#include "src/plan/parameter_choice.h"

namespace reshard {
namespace {

SourceAccess AccessOf(SourceIo io) {
  switch (io) {
    case SourceIo::kMap:
      return SourceAccess::kMap;
    case SourceIo::kPread:
      return SourceAccess::kPread;
    case SourceIo::kAuto:
      break;
  }
  return SourceAccess::kAuto;
}

WriteMode WriteModeOf(TargetIo io) {
  switch (io) {
    case TargetIo::kDirect:
      return WriteMode::kDirect;
    case TargetIo::kBuffered:
      return WriteMode::kBuffered;
    case TargetIo::kAuto:
      break;
  }
  return WriteMode::kAuto;
}

}  // namespace

ConversionSpec SpecOf(const ConvertOptions& options) {
  const std::set<int64_t> ranks(options.ranks.begin(), options.ranks.end());
  ConversionSpec spec;
  spec.source = {options.source, options.source_strategy, options.target_strategy,
                 options.suffix, options.source_files,    options.group_info,
                 options.ranks};
  spec.access = AccessOf(options.io.source);
  spec.target = {.folder = options.target,
                 .prefix = options.prefix,
                 .format = options.format,
                 .write_mode = WriteModeOf(options.io.target),
                 .checksum = options.checksum,
                 .force = options.force,
                 .resume = options.resume};
  spec.selection = {.ranks = {ranks.begin(), ranks.end()},
                    .include = options.include,
                    .exclude = options.exclude,
                    .renames = options.renames,
                    .unmatched = options.unmatched.value_or(UnmatchedPolicy::kCopy),
                    .unmatched_asked_for = options.unmatched.has_value()};
  spec.checks = {.crc = options.checksum,
                 .replicas = options.check_replicas,
                 .parameters = options.expected_parameters,
                 .reference = options.reference};
  spec.run = {.jobs = options.jobs,
              .stop = options.stop,
              .progress = options.progress,
              .worker = options.shard,
              .waiting = options.waiting};
  return spec;
}

Status CheckOutside(const std::string& target, const std::string& source) {
  RESHARD_ASSIGN_OR_RETURN(const bool inside, IsInside(target, source));
  if (!inside) return {};
  return InvalidArgumentError(
      fmt::format("the target {} is, or lies in, the source {}; choose a folder outside of it",
                  Escape(target), Escape(source)));
}

Status CheckConvertOptions(const ConvertOptions& options) {
  RESHARD_RETURN_IF_ERROR(CheckSourceNamed(options.source, options.source_files, options.target));
  if (options.source_strategy.empty() && options.target_strategy.empty()) {
    return InvalidArgumentError(
        "neither `source_strategy` nor `target_strategy` is given; name at least one: without a "
        "source "
        "strategy "
        "the source holds full tensors, without a target strategy full tensors are written");
  }
  constexpr size_t kLongestPrefix = 200;  // file names have at most 255 bytes
  if (options.prefix.find('/') != std::string::npos ||
      options.prefix.find("..") != std::string::npos || options.prefix != Escape(options.prefix) ||
      options.prefix.size() > kLongestPrefix) {
    return InvalidArgumentError(fmt::format(
        "the prefix {} becomes part of file names: no slash, backslash or quote, no \"..\", no "
        "control characters, at most {} bytes",
        Quote(options.prefix), kLongestPrefix));
  }
  if (options.resume == Resume::kVerify && !options.checksum) {
    return InvalidArgumentError(
        "`resume=verify` compares digests, `checksum=false` leaves them out; choose one");
  }
  if (options.resume == Resume::kVerify && options.shard) {
    return InvalidArgumentError(
        "`resume=verify` is for a run alone; a shard keeps what it has finished, and what several "
        "shards have written is read back before it is published");
  }
  RESHARD_RETURN_IF_ERROR(CheckJobs(options.jobs));
  RESHARD_RETURN_IF_ERROR(CheckRenames(options.renames));
  if (options.source.empty() || IsRankPattern(options.source)) return {};
  return CheckOutside(options.target, options.source);
}

UsedPaths v0_1::PathsOf(const ConvertOptions& options) {
  UsedPaths used{.checkpoints = {options.source},
                 .files = {options.source_strategy, options.target_strategy, options.reference},
                 .targets = {options.target}};
  for (const auto& [rank, path] : options.source_files) used.checkpoints.push_back(path);
  used.files.insert(used.files.end(), options.group_info.begin(), options.group_info.end());
  return used;
}

Result<std::map<std::string, std::string>> v0_1::ReadRenames(const std::string& path) {
  using Renames = std::map<std::string, std::string>;
  return CatchOutOfMemory([&]() -> Result<Renames> {
    RESHARD_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kMaxRenameMapBytes));
    RESHARD_ASSIGN_OR_RETURN(Renames renames, ParseRenameMap(path, bytes));
    const Status status = CheckRenames(renames);
    if (!status.ok()) {
      return Status(status.code(), fmt::format("{}: {}", Escape(path), status.message()));
    }
    return renames;
  });
}

}  // namespace reshard
