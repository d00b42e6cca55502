#include "src/mindspore/run_folder.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace reshard::run_folder_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The output folder of a run of two ranks, "output" in the folder.
class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest() {
    Write("checkpoint/rank_0/llm_rank_0-1_2.ckpt");
    Write("checkpoint/rank_1/llm_rank_1-1_2.ckpt");
    Write("strategy/ckpt_strategy_rank_0.ckpt");
  }

  void Write(const std::string& path) const { folder_.Write("output/" + path, ""); }
  std::string Path(const std::string& path = "") const {
    return folder_.path().string() + "/output" + (path.empty() ? "" : "/" + path);
  }
  SourceSpec Found(SourceSpec spec) {
    notes_.clear();
    return InRunFolder(spec, notes_);
  }
  // Expects that the folder is taken itself.
  void ExpectItself() {
    const SourceSpec found = Found({.path = Path()});
    EXPECT_EQ(found.path, Path());
    EXPECT_TRUE(found.strategy.empty());
    EXPECT_THAT(notes_, IsEmpty());
  }

  TemporaryFolder folder_;
  std::vector<std::string> notes_;
};

TEST_F(RunFolderTest, FindsCheckpointsAndStrategies) {
  for (const std::string& path : {Path(), Path() + "/"}) {
    const SourceSpec found = Found({.path = path, .suffix = "-1_2"});
    EXPECT_EQ(found.path, Path("checkpoint"));
    EXPECT_EQ(found.strategy.path(), Path("strategy"));
    EXPECT_EQ(found.suffix, "-1_2");
    EXPECT_THAT(notes_,
                ElementsAre(path + ": the output folder of a run; its ranks are in " +
                            Path("checkpoint") + ", their strategies in " + Path("strategy")));
  }
}

TEST_F(RunFolderTest, AGivenStrategyWins) {
  const SourceSpec found = Found({.path = Path(), .strategy = "s.ckpt"});
  EXPECT_EQ(found.path, Path("checkpoint"));
  EXPECT_EQ(found.strategy.path(), "s.ckpt");
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("its ranks are in " + Path("checkpoint"))));
  EXPECT_THAT(notes_, ElementsAre(testing::Not(HasSubstr("strategies"))));
}

TEST_F(RunFolderTest, StrategiesMayBeMissing) {
  std::filesystem::remove_all(Path("strategy"));
  EXPECT_TRUE(Found({.path = Path()}).strategy.empty());
  Write("strategy/notes.txt");
  Write("strategy/.hidden.ckpt");
  EXPECT_TRUE(Found({.path = Path()}).strategy.empty());
}

TEST_F(RunFolderTest, AFolderWithRanksOfItsOwnIsNoRun) {
  std::filesystem::create_directory(Path("rank_0"));
  ExpectItself();
}

TEST_F(RunFolderTest, AFolderWithCheckpointsOfItsOwnIsNoRun) {
  Write("model.safetensors");
  ExpectItself();
}

TEST_F(RunFolderTest, OtherFoldersAreNoRuns) {
  std::filesystem::remove_all(Path("checkpoint"));
  ExpectItself();
  Write("checkpoint");
  ExpectItself();
  std::filesystem::remove_all(Path("checkpoint"));
  Write("checkpoint/net.ckpt");
  ExpectItself();
}

TEST_F(RunFolderTest, CheckpointsOfVersion2NeedNoStrategy) {
  std::filesystem::remove_all(Path("checkpoint"));
  Write("checkpoint/latest_checkpointed_iteration.txt");
  const SourceSpec found = Found({.path = Path()});
  EXPECT_EQ(found.path, Path("checkpoint"));
  EXPECT_TRUE(found.strategy.empty());
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("its checkpoints are in " + Path("checkpoint"))));
}

TEST_F(RunFolderTest, PatternsAndFilesAreTakenThemselves) {
  EXPECT_EQ(Found({.path = Path("{rank}")}).path, Path("{rank}"));
  EXPECT_EQ(Found({.files = {{0, "a.ckpt"}}}).path, "");
  EXPECT_EQ(Found({}).path, "");
}

TEST_F(RunFolderTest, AdvisesStrategiesInItAndBeside) {
  const std::string hint = "; strategies are in " + Path("strategy");
  EXPECT_EQ(HintOfStrategyBeside({.path = Path("checkpoint")}), hint);
  EXPECT_EQ(HintOfStrategyBeside({.path = Path("checkpoint/")}), hint);
  EXPECT_EQ(HintOfStrategyBeside({.path = Path("checkpoint"), .strategy = "s.ckpt"}), "");
  EXPECT_EQ(HintOfStrategyBeside({.path = Path()}), hint);  // in it
  EXPECT_EQ(HintOfStrategyBeside({}), "");
}

}  // namespace
}  // namespace reshard::run_folder_test
