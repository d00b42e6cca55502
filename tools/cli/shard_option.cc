#include "tools/cli/shard_option.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <system_error>

namespace reshard {
namespace {

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Result<WorkShard> Checked(uint64_t index, uint64_t count, const std::string& from) {
  const WorkShard shard{index, count};
  if (IsShard(shard)) return shard;
  return InvalidArgumentError(
      fmt::format("{}: shard {} of {}; shards count from 0 to n - 1, and there are at most {}",
                  from, index, count, kMaxShards));
}

// A variable that has to be a number, if it is there.
Result<std::optional<uint64_t>> NumberOf(const Environment& environment, const char* name) {
  const auto text = environment(name);
  if (!text) return std::optional<uint64_t>();
  const auto number = ParseNumber(*text);
  if (number) return number;
  return InvalidArgumentError(
      fmt::format("--shard auto: {} is {}, no number; give --shard i/n", name, *text));
}

// Returns the shard that two variables tell, or nothing where the first one is not set.
Result<std::optional<WorkShard>> FromPair(const Environment& environment, const char* index_name,
                                          const char* count_name) {
  const auto index = NumberOf(environment, index_name);
  if (!index.ok()) return index.status();
  if (!*index) return std::optional<WorkShard>();
  const auto count = NumberOf(environment, count_name);
  if (!count.ok()) return count.status();
  if (!*count) {
    return InvalidArgumentError(
        fmt::format("--shard auto: {} is set, but {} is not; set it to how many processes there "
                    "are, or give --shard i/n",
                    index_name, count_name));
  }
  const auto shard =
      Checked(**index, **count, fmt::format("--shard auto: {} and {}", index_name, count_name));
  if (!shard.ok()) return shard.status();
  return std::optional(*shard);
}

// A job array: each of its tasks is a shard. Nothing where the process is in none.
Result<std::optional<WorkShard>> FromSlurmArray(const Environment& environment) {
  uint64_t values[4] = {};
  const char* const names[] = {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN",
                               "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_COUNT"};
  for (int i = 0; i < 4; ++i) {
    const auto number = NumberOf(environment, names[i]);
    if (!number.ok()) return number.status();
    if (!*number && i == 0) return std::optional<WorkShard>();
    if (!*number) {
      return InvalidArgumentError(fmt::format(
          "--shard auto: {} is set, but {} is not; give --shard i/n", names[0], names[i]));
    }
    values[i] = **number;
  }
  const auto [id, least, most, count] = values;
  if (id < least || id > most || most - least != count - 1) {
    return InvalidArgumentError(fmt::format(
        "--shard auto: task {} of the {} tasks {} to {} of a Slurm array; make an array "
        "without gaps, or give --shard i/n",
        id, count, least, most));
  }
  const auto tasks = NumberOf(environment, "SLURM_NTASKS");
  if (!tasks.ok()) return tasks.status();
  if (tasks->value_or(1) != 1) {
    return InvalidArgumentError(
        fmt::format("--shard auto: a Slurm array of {} jobs with {} tasks each; take either an "
                    "array or several tasks, or give --shard i/n",
                    count, **tasks));
  }
  const auto shard = Checked(id - least, count, "--shard auto: SLURM_ARRAY_TASK_ID");
  if (!shard.ok()) return shard.status();
  return std::optional(*shard);
}

Result<WorkShard> FromEnvironment(const Environment& environment) {
  // mpirun within a Slurm job sets both; a job array's tasks are each task 0 of a job of its own.
  for (const auto& find : {
           std::function([&] {
             return FromPair(environment, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
           }),
           std::function([&] { return FromPair(environment, "PMI_RANK", "PMI_SIZE"); }),
           std::function([&] { return FromSlurmArray(environment); }),
           std::function([&] { return FromPair(environment, "SLURM_PROCID", "SLURM_NTASKS"); }),
           std::function(
               [&] { return FromPair(environment, "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS"); }),
       }) {
    const Result<std::optional<WorkShard>> shard = find();
    if (!shard.ok()) return shard.status();
    if (*shard) return **shard;
  }
  return InvalidArgumentError(
      "--shard auto: no launcher has set OMPI_COMM_WORLD_RANK (Open MPI), PMI_RANK (MPICH and its "
      "kin), SLURM_PROCID, SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX (Kubernetes); start it by "
      "one, or give --shard i/n");
}

}  // namespace

Result<WorkShard> ParseShard(const std::string& text, const Environment& environment) {
  if (text == "auto") return FromEnvironment(environment);
  const std::string_view whole = text;
  const size_t slash = whole.find('/');
  const auto index = ParseNumber(whole.substr(0, slash));
  const auto count =
      slash == std::string::npos ? std::nullopt : ParseNumber(whole.substr(slash + 1));
  if (index && count) return Checked(*index, *count, "--shard " + text);
  return InvalidArgumentError(
      fmt::format("--shard {}: expected i/n, as in 0/4 for the first of four, or auto", text));
}

}  // namespace reshard
