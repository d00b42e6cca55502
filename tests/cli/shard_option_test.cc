// What --shard means, by itself and in the environment of each launcher.
#include "tools/cli/shard_option.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace reshard {
namespace {

using testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

Result<WorkShard> Parse(const std::string& text, const Variables& variables = {}) {
  return ParseShard(text, [&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(ShardOption, TakesNumbersFromZero) {
  EXPECT_EQ(*Parse("0/1"), (WorkShard{0, 1}));
  EXPECT_EQ(*Parse("3/4", {{"OMPI_COMM_WORLD_RANK", "1"}}), (WorkShard{3, 4}));
  EXPECT_EQ(*Parse("65535/65536"), (WorkShard{65535, 65536}));
}

TEST(ShardOption, RefusesAnythingElse) {
  for (const char* text : {"", "1", "/", "1/", "/2", "-1/2", "0/-2", "1/2/3", "0x1/2", "1 /2",
                           "a/b", "AUTO", "18446744073709551616/2"}) {
    const auto shard = Parse(text);
    EXPECT_EQ(shard.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(shard.status().message(), HasSubstr("expected i/n, as in 0/4")) << text;
  }
  for (const char* text : {"4/4", "0/0", "0/65537"}) {
    EXPECT_THAT(Parse(text).status().message(), HasSubstr("count from 0 to n - 1")) << text;
  }
}

TEST(ShardOption, FindsEachLauncher) {
  const struct {
    const char* name;
    Variables variables;
    WorkShard shard;
  } rows[] = {
      {"Open MPI", {{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "8"}}, {2, 8}},
      {"MPICH", {{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}}, {0, 3}},
      {"srun", {{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "6"}}, {5, 6}},
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
  };
  for (const auto& row : rows) {
    const auto shard = Parse("auto", row.variables);
    ASSERT_TRUE(shard.ok()) << row.name << ": " << shard.status().message();
    EXPECT_EQ(*shard, row.shard) << row.name;
  }
}

TEST(ShardOption, SaysWhatIsWrongWithTheEnvironment) {
  const struct {
    Variables variables;
    const char* message;
  } rows[] = {
      {{}, "no launcher has set OMPI_COMM_WORLD_RANK (Open MPI), PMI_RANK"},
      {{{"JOB_COMPLETION_INDEX", "1"}}, "JOB_COMPLETION_INDEX is set, but JOB_COMPLETIONS is not"},
      {{{"PMI_RANK", "x"}}, "PMI_RANK is x, no number"},
      {{{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}, "PMI_RANK and PMI_SIZE: shard 2 of 2"},
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
  };
  for (const auto& row : rows) {
    const auto shard = Parse("auto", row.variables);
    EXPECT_EQ(shard.status().code(), StatusCode::kInvalidArgument) << row.message;
    EXPECT_THAT(shard.status().message(), HasSubstr(row.message));
  }
}

}  // namespace
}  // namespace reshard
