// The share of a conversion in the environment of each launcher.
#include "src/frontend/worker_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace reshard::worker_share_test {
namespace {

using testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

Result<WorkerShare> Find(const Variables& variables) {
  return FindWorkerShare([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(WorkerShareTest, FindsEachLauncher) {
  const struct {
    const char* name;
    Variables variables;
    WorkerShare shard;
  } rows[] = {
      {"Open MPI", {{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "8"}}, {2, 8}},
      {"MPICH", {{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}}, {0, 3}},
      {"srun", {{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "6"}, {"SLURM_STEP_ID", "0"}}, {5, 6}},
      {"a Slurm job of one task", {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}, {0, 1}},
      {"Open MPI in a Slurm job",
       {{"SLURM_PROCID", "0"},
        {"SLURM_NTASKS", "8"},
        {"OMPI_COMM_WORLD_RANK", "7"},
        {"OMPI_COMM_WORLD_SIZE", "8"}},
       {7, 8}},
      {"a Slurm array from 1",
       {{"SLURM_ARRAY_TASK_ID", "4"},
        {"SLURM_ARRAY_TASK_MIN", "1"},
        {"SLURM_ARRAY_TASK_MAX", "4"},
        {"SLURM_ARRAY_TASK_COUNT", "4"},
        {"SLURM_PROCID", "0"},
        {"SLURM_NTASKS", "1"}},
       {3, 4}},
      {"Kubernetes", {{"JOB_COMPLETION_INDEX", "1"}, {"JOB_COMPLETIONS", "2"}}, {1, 2}},
      {"accelerate, deepspeed", {{"RANK", "1"}, {"WORLD_SIZE", "4"}}, {1, 4}},
      {"HCCL", {{"RANK_ID", "3"}, {"RANK_SIZE", "4"}}, {3, 4}},
      {"srun before what else sets RANK",
       {{"SLURM_PROCID", "5"},
        {"SLURM_NTASKS", "6"},
        {"SLURM_STEP_ID", "0"},
        {"RANK", "1"},
        {"WORLD_SIZE", "4"}},
       {5, 6}},
      {"torchrun, one on each node, by srun",
       {{"SLURM_PROCID", "1"},
        {"SLURM_NTASKS", "2"},
        {"SLURM_STEP_ID", "0"},
        {"TORCHELASTIC_RUN_ID", "none"},
        {"RANK", "3"},
        {"WORLD_SIZE", "4"}},
       {3, 4}},
      {"msrun by mpirun",
       {{"OMPI_COMM_WORLD_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "2"},
        {"MS_ROLE", "MS_WORKER"},
        {"RANK_ID", "2"},
        {"RANK_SIZE", "4"}},
       {2, 4}},
  };
  for (const auto& row : rows) {
    const auto shard = Find(row.variables);
    ASSERT_TRUE(shard.ok()) << row.name << ": " << shard.status().message();
    EXPECT_EQ(*shard, row.shard) << row.name;
  }
}

// The variables of a task of a Slurm array, and `more`.
Variables OfArray(const char* id, const char* least, const char* most, const char* count,
                  const Variables& more) {
  Variables all = {{"SLURM_ARRAY_TASK_ID", id},
                   {"SLURM_ARRAY_TASK_MIN", least},
                   {"SLURM_ARRAY_TASK_MAX", most},
                   {"SLURM_ARRAY_TASK_COUNT", count}};
  all.insert(more.begin(), more.end());
  return all;
}

// As seen with Slurm 22.05.
TEST(WorkerShareTest, TellsSlurmsVariablesApart) {
  const Variables one_task = {{"SLURM_PROCID", "0"},
                              {"SLURM_NTASKS", "1"},
                              {"SLURM_STEP_ID", "0"},
                              {"SLURM_STEP_NUM_TASKS", "1"}};
  const auto with = [](Variables all, const Variables& more) {
    all.insert(more.begin(), more.end());
    return all;
  };
  const struct {
    const char* name;
    Variables variables;
    WorkerShare shard;
  } rows[] = {
      {"srun --mpi=pmi2 in an array",
       OfArray("2", "0", "3", "4", with(one_task, {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}})),
       {2, 4}},
      {"mpirun -n 1 in an array",
       OfArray("2", "0", "3", "4", {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}),
       {2, 4}},
      {"mpirun -n 2 in a task of an array",
       OfArray("2", "0", "3", "4",
               with(one_task, {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}})),
       {1, 2}},
      {"an array with a step",
       OfArray("4", "0", "6", "4", {{"SLURM_ARRAY_TASK_STEP", "2"}}),
       {2, 4}},
      {"an array from 5 with a step",
       OfArray("11", "5", "11", "3", {{"SLURM_ARRAY_TASK_STEP", "3"}}),
       {2, 3}},
      {"srun of a job that a task of an array of one submitted",
       OfArray("7", "7", "7", "1",
               {{"SLURM_PROCID", "1"},
                {"SLURM_NTASKS", "2"},
                {"SLURM_STEP_ID", "0"},
                {"SLURM_STEP_NUM_TASKS", "2"}}),
       {1, 2}},
      {"srun --mpi=none of a job that was submitted from a step with PMI",
       {{"SLURM_JOB_ID", "3"},
        {"PMI_JOBID", "2.0"},
        {"PMI_RANK", "0"},
        {"PMI_SIZE", "1"},
        {"SLURM_PROCID", "1"},
        {"SLURM_NTASKS", "2"},
        {"SLURM_STEP_ID", "0"},
        {"SLURM_STEP_NUM_TASKS", "2"}},
       {1, 2}},
      {"srun --mpi=pmi2",
       {{"SLURM_JOB_ID", "3"}, {"PMI_JOBID", "3.0"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}},
       {1, 2}},
  };
  for (const auto& row : rows) {
    const auto shard = Find(row.variables);
    ASSERT_TRUE(shard.ok()) << row.name << ": " << shard.status().message();
    EXPECT_EQ(*shard, row.shard) << row.name;
  }
}

TEST(WorkerShareTest, SaysWhatIsWrongWithTheEnvironment) {
  const struct {
    Variables variables;
    const char* message;
  } rows[] = {
      {{}, "no launcher has set OMPI_COMM_WORLD_RANK (Open MPI), PMI_RANK"},
      {{{"JOB_COMPLETION_INDEX", "1"}}, "JOB_COMPLETION_INDEX is set, but JOB_COMPLETIONS is not"},
      {{{"RANK", "1"}}, "RANK is set, but WORLD_SIZE is not"},
      {{{"RANK_ID", "4"}, {"RANK_SIZE", "4"}}, "RANK_ID and RANK_SIZE: share 4 of 4"},
      {{{"PMI_RANK", "x"}}, "PMI_RANK is x, not a number"},
      {{{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}, "PMI_RANK and PMI_SIZE: share 2 of 2"},
      {{{"SLURM_ARRAY_TASK_ID", "1"}}, "but SLURM_ARRAY_TASK_MIN is not"},
      {{{"SLURM_ARRAY_TASK_ID", "4"},
        {"SLURM_ARRAY_TASK_MIN", "0"},
        {"SLURM_ARRAY_TASK_MAX", "6"},
        {"SLURM_ARRAY_TASK_COUNT", "4"}},
       "make an array without gaps"},
      {{{"SLURM_ARRAY_TASK_ID", "0"},
        {"SLURM_ARRAY_TASK_MIN", "0"},
        {"SLURM_ARRAY_TASK_MAX", "1"},
        {"SLURM_ARRAY_TASK_COUNT", "2"},
        {"SLURM_NTASKS", "4"}},
       "a Slurm array of 2 jobs with 4 tasks each"},
      {OfArray("5", "0", "8", "5", {{"SLURM_ARRAY_TASK_STEP", "2"}}),  // --array=0-4:2,5,8
       "make an array without gaps"},
      {OfArray("7", "5", "11", "3", {{"SLURM_ARRAY_TASK_STEP", "1"}}),
       "make an array without gaps"},
      {OfArray("0", "0", "0", "0", {}), "make an array without gaps"},
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}},
       "the Slurm job has 2 tasks, but srun did not start this process"},
      // Submitted from within a step of one task.
      {{{"SLURM_PROCID", "0"},
        {"SLURM_NTASKS", "2"},
        {"SLURM_STEP_ID", "0"},
        {"SLURM_STEP_NUM_TASKS", "1"}},
       "start it by srun"},
      {{{"SLURM_PROCID", "0"}},
       "this Slurm batch script has one process; start it by srun, or submit an array"},
  };
  for (const auto& row : rows) {
    const auto shard = Find(row.variables);
    EXPECT_EQ(shard.status().code(), StatusCode::kInvalidArgument) << row.message;
    EXPECT_THAT(shard.status().message(), HasSubstr(row.message));
  }
}

TEST(WorkerShareTest, HintsAtShares) {
  const Variables of_two = {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
  const auto hint = [](const Status& failed, const Variables& variables,
                       const std::optional<WorkerShare>& given = {}) {
    const Status status =
        WithLauncherHint(failed, given, [&](const char* name) -> std::optional<std::string> {
          const auto found = variables.find(name);
          if (found == variables.end()) return std::nullopt;
          return found->second;
        });
    EXPECT_EQ(status.code(), failed.code());
    EXPECT_THAT(status.message(), testing::StartsWith(failed.message()));
    return status.message() != failed.message();
  };
  const Status held = AlreadyExistsError("another reshard run is writing to here");
  EXPECT_TRUE(hint(held, of_two));
  EXPECT_FALSE(hint(held, of_two, WorkerShare{0, 2}));
  EXPECT_FALSE(hint(AlreadyExistsError("files are there; pass `force`"), of_two));
  EXPECT_FALSE(hint(IoError("disk"), of_two));
  // Processes that no launcher has started as one of several.
  const Variables alone[] = {
      {},
      {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}},
      {{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}},
      {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}},
      {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_STEP_ID", "0"}},
      {{"OMPI_COMM_WORLD_RANK", "1"}},
  };
  for (const Variables& variables : alone) EXPECT_FALSE(hint(held, variables));
}

}  // namespace
}  // namespace reshard::worker_share_test
