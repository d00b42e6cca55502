#include "src/mindspore/rank_folder.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace reshard::rank_folder_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct Row {
  const char* name;
  std::vector<std::string> files;  // below the folder, made empty; "x/" is a folder
  std::string suffix;
};

Result<RankFolder> Find(const TemporaryFolder& folder, const Row& row) {
  for (const std::string& file : row.files) {
    if (file.ends_with('/')) {
      std::filesystem::create_directories(folder.path() / file);
    } else {
      folder.Write(file, "");
    }
  }
  return FindRankFiles(folder.path().string(), {row.suffix});
}

struct Chosen : Row {
  std::vector<std::string> chosen;    // relative paths
  std::vector<std::string> warnings;  // behind "FOLDER: "
};

void ExpectChosen(const Chosen& row) {
  const TemporaryFolder folder;
  const auto found = Find(folder, row);
  ASSERT_TRUE(found.ok()) << row.name << ": " << found.status().message();
  std::vector<std::string> chosen;
  int64_t last = -1;
  for (const RankFile& file : found->files) {
    chosen.push_back(file.relative_path);
    EXPECT_EQ(file.path, (folder.path() / file.relative_path).string()) << row.name;
    EXPECT_LT(last, file.rank) << row.name;
    last = file.rank;
  }
  EXPECT_EQ(chosen, row.chosen) << row.name;
  ASSERT_EQ(found->warnings.size(), row.warnings.size()) << row.name;
  for (size_t i = 0; i < row.warnings.size(); ++i) {
    EXPECT_EQ(found->warnings[i].message, folder.path().string() + ": " + row.warnings[i])
        << row.name;
  }
}

TEST(RankFolderTest, ChoosesOneFileOfEachRank) {
  const std::string mindspore =
      "MindSpore sorts by name, not by epoch and step, and would take other files in ";
  const Chosen rows[] = {
      {{"one file each", {"rank_0/a.ckpt", "rank_1/b.ckpt"}, ""},
       {"rank_0/a.ckpt", "rank_1/b.ckpt"},
       {}},
      {{"by number of the rank", {"rank_10/a.ckpt", "rank_9/a.ckpt", "rank_00/a.ckpt"}, ""},
       {"rank_00/a.ckpt", "rank_9/a.ckpt", "rank_10/a.ckpt"},
       {}},
      {{"other folders and files are ignored",
        {"rank_0/a.ckpt", "rank_/b.ckpt", "rank_x1/b.ckpt", "rank_1x/b.ckpt", "rank0/b.ckpt",
         "Rank_1/b.ckpt", "rank_-1/b.ckpt", "rank_99999999999999999999/b.ckpt", "strategy.ckpt",
         "rank_7"},
        ""},
       {"rank_0/a.ckpt"},
       {}},
      {{"what does not count",
        {"rank_0/net-1_2.ckpt", "rank_0/net-1_3.tmp", "rank_0/net-graph.meta", "rank_0/.x-9_9.ckpt",
         "rank_0/net-9_9.ckpt.bak", "rank_0/net-9_8.ckpt/", "rank_0/meta.json"},
        ""},
       {"rank_0/net-1_2.ckpt"},
       {}},
      {{"the latest step of all",
        {"rank_0/n-9_1.ckpt", "rank_0/n-10_1.ckpt", "rank_0/n-2_1.ckpt", "rank_1/n-9_1.ckpt",
         "rank_1/n-11_1.ckpt", "rank_1/n-2_1.ckpt", "rank_2/"},
        "common"},
       {"rank_0/n-9_1.ckpt", "rank_1/n-9_1.ckpt"},
       {"no checkpoint (*-9_1.ckpt) in 1 of 3 rank folders: rank 2"}},
      {{"by number of the epoch", {"rank_0/net-9_1.ckpt", "rank_0/net-10_1.ckpt"}, ""},
       {"rank_0/net-10_1.ckpt"},
       {mindspore + "1 of 1 rank folder: rank_0/net-9_1.ckpt instead of net-10_1.ckpt"}},
      {{"by number of the step",
        {"rank_0/net-2_10.ckpt", "rank_0/net-2_9.ckpt", "rank_0/net-1_99.ckpt"},
        ""},
       {"rank_0/net-2_10.ckpt"},
       {mindspore + "1 of 1 rank folder: rank_0/net-2_9.ckpt instead of net-2_10.ckpt"}},
      {{"a later run's earlier step", {"rank_0/net-1_100.ckpt", "rank_0/net_1-1_50.ckpt"}, ""},
       {"rank_0/net-1_100.ckpt"},
       {mindspore + "1 of 1 rank folder: rank_0/net_1-1_50.ckpt instead of net-1_100.ckpt"}},
      {{"a breakpoint does not count",
        {"rank_0/net-1_100.ckpt", "rank_0/net-1_100_breakpoint.ckpt", "rank_1/net-1_100.ckpt"},
        ""},
       {"rank_0/net-1_100.ckpt", "rank_1/net-1_100.ckpt"},
       {mindspore + "1 of 2 rank folders: rank_0/net-1_100_breakpoint.ckpt instead of "
                    "net-1_100.ckpt"}},
      {{"a breakpoint that is asked for",
        {"rank_0/net-1_100.ckpt", "rank_0/net-1_100_breakpoint.ckpt",
         "rank_1/net-1_100_breakpoint.ckpt"},
        "-1_100_breakpoint"},
       {"rank_0/net-1_100_breakpoint.ckpt", "rank_1/net-1_100_breakpoint.ckpt"},
       {}},
      {{"names with steps go before names without", {"rank_0/net-1_1.ckpt", "rank_0/net.ckpt"}, ""},
       {"rank_0/net-1_1.ckpt"},
       {mindspore + "1 of 1 rank folder: rank_0/net.ckpt instead of net-1_1.ckpt"}},
      {{"prefixes with ranks", {"rank_0/llm_rank_0-1_5.ckpt", "rank_1/llm_rank_1-1_5.ckpt"}, ""},
       {"rank_0/llm_rank_0-1_5.ckpt", "rank_1/llm_rank_1-1_5.ckpt"},
       {}},
      {{"names of MindFormers, the later of two steps",
        {"rank_0/llm_rank_0-1_9.ckpt", "rank_0/llm_rank_0-1_8.ckpt", "rank_1/llm_rank_1_2-1_9.ckpt",
         "rank_1/meta.json"},
        ""},
       {"rank_0/llm_rank_0-1_9.ckpt", "rank_1/llm_rank_1_2-1_9.ckpt"},
       {}},
      {{"a rank without files",
        {"rank_0/a-1_5.ckpt", "rank_1/", "rank_2/a-1_5_breakpoint.ckpt"},
        ""},
       {"rank_0/a-1_5.ckpt"},
       {"no checkpoint (*.ckpt) in 2 of 3 rank folders: ranks 1-2"}},
      {{"a suffix",
        {"rank_0/net-1_5.ckpt", "rank_0/net-1_6.ckpt", "rank_0/net-1_15.ckpt",
         "rank_1/net-1_5.ckpt"},
        "-1_5"},
       {"rank_0/net-1_5.ckpt", "rank_1/net-1_5.ckpt"},
       {}},
      {{"a suffix that tells two runs apart",
        {"rank_0/net-1_5.ckpt", "rank_0/net_1-1_5.ckpt"},
        "net-1_5"},
       {"rank_0/net-1_5.ckpt"},
       {}},
      {{"a suffix that one rank has not", {"rank_0/net-1_5.ckpt", "rank_1/net-1_4.ckpt"}, "-1_5"},
       {"rank_0/net-1_5.ckpt"},
       {"no checkpoint (*-1_5.ckpt) in 1 of 2 rank folders: rank 1"}},
  };
  for (const Chosen& row : rows) ExpectChosen(row);
}

TEST(RankFolderTest, TellsTheStep) {
  struct Name {
    const char* name;
    std::optional<TrainingStep> step;
  };
  const Name names[] = {
      {"net-3_400.ckpt", TrainingStep{3, 400}},
      {"a-b_c-03_0400.ckpt", TrainingStep{3, 400}},
      {"-1_2.ckpt", TrainingStep{1, 2}},
      {"net-1_2_3.ckpt", std::nullopt},
      {"net-1.ckpt", std::nullopt},
      {"net_1_2.ckpt", std::nullopt},
      {"net-_2.ckpt", std::nullopt},
      {"net-1_.ckpt", std::nullopt},
      {"net-1_x.ckpt", std::nullopt},
      {"net-1_99999999999999999999.ckpt", std::nullopt},
  };
  for (const Name& name : names) {
    const TemporaryFolder folder;
    const auto found = Find(folder, {name.name, {std::string("rank_0/") + name.name}, ""});
    ASSERT_TRUE(found.ok()) << name.name << found.status().message();
    EXPECT_EQ(found->files.at(0).step, name.step) << name.name;
  }
}

struct Rejected : Row {
  StatusCode code;
  std::string message;
};

TEST(RankFolderTest, Rejects) {
  const Rejected rows[] = {
      {{"an empty folder", {}, ""},
       StatusCode::kNotFound,
       ": expected folders rank_N with .ckpt or .safetensors files, found none"},
      {{"files outside of rank folders", {"a.ckpt"}, ""},
       StatusCode::kNotFound,
       "/node{rank}, or the path of one file with full tensors"},
      {{"folders of another name", {"node0/a.ckpt", "node1/a.ckpt", "x1/"}, ""},
       StatusCode::kNotFound,
       ": expected folders rank_N with .ckpt or .safetensors files, found none; if its ranks have "
       "other names, give a pattern: "},
      {{"folders of another name, guessed", {"node0/a.ckpt", "node1/a.ckpt", "x1/"}, ""},
       StatusCode::kNotFound,
       "/node{rank}"},
      {{"files of ranks and steps",
        {"n_rank_0-1_5.ckpt", "n_rank_0-1_6.ckpt", "n_rank_1-1_5.ckpt", "n_rank_2-1_5.ckpt"},
        ""},
       StatusCode::kNotFound,
       "/n_rank_{rank}-1_5.ckpt"},
      {{"files of a Hugging Face folder",
        {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"},
        ""},
       StatusCode::kNotFound,
       ": holds 2 files of a Hugging Face folder (model-00001-of-00002.safetensors, "
       "model-00002-of-00002.safetensors), but no index"},
      {{"vLLM's", {"model-rank-0-part-0.safetensors", "model-rank-1-part-0.safetensors"}, ""},
       StatusCode::kNotFound,
       ": holds files of vLLM's sharded_state"},
      {{"files that MindSpore writes when training fails",
        {"rank_0/n-2_5_breakpoint.ckpt", "rank_1/n-2_5_breakpoint.ckpt"},
        ""},
       StatusCode::kNotFound,
       "(rank_0/n-2_5_breakpoint.ckpt, rank_1/n-2_5_breakpoint.ckpt), which are taken only if they "
       "are asked for: `suffix=-2_5_breakpoint`"},
      {{"those of two steps, asked for",
        {"rank_0/n-2_5_breakpoint.ckpt", "rank_1/n-2_6_breakpoint.ckpt"},
        "_breakpoint"},
       StatusCode::kMismatch,
       "found -2_6 in rank 1; -2_5 in rank 0"},
      {{"rank folders without files", {"rank_0/", "rank_1/a.tmp"}, ""},
       StatusCode::kNotFound,
       ": expected checkpoints (*.ckpt or *.safetensors), found none in 2 rank folders: ranks 0-1"},
      {{"one rank twice", {"rank_0/a.ckpt", "rank_00/a.ckpt"}, ""},
       StatusCode::kMismatch,
       ": rank_0 and rank_00 both name rank 0; remove one"},
      {{"two formats in a rank", {"rank_0/a.ckpt", "rank_0/b.safetensors"}, ""},
       StatusCode::kMismatch,
       "rank_0: expected files of one format, found a.ckpt and b.safetensors; keep the others in "
       "another folder"},
      {{"two formats", {"rank_0/a.ckpt", "rank_1/a.safetensors", "rank_2/a.ckpt"}, ""},
       StatusCode::kMismatch,
       ": expected files of one format, found .ckpt in ranks 0, 2; .safetensors in rank 1"},
      {{"different steps",
        {"rank_0/n-9_1.ckpt", "rank_0/n-10_1.ckpt", "rank_1/n-9_1.ckpt", "rank_2/n-10_1.ckpt",
         "rank_2/n-9_1.ckpt", "rank_2/n-8_1.ckpt"},
        ""},
       StatusCode::kMismatch,
       ": expected checkpoints of one step, found -10_1 in ranks 0, 2; -9_1 in rank 1; the latest "
       "step that all ranks have is -9_1 (`suffix=-9_1` or "
       "`suffix=common`)"},
      {{"no step in common", {"rank_0/n-1_1.ckpt", "rank_1/n-1_2.ckpt"}, ""},
       StatusCode::kMismatch,
       "found -1_2 in rank 1; -1_1 in rank 0; the ranks have no step in common"},
      {{"a name without step among others", {"rank_0/n-1_1.ckpt", "rank_1/n.ckpt"}, ""},
       StatusCode::kMismatch,
       "found -1_1 in rank 0; no step in rank 1; the ranks have no step in common"},
      {{"one step twice",
        {"rank_0/n-1_1.ckpt", "rank_0/n-1_2.ckpt", "rank_0/n_1-1_2.ckpt", "rank_1/n-1_1.ckpt"},
        ""},
       StatusCode::kMismatch,
       ": expected one checkpoint to take in each rank folder, found several: rank_0 (n-1_2.ckpt, "
       "n_1-1_2.ckpt); choose by the end of the name, such as `suffix=_1`; the latest step that "
       "all ranks have is -1_1 (`suffix=-1_1` or `suffix=common`)"},
      {{"one step twice by leading zeros", {"rank_0/n-1_02.ckpt", "rank_0/n-1_2.ckpt"}, ""},
       StatusCode::kMismatch,
       "found several: rank_0 (n-1_02.ckpt, n-1_2.ckpt)"},
      {{"several without steps",
        {"rank_0/a.ckpt", "rank_0/b.ckpt", "rank_1/a.ckpt", "rank_1/c.ckpt"},
        ""},
       StatusCode::kMismatch,
       "found several: rank_0 (a.ckpt, b.ckpt); rank_1 (a.ckpt, c.ckpt); choose by the end of the "
       "name, such as `suffix=a`; the ranks have no step in common"},
      {{"several with their ranks",
        {"rank_0/a_0.ckpt", "rank_0/b_0.ckpt", "rank_1/a_1.ckpt", "rank_1/b_1.ckpt"},
        ""},
       StatusCode::kMismatch,
       "rank_1 (a_1.ckpt, b_1.ckpt); name them by a pattern, such as "},
      {{"several with a rank's number by chance",
        {"rank_0/a_1.ckpt", "rank_0/b_11.ckpt", "rank_1/a_1.ckpt", "rank_1/b_11.ckpt"},
        ""},
       StatusCode::kMismatch,
       "choose by the end of the name, such as `suffix=_1`"},
      {{"a file of one stage alone in each",
        {"rank_0/c_3_part0.ckpt", "rank_0/c_3_part1.ckpt", "rank_1/c_4_part0.ckpt",
         "rank_1/c_4_part1.ckpt"},
        ""},
       StatusCode::kMismatch,
       "such as `suffix=_part0`"},
      {{"no end of a name in all", {"rank_0/a.ckpt", "rank_0/b.ckpt", "rank_1/c.ckpt"}, ""},
       StatusCode::kMismatch,
       "found several: rank_0 (a.ckpt, b.ckpt); keep one, and move the others to another folder"},
      {{"one common step twice",
        {"rank_0/n-1_1.ckpt", "rank_0/n_1-1_1.ckpt", "rank_1/n-1_1.ckpt"},
        "common"},
       StatusCode::kMismatch,
       "found several: rank_0 (n-1_1.ckpt, n_1-1_1.ckpt)"},
      {{"no common step",
        {"rank_0/n-1_1.ckpt", "rank_1/n-1_2.ckpt", "rank_2/n-1_2.ckpt", "rank_3/n.ckpt"},
        "common"},
       StatusCode::kMismatch,
       ": `suffix=common` takes the latest step that all ranks have, but they have none in common; "
       "the latest are -1_2 in ranks 1-2; -1_1 in rank 0; no step in rank 3"},
      {{"a common step of no files", {"rank_0/", "rank_1/"}, "common"},
       StatusCode::kNotFound,
       "found none in 2 rank folders: ranks 0-1"},
      {{"a suffix of several", {"rank_0/n-1_5.ckpt", "rank_0/n-2_5.ckpt"}, "_5"},
       StatusCode::kMismatch,
       "found several: rank_0 (n-1_5.ckpt, n-2_5.ckpt)"},
      {{"a suffix of different steps", {"rank_0/n-1_5.ckpt", "rank_1/n-2_5.ckpt"}, "_5"},
       StatusCode::kMismatch,
       "expected checkpoints of one step, found -2_5 in rank 1; -1_5 in rank 0"},
      {{"a suffix of none", {"rank_0/n-1_5.ckpt", "rank_1/n-1_5.ckpt"}, "-1_6"},
       StatusCode::kNotFound,
       ": expected checkpoints (*-1_6.ckpt or *-1_6.safetensors), found none in 2 rank folders: "
       "ranks 0-1; the latest step that all ranks have is -1_5 (`suffix=-1_5` or "
       "`suffix=common`)"},
      {{"a suffix that a breakpoint has by chance", {"rank_0/n-1_5_breakpoint.ckpt"}, "point"},
       StatusCode::kNotFound,
       "expected checkpoints (*point.ckpt or *point.safetensors), found none in"},
  };
  for (const Rejected& row : rows) {
    const TemporaryFolder folder;
    const auto found = Find(folder, row);
    ASSERT_FALSE(found.ok()) << row.name;
    EXPECT_EQ(found.status().code(), row.code) << row.name;
    EXPECT_THAT(found.status().message(), HasSubstr(row.message)) << row.name;
  }
  const auto missing = FindRankFiles("/nonexistent/folder", {});
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
}

TEST(RankFolderTest, ListsManyRanksAsRanges) {
  const TemporaryFolder folder;
  Row row{"", {"rank_30/n-2_1.ckpt"}, ""};
  for (int i = 0; i < 30; ++i) row.files.push_back("rank_" + std::to_string(i) + "/n-1_1.ckpt");
  const auto found = Find(folder, row);
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.status().message(),
              HasSubstr("found -2_1 in rank 30; -1_1 in ranks 0-29; the ranks have no step"));
}

TEST(RankFolderTest, FollowsLinks) {
  const TemporaryFolder folder;
  folder.Write("elsewhere/real-1_1.ckpt", "");
  std::filesystem::create_directory_symlink("elsewhere", folder.path() / "rank_0");
  std::filesystem::create_directory(folder.path() / "rank_1");
  std::filesystem::create_symlink("../elsewhere/real-1_1.ckpt",
                                  folder.path() / "rank_1" / "link-1_1.ckpt");
  std::filesystem::create_symlink("nowhere", folder.path() / "rank_1" / "z-9_9.ckpt");
  const auto found = FindRankFiles(folder.path().string() + "/", {});
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->files.size(), 2U);
  EXPECT_EQ(found->files[0].path, (folder.path() / "rank_0/real-1_1.ckpt").string());
  EXPECT_EQ(found->files[1].relative_path, "rank_1/link-1_1.ckpt");
  EXPECT_THAT(found->warnings, IsEmpty());
}

TEST(RankFolderTest, TakesThousandsOfRanks) {
  constexpr int kRanks = 2'048;
  const TemporaryFolder folder;
  folder.Write("rank_0/n-1_1.ckpt", "");
  for (int i = 1; i < kRanks; ++i) {
    std::filesystem::create_directory_symlink("rank_0",
                                              folder.path() / ("rank_" + std::to_string(i)));
  }
  const auto found = FindRankFiles(folder.path().string(), {});
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->files.size(), static_cast<size_t>(kRanks));
  EXPECT_EQ(found->files[1'234].rank, 1'234);
}

}  // namespace
}  // namespace reshard::rank_folder_test
