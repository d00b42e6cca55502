// What readers of a target folder take: files of the set, or others that lie there. Conversions are
// refused before they would leave a folder that is misread, and `verify` finds one.

#include <gmock/gmock.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "reshard/verify.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::readers_test {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<NamedLayout> kRowsOf2 = {{"w", MakeLayout({2}, {{0, -1}})}};

// Full tensors, of which a set is made.
class SetToRead : public ConversionFolder {
 public:
  SetToRead() : ConversionFolder({}, kRowsOf2) {
    WriteRank(0, {MakeTensor("w", DType::kFloat32, {8, 2})});
  }

  // The same to a folder of full tensors, of as many bytes in a file.
  void ToFolder(TargetFormat format, uint64_t bytes) {
    options().target.strategy = {};
    options().target.format = format;
    options().target.shard_size = bytes;
    options().source.path += "/" + RankPath(0);
  }

  void Leave(const std::string& path) const { folder().Write("target/" + path, "left over"); }

  std::vector<DamageReport::Damage> Damages() const {
    const auto report = Verify(options().target.folder);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? report->damages : std::vector<DamageReport::Damage>();
  }
};

struct Row {
  const char* left_over;
  bool refused;
  const char* named = nullptr;  // if it is not the left-over itself
};

const Row kBesideRanks[] = {
    {"rank_0/net-1_1.ckpt", true},  // of a later step
    {"rank_1/other.ckpt", true},    // either could be meant
    {"rank_0/checkpoint_0.safetensors", true},
    {"rank_1/x.safetensors", true},
    {"rank_1/zzz_breakpoint.ckpt", true},   // MindSpore takes the last by name
    {"rank_00/net.ckpt", true, "rank_00"},  // which is of rank 0?
    {"param_name_map.json", true},
    {"model.safetensors.index.json", true},
    {"other.safetensors.index.json", true},
    {"rank_2/net-1_1.ckpt", false},  // no rank of the set
    {"rank_0/aaa_breakpoint.ckpt", false},
    {"rank_0/.net-1_1.ckpt", false},
    {"rank_0/notes.txt", false},
    {"rank_0/more/net-1_1.ckpt", false},
    {"meta.json", false},  // MindFormers'
    {"strategy/ckpt_strategy_rank_0.ckpt", false},
    {"model.safetensors", false},  // folders of ranks count before it
    {"hyper_param.safetensors", false},
};

const Row kBesideUnified[] = {
    {"hyper_param.safetensors", true}, {"part9.safetensors", false},
    {"model.safetensors", false},      {"model.safetensors.index.json", false},
    {"rank_0/net-1_1.ckpt", false},    {"meta.json", false},
};

const Row kBesideOneFile[] = {
    {"param_name_map.json", true},          {"rank_0/net-1_1.ckpt", true, "rank_0"},
    {"model.safetensors.index.json", true}, {"other.safetensors.index.json", true},
    {"other.safetensors", false},           {"config.json", false},
};

const Row kBesideShards[] = {
    {"param_name_map.json", true},  {"model.safetensors", true},
    {"other.safetensors", false},   {"other.safetensors.index.json", false},
    {"rank_0/net-1_1.ckpt", false},
};

template <typename Set>
void CheckRow(const Row& row, const Set& make) {
  const std::string named = row.named == nullptr ? row.left_over : row.named;
  SCOPED_TRACE(row.left_over);
  SetToRead set;
  make(set);
  set.Leave(row.left_over);
  const FolderContents before = ReadFolder(set.options().target.folder);
  for (const bool force : {false, true}) {
    set.options().force = force;
    const auto plan = Plan(set.options());
    ASSERT_EQ(plan.ok(), !row.refused) << plan.status().message();
    const auto report = Convert(set.options());
    ASSERT_EQ(report.ok(), !row.refused) << report.status().message();
    if (!row.refused) continue;
    EXPECT_EQ(report.status().code(), StatusCode::kAlreadyExists);
    EXPECT_THAT(report.status().message(), HasSubstr(named));
    EXPECT_EQ(plan.status().message(), report.status().message());
    EXPECT_EQ(ReadFolder(set.options().target.folder), before);
  }
  if (!row.refused) {
    EXPECT_THAT(set.Damages(), IsEmpty());
  }
  // It comes when the set is there.
  SetToRead later;
  make(later);
  ASSERT_TRUE(Convert(later.options()).ok());
  EXPECT_THAT(later.Damages(), IsEmpty());
  later.Leave(row.left_over);
  if (row.refused) {
    EXPECT_THAT(later.Damages(),
                Contains(testing::AllOf(
                    Field(&DamageReport::Damage::path, named),
                    Field(&DamageReport::Damage::kind, DamageReport::Damage::Kind::kNotListed))));
  } else {
    EXPECT_THAT(later.Damages(), IsEmpty());
  }
}

TEST(ReadersTest, OfFoldersOfRanks) {
  for (const Row& row : kBesideRanks) CheckRow(row, [](SetToRead&) {});
}

TEST(ReadersTest, OfAUnifiedFolder) {
  for (const Row& row : kBesideUnified) {
    CheckRow(row, [](SetToRead& set) { set.ToFolder(TargetFormat::kUnified, 1 << 20); });
  }
}

TEST(ReadersTest, OfOneFileOfWholeTensors) {
  for (const Row& row : kBesideOneFile) {
    CheckRow(row, [](SetToRead& set) { set.ToFolder(TargetFormat::kHuggingFace, 1 << 20); });
  }
}

TEST(ReadersTest, OfShardsOfWholeTensors) {
  for (const Row& row : kBesideShards) {
    CheckRow(row, [](SetToRead& set) {
      set.WriteRank(0,
                    {MakeTensor("v", DType::kFloat32, {4}), MakeTensor("w", DType::kFloat32, {4})});
      set.ToFolder(TargetFormat::kHuggingFace, 16);
    });
  }
}

// A pattern finds what it names.
TEST(ReadersTest, OfFilesWithNamesOfTheirOwn) {
  for (const char* left_over : {"rank_0/net-1_1.ckpt", "param_name_map.json", "a.ckpt"}) {
    CheckRow({left_over, false},
             [](SetToRead& set) { set.options().target.names = "m{rank}.ckpt"; });
  }
}

TEST(ReadersTest, RanksThatAreNotConvertedDoNotMatter) {
  SetToRead set;
  set.Leave("rank_1/net-1_1.ckpt");
  set.options().selection.ranks = {0};
  ASSERT_TRUE(Convert(set.options()).ok());
  EXPECT_THAT(set.Damages(), IsEmpty());
  set.options().selection.ranks = {1};
  EXPECT_EQ(Convert(set.options()).status().code(), StatusCode::kAlreadyExists);
  fs::remove(fs::path(set.options().target.folder) / "rank_1/net-1_1.ckpt");
  const auto joined = Convert(set.options());
  EXPECT_TRUE(joined.ok()) << joined.status().message();
}

TEST(ReadersTest, ShardsAreRefusedToo) {
  SetToRead set;
  set.Leave("rank_1/net-1_1.ckpt");
  set.options().shard = WorkerShare{0, 2};
  EXPECT_EQ(Convert(set.options()).status().code(), StatusCode::kAlreadyExists);
}

// A file comes while the run is at work.
TEST(ReadersTest, IsAskedAgainBeforePublication) {
  SetToRead set;
  bool left = false;
  set.options().run.progress = [&](const Progress& progress) {
    if (progress.phase == Progress::Phase::kPublish && !left) set.Leave("rank_0/net-1_1.ckpt");
    left = left || progress.phase == Progress::Phase::kPublish;
  };
  EXPECT_EQ(Convert(set.options()).status().code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(left);
  const fs::path target = set.options().target.folder;
  EXPECT_FALSE(fs::exists(target / "manifest.json"));
  EXPECT_FALSE(fs::exists(target / "rank_0/checkpoint_0.ckpt"));
  fs::remove(target / "rank_0/net-1_1.ckpt");
  set.options().resume = OutputChoice::Resume::kTrust;
  const auto report = Convert(set.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->files_kept, 2U);
}

// The same where another process publishes what shards have staged.
TEST(ReadersTest, IsAskedBeforeACommit) {
  SetToRead set;
  for (uint64_t shard = 0; shard < 2; ++shard) {
    set.options().shard = WorkerShare{shard, 2};
    set.options().run.progress = [&](const Progress& progress) {
      if (shard == 1 && progress.phase == Progress::Phase::kPublish)
        set.Leave("rank_0/net-1_1.ckpt");
    };
    EXPECT_EQ(Convert(set.options()).ok(), shard == 0);
  }
  const std::string target = set.options().target.folder;
  EXPECT_EQ(CommitWorkers(target).status().code(), StatusCode::kAlreadyExists);
  fs::remove(fs::path(target) / "rank_0/net-1_1.ckpt");
  const auto report = CommitWorkers(target);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(set.Damages(), IsEmpty());
}

TEST(ReadersTest, WhatPruneRemovesIsGone) {
  SetToRead set;
  set.options().target.prefix = "net_";
  ASSERT_TRUE(Convert(set.options()).ok());
  set.options().target.prefix = "checkpoint_";
  set.options().force = true;
  const auto refused = Convert(set.options());
  EXPECT_EQ(refused.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(refused.status().message(), Naming("rank_0/net_0.ckpt", "`prune`"));
  set.options().prune = true;
  const auto report = Convert(set.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->pruned, 2U);
  EXPECT_THAT(set.Damages(), IsEmpty());
}

// Which is not what was written there, so that it would stay.
TEST(ReadersTest, WhatPruneWouldLeaveIsNotGone) {
  SetToRead set;
  set.options().target.prefix = "net_";
  ASSERT_TRUE(Convert(set.options()).ok());
  const fs::path changed = fs::path(set.options().target.folder) / "rank_0/net_0.ckpt";
  const std::string bytes(fs::file_size(changed), 'x');
  fs::remove(changed);
  set.folder().Write("target/rank_0/net_0.ckpt", bytes);
  set.options().target.prefix = "checkpoint_";
  set.options().force = true;
  set.options().prune = true;
  const auto refused = Convert(set.options());
  EXPECT_EQ(refused.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(refused.status().message(), HasSubstr("rank_0/net_0.ckpt"));
}

TEST(ReadersTest, TheSetMayBeMadeAgain) {
  SetToRead set;
  ASSERT_TRUE(Convert(set.options()).ok());
  set.options().force = true;
  const auto again = Convert(set.options());
  EXPECT_TRUE(again.ok()) << again.status().message();
}

// Sources of the other format lie beside the outputs; what is of their own format counts.
TEST(ReadersTest, OfFilesEachByThemselves) {
  SetToRead set;
  set.WriteRank(1, {MakeTensor("w", DType::kFloat32, {8, 2})});
  RecodeOptions recode;
  recode.source.path = set.options().source.path;
  recode.target.folder = recode.source.path;
  recode.target.format = TargetFormat::kSafetensors;
  const auto in_place = Recode(recode);
  ASSERT_TRUE(in_place.ok()) << in_place.status().message();
  const auto report = Verify(recode.source.path);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->damages, IsEmpty());
  recode.target.folder = set.options().target.folder;
  set.Leave("rank_1/zzz-9_9.safetensors");
  EXPECT_EQ(Recode(recode).status().code(), StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace reshard::readers_test
