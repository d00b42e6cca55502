#include "src/frontend/worker_share.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "src/base/number_text.h"

namespace reshard {
namespace {

Result<WorkerShare> Checked(uint64_t index, uint64_t count, const std::string& from) {
  const WorkerShare shard{index, count};
  if (IsWorkerShare(shard)) return shard;
  return InvalidArgumentError(
      fmt::format("{}: share {} of {}; shares count from 0 to n - 1, and there are at most {}",
                  from, index, count, kMaxWorkers));
}

// A variable that has to be a number, if it is there.
Result<std::optional<uint64_t>> NumberOf(const Environment& environment, const char* name) {
  const auto text = environment(name);
  if (!text) return std::optional<uint64_t>();
  const auto number = ParseNumber<uint64_t>(*text);
  if (number) return number;
  return InvalidArgumentError(
      fmt::format("`shard=auto`: {} is {}, not a number; give `shard=i/n`", name, *text));
}

using Found = Result<std::optional<WorkerShare>>;

// Returns the share from two variables, or no value if the first one is not set.
Found FromPair(const Environment& environment, const char* index_name, const char* count_name) {
  const auto index = NumberOf(environment, index_name);
  if (!index.ok()) return index.status();
  if (!*index) return std::optional<WorkerShare>();
  const auto count = NumberOf(environment, count_name);
  if (!count.ok()) return count.status();
  if (!*count) {
    return InvalidArgumentError(
        fmt::format("`shard=auto`: {} is set, but {} is not; set it to how many processes there "
                    "are, or give `shard=i/n`",
                    index_name, count_name));
  }
  const auto shard =
      Checked(**index, **count, fmt::format("`shard=auto`: {} and {}", index_name, count_name));
  if (!shard.ok()) return shard.status();
  return std::optional(*shard);
}

// Slurm's variables about the job and the process. Some may belong to another job, as a job that is
// submitted from within a job inherits them.
struct Slurm {
  struct Array {
    uint64_t id = 0;
    uint64_t least = 0;
    uint64_t most = 0;
    uint64_t count = 0;
    uint64_t step = 1;
  };
  std::optional<Array> array;
  std::optional<uint64_t> process;  // SLURM_PROCID
  std::optional<uint64_t> tasks;    // SLURM_NTASKS
  bool by_srun = false;
};

Result<Slurm> ReadSlurm(const Environment& environment) {
  constexpr const char* kNames[] = {"SLURM_ARRAY_TASK_ID",   "SLURM_ARRAY_TASK_MIN",
                                    "SLURM_ARRAY_TASK_MAX",  "SLURM_ARRAY_TASK_COUNT",
                                    "SLURM_ARRAY_TASK_STEP", "SLURM_PROCID",
                                    "SLURM_NTASKS",          "SLURM_STEP_NUM_TASKS"};
  constexpr size_t kOfArray = 4;  // older versions do not set the step
  std::optional<uint64_t> values[std::size(kNames)];
  for (size_t i = 0; i < std::size(kNames); ++i) {
    const auto number = NumberOf(environment, kNames[i]);
    if (!number.ok()) return number.status();
    values[i] = *number;
    if (i > 0 && i < kOfArray && values[0] && !values[i]) {
      return InvalidArgumentError(fmt::format(
          "`shard=auto`: {} is set, but {} is not; give `shard=i/n`", kNames[0], kNames[i]));
    }
  }
  Slurm slurm;
  if (values[0]) {
    slurm.array = {*values[0], *values[1], *values[2], *values[3], values[4].value_or(1)};
  }
  slurm.process = values[5];
  slurm.tasks = values[6];
  // A step's number of tasks is SLURM_NTASKS in it; another one is from the step in which a batch
  // script was submitted.
  slurm.by_srun = environment("SLURM_STEP_ID").has_value() &&
                  (!values[7] || !values[6] || *values[7] == *values[6]);
  return slurm;
}

// A job array: each of its tasks is a shard.
Result<WorkerShare> FromArray(const Slurm::Array& array, uint64_t tasks) {
  const auto [id, least, most, count, step] = array;
  const bool even = id >= least && id <= most && count > 0 && step > 0 &&
                    (most - least) / step == count - 1 && (most - least) % step == 0 &&
                    (id - least) % step == 0;
  if (!even) {
    return InvalidArgumentError(fmt::format(
        "`shard=auto`: task {} of the {} tasks {} to {} of a Slurm array; make an array "
        "without gaps, or with a step, or give `shard=i/n`",
        id, count, least, most));
  }
  if (tasks != 1) {
    return InvalidArgumentError(
        fmt::format("`shard=auto`: a Slurm array of {} jobs with {} tasks each; take either an "
                    "array or several tasks, or give `shard=i/n`",
                    count, tasks));
  }
  return Checked((id - least) / step, count, "`shard=auto`: SLURM_ARRAY_TASK_ID");
}

Found FromSlurm(const Environment& environment) {
  const Result<Slurm> slurm = ReadSlurm(environment);
  if (!slurm.ok()) return slurm.status();
  const uint64_t tasks = slurm->tasks.value_or(1);
  // An array of one task cannot be shared. It may be the job that submitted a job of several tasks.
  if (slurm->array && (slurm->array->count > 1 || tasks == 1)) {
    const auto shard = FromArray(*slurm->array, tasks);
    if (!shard.ok()) return shard.status();
    return std::optional(*shard);
  }
  if (!slurm->process) return std::optional<WorkerShare>();
  if (!slurm->by_srun && tasks > 1) {
    return InvalidArgumentError(
        fmt::format("`shard=auto`: the Slurm job has {} tasks, but srun did not start this "
                    "process; start it by srun, or give `shard=i/n`",
                    tasks));
  }
  if (!slurm->tasks) {
    return InvalidArgumentError(
        "`shard=auto`: this Slurm batch script has one process; start it by srun, or submit an "
        "array, or give `shard=i/n`");
  }
  return FromPair(environment, "SLURM_PROCID", "SLURM_NTASKS");
}

// Whether the pair of PMI is of another job: srun says JOB.STEP in PMI_JOBID, and a job that is
// submitted there inherits it.
bool IsOfAnotherJob(const Environment& environment) {
  const auto step = environment("PMI_JOBID");
  const auto job = environment("SLURM_JOB_ID");
  const size_t dot = step ? step->find('.') : std::string::npos;
  return job && dot != std::string::npos && ParseNumber<uint64_t>(step->substr(0, dot)) &&
         step->substr(0, dot) != *job;
}

// Whether a pair of MPI says no more than that this is a task of a Slurm array: one of srun, or of
// a size of 1.
Result<bool> IsOfArray(const Environment& environment, const WorkerShare& pair) {
  const Result<Slurm> slurm = ReadSlurm(environment);
  if (!slurm.ok()) return slurm.status();
  return slurm->array &&
         (pair.count == 1 || (slurm->process == pair.index && slurm->tasks == pair.count));
}

// Launchers of training. Another launcher may start them on each machine, but their variables
// count. Launchers that set the same pairs are asked last.
struct TrainingLauncher {
  const char* mark;
  const char* index;
  const char* count;
};
constexpr TrainingLauncher kTrainingLaunchers[] = {{"TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE"},
                                                   {"MS_ROLE", "RANK_ID", "RANK_SIZE"}};

}  // namespace

Result<WorkerShare> FindWorkerShare(const Environment& environment) {
  for (const auto& [mark, index, count] : kTrainingLaunchers) {
    if (!environment(mark)) continue;
    const Found pair = FromPair(environment, index, count);
    if (!pair.ok()) return pair.status();
    if (*pair) return **pair;
  }
  constexpr const char* kMpi[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                     {"PMI_RANK", "PMI_SIZE"}};
  // mpirun within a Slurm job sets both.
  for (const auto& [index, count] : kMpi) {
    const Found pair = FromPair(environment, index, count);
    if (!pair.ok()) return pair.status();
    if (!*pair || (index == std::string_view("PMI_RANK") && IsOfAnotherJob(environment))) continue;
    const Result<bool> of_array = IsOfArray(environment, **pair);
    if (!of_array.ok()) return of_array.status();
    if (!*of_array) return **pair;
  }
  const Found slurm = FromSlurm(environment);
  if (!slurm.ok()) return slurm.status();
  if (*slurm) return **slurm;
  const Found kubernetes = FromPair(environment, "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS");
  if (!kubernetes.ok()) return kubernetes.status();
  if (*kubernetes) return **kubernetes;
  for (const auto& [mark, index, count] : kTrainingLaunchers) {
    const Found pair = FromPair(environment, index, count);
    if (!pair.ok()) return pair.status();
    if (*pair) return **pair;
  }
  return InvalidArgumentError(
      "`shard=auto`: no launcher has set OMPI_COMM_WORLD_RANK (Open MPI), PMI_RANK (MPICH and its "
      "kin), SLURM_PROCID, SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX (Kubernetes), RANK (torchrun) "
      "or RANK_ID (msrun); start it by one, or give `shard=i/n`");
}

std::optional<std::string> ProcessEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::optional<std::string>() : value;
}

Status WithLauncherHint(const Status& failed, const std::optional<WorkerShare>& given,
                        const Environment& environment) {
  // An error about existing files names an option to replace them.
  const bool is_held = failed.code() == StatusCode::kAlreadyExists && failed.option().empty();
  if (!is_held || given) return failed;
  const Result<WorkerShare> share = FindWorkerShare(environment);
  if (!share.ok() || share->count < 2) return failed;
  return failed.WithMessage(fmt::format(
      "{} (this is process {} of {} of a launcher: with `shard=auto` they do the conversion "
      "together)",
      failed.message(), share->index, share->count));
}

}  // namespace reshard
