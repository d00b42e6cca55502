// Sources that are named by a pattern with {rank}, or file by file.

#include "src/mindspore/rank_pattern.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "src/mindspore/rank_folder.h"
#include "tests/support/temporary_folder.h"

namespace reshard::rank_pattern_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct Row {
  const char* name;
  std::vector<std::string> files;  // below the folder, made empty; "x/" is a folder
  std::string pattern;             // below the folder
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
  return FindRankFiles((folder.path() / row.pattern).string(), {row.suffix});
}

struct Chosen : Row {
  std::map<int64_t, std::string> chosen;  // relative paths by rank
  std::vector<std::string> warnings;      // behind "PATTERN: "
};

TEST(RankPatternTest, NamesFilesAndFolders) {
  const Chosen rows[] = {
      {{"a file in each folder",
        {"node0/CKP_1-4_32.ckpt", "node0/CKP_1-5_32.ckpt", "node10/CKP_1-4_32.ckpt",
         "node2/CKP_1-4_32.ckpt", "nodex/CKP_1-4_32.ckpt", "node/CKP_1-4_32.ckpt", "other"},
        "node{rank}/CKP_1-4_32.ckpt",
        ""},
       {{0, "node0/CKP_1-4_32.ckpt"}, {2, "node2/CKP_1-4_32.ckpt"}, {10, "node10/CKP_1-4_32.ckpt"}},
       {}},
      {{"MindFormers' names",
        {"rank_0/llm_rank_0-1_5.ckpt", "rank_1/llm_rank_1-1_5.ckpt", "rank_1/llm_rank_0-1_5.ckpt"},
        "rank_{rank}/llm_rank_{rank}-1_5.ckpt",
        ""},
       {{0, "rank_0/llm_rank_0-1_5.ckpt"}, {1, "rank_1/llm_rank_1-1_5.ckpt"}},
       {}},
      {{"files side by side", {"n_0.ckpt", "n_1.ckpt", "n_1.ckpt.bak"}, "n_{rank}.ckpt", ""},
       {{0, "n_0.ckpt"}, {1, "n_1.ckpt"}},
       {}},
      {{"twice in one name", {"a1b1.ckpt", "a12b12.ckpt", "a1b2.ckpt"}, "a{rank}b{rank}.ckpt", ""},
       {{1, "a1b1.ckpt"}, {12, "a12b12.ckpt"}},
       {}},
      {{"digits beside the number", {"x10.ckpt", "x110.ckpt", "x0.ckpt"}, "x{rank}0.ckpt", ""},
       {{1, "x10.ckpt"}, {11, "x110.ckpt"}},
       {}},
      {{"leading zeros, the same in all places",
        {"n007/x_007.ckpt", "n08/x_8.ckpt"},
        "n{rank}/x_{rank}.ckpt",
        ""},
       {{7, "n007/x_007.ckpt"}},
       {"no checkpoint (*.ckpt) in 1 of 2 places of the pattern: rank 8"}},
      {{"folders, of which the latest is chosen",
        {"node0/a-1_9.ckpt", "node0/a-1_10.ckpt", "node1/a-1_10.ckpt", "node2/"},
        "node{rank}",
        ""},
       {{0, "node0/a-1_10.ckpt"}, {1, "node1/a-1_10.ckpt"}},
       {"no checkpoint (*.ckpt) in 1 of 3 places of the pattern: rank 2",
        "MindSpore sorts by name, not by epoch and step, and would take other files in 1 of 3 "
        "places of the pattern: node0/a-1_9.ckpt instead of a-1_10.ckpt"}},
      {{"folders, by suffix", {"node0/a-1_9.ckpt", "node0/a-1_10.ckpt"}, "node{rank}/", "-1_9"},
       {{0, "node0/a-1_9.ckpt"}},
       {}},
      {{"folders further down", {"n0/out/a.ckpt", "n1/out/a.ckpt"}, "n{rank}/out", ""},
       {{0, "n0/out/a.ckpt"}, {1, "n1/out/a.ckpt"}},
       {}},
      {{"a breakpoint that the pattern names",
        {"n0-1_5_breakpoint.ckpt"},
        "n{rank}-1_5_breakpoint.ckpt",
        ""},
       {{0, "n0-1_5_breakpoint.ckpt"}},
       {}},
  };
  for (const Chosen& row : rows) {
    const TemporaryFolder folder;
    const auto found = Find(folder, row);
    ASSERT_TRUE(found.ok()) << row.name << ": " << found.status().message();
    std::map<int64_t, std::string> chosen;
    for (const RankFile& file : found->files) {
      chosen[file.rank] = file.relative_path;
      EXPECT_EQ(file.path, (folder.path() / file.relative_path).string()) << row.name;
    }
    EXPECT_EQ(chosen, row.chosen) << row.name;
    std::vector<testing::Matcher<const Warning&>> warnings;
    for (const std::string& warning : row.warnings) {
      warnings.push_back(testing::Field(&Warning::message,
                                        (folder.path() / row.pattern).string() + ": " + warning));
    }
    EXPECT_THAT(found->warnings, testing::ElementsAreArray(warnings)) << row.name;
  }
}

struct Rejected : Row {
  StatusCode code;
  std::string message;
};

TEST(RankPatternTest, Rejects) {
  const Rejected rows[] = {
      {{"nothing that matches", {"nodes/a.ckpt"}, "node{rank}/a.ckpt", ""},
       StatusCode::kNotFound,
       "/node{rank}/a.ckpt: expected files or folders of this pattern, {rank} being a number, "
       "found "
       "none in "},
      {{"no file behind what matches", {"node0/b.ckpt", "node1/"}, "node{rank}/a.ckpt", ""},
       StatusCode::kNotFound,
       ": expected checkpoints (*.ckpt or *.safetensors), found none in 2 places of the pattern: "
       "ranks 0-1"},
      {{"one rank twice", {"node1/a.ckpt", "node01/a.ckpt"}, "node{rank}/a.ckpt", ""},
       StatusCode::kMismatch,
       ": node01/a.ckpt and node1/a.ckpt both name rank 1; remove one"},
      {{"different steps", {"n0/a-1_2.ckpt", "n1/a-1_3.ckpt"}, "n{rank}", ""},
       StatusCode::kMismatch,
       ": expected checkpoints of one step, found -1_3 in rank 1; -1_2 in rank 0; the ranks have "
       "no step in common"},
      {{"an open choice", {"n0/a.ckpt", "n0/b.ckpt"}, "n{rank}", ""},
       StatusCode::kMismatch,
       "found several: n0 (a.ckpt, b.ckpt); choose by the end of the name, such as `suffix=a`"},
      {{"two formats", {"n0/a.safetensors", "n1/a.ckpt"}, "n{rank}", ""},
       StatusCode::kMismatch,
       "found .ckpt in rank 1; .safetensors in rank 0"},
      {{"a way up", {"n0/a.ckpt"}, "n{rank}/../n0/a.ckpt", ""},
       StatusCode::kInvalidArgument,
       ": a pattern may not have .. behind {rank}"},
      {{"a folder that is not there", {}, "x/node{rank}", ""}, StatusCode::kNotFound, "/x"},
  };
  for (const Rejected& row : rows) {
    const TemporaryFolder folder;
    const auto found = Find(folder, row);
    ASSERT_FALSE(found.ok()) << row.name;
    EXPECT_EQ(found.status().code(), row.code) << row.name;
    EXPECT_THAT(found.status().message(), HasSubstr(row.message)) << row.name;
  }
}

TEST(RankFilesByMapTest, KeepTheRulesOfNames) {
  const auto taken = TakeRankFiles({{0, "a/x-1_5.ckpt"}, {4, "b/y-1_5.ckpt"}}, {});
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  ASSERT_EQ(taken->files.size(), 2U);
  EXPECT_EQ(taken->files[1].rank, 4);
  EXPECT_EQ(taken->files[1].path, "b/y-1_5.ckpt");
  EXPECT_EQ(taken->files[1].relative_path, "rank_4/y-1_5.ckpt");
  EXPECT_EQ(taken->files[1].step, (TrainingStep{1, 5}));
  EXPECT_THAT(taken->warnings, IsEmpty());

  const auto mixed = TakeRankFiles({{0, "a/x-1_5.ckpt"}, {4, "b/y-1_6.ckpt"}}, {});
  EXPECT_EQ(mixed.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(
      mixed.status().message(),
      HasSubstr("`source.files`: expected checkpoints of one step, found -1_6 in rank 4; -1_5 "
                "in rank 0"));
  EXPECT_EQ(TakeRankFiles({{0, "a.safetensors"}, {1, "b.ckpt"}}, {}).status().code(),
            StatusCode::kMismatch);
}

}  // namespace
}  // namespace reshard::rank_pattern_test
