#include "src/convert/convert_options_check.h"

#include <fmt/format.h>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/counted_work.h"
#include "src/convert/opened_source.h"
#include "src/mindspore/rank_pattern.h"
#include "src/os/paths.h"
#include "src/plan/parameter_choice.h"

namespace reshard {

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
        "neither --src-strategy nor --dst-strategy is given; name at least one: without a source "
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
        "--resume=verify compares digests, --no-checksum leaves them out; choose one");
  }
  if (options.resume == Resume::kVerify && options.shard) {
    return InvalidArgumentError(
        "--resume=verify is for a run alone; a shard keeps what it has finished, and what several "
        "shards have written is read back before it is published");
  }
  RESHARD_RETURN_IF_ERROR(CheckJobs(options.jobs));
  RESHARD_RETURN_IF_ERROR(CheckRenames(options.renames));
  if (options.source.empty() || IsRankPattern(options.source)) return {};
  return CheckOutside(options.target, options.source);
}

UsedPaths PathsOf(const ConvertOptions& options) {
  UsedPaths used{.checkpoints = {options.source},
                 .files = {options.source_strategy, options.target_strategy, options.reference},
                 .targets = {options.target}};
  for (const auto& [rank, path] : options.source_files) used.checkpoints.push_back(path);
  used.files.insert(used.files.end(), options.group_info.begin(), options.group_info.end());
  return used;
}

}  // namespace reshard
