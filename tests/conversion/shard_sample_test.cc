// SampleShards: what it reads within its bound, and what it chooses.

#include "src/verify/shard_sample.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "src/convert/opened_source.h"
#include "src/mindspore/mindspore_target.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::shard_sample_test {
namespace {

using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// Parameters of 256 KiB cut over `tp` of `ranks` ranks, saved so, and said to be cut over `said`.
class ManyRanks : public ConversionFolder {
 public:
  ManyRanks(int64_t ranks, int64_t tp, int64_t said, size_t parameters) {
    std::vector<NamedLayout> saved;
    std::vector<NamedLayout> layouts;
    for (size_t i = 0; i < parameters; ++i) {
      const std::string name = "w" + std::to_string(i);
      // Other tensor maps, the same cuts.
      saved.push_back({name, MakeLayout({ranks / tp, tp}, {{0, -1}})});
      layouts.push_back({name, MakeLayout({ranks / said, said}, {{0, -1}})});
      if (i % 2 == 0) continue;
      saved.back().layout = MakeLayout({ranks / tp, tp}, {{-1, 0}});
      layouts.back().layout = MakeLayout({ranks / said, said}, {{-1, 0}});
    }
    for (int64_t rank = 0; rank < ranks; ++rank) {
      std::vector<TestTensor> shards;
      for (const NamedLayout& named : saved) {
        const TestTensor full = MakeTensor(named.name, DType::kFloat32, {256, 64});
        shards.push_back(NaiveShard(full, named.layout, rank));
      }
      WriteRank(rank, shards);
    }
    options().source.strategy = folder().Write("s.ckpt", ProtobufStrategy(0, layouts));
  }

  // Opens the files of `opened` ranks first.
  ShardSample Sample(const SampleLimits& limits, int64_t opened = 1) const {
    auto source = OpenSource(options().source);
    EXPECT_TRUE(source.ok()) << source.status().message();
    for (int64_t rank = 0; rank < opened; ++rank) {
      EXPECT_TRUE((*source)->tensors().TableOf(0, rank).ok());
    }
    const std::vector<int64_t> stages = {0};
    auto sample = SampleShards((*source)->tensors(), (*source)->rule().source(), ParameterChoice(),
                               stages, limits, {});
    EXPECT_TRUE(sample.ok()) << sample.status().message();
    // What only the sample opened does not count as used.
    EXPECT_EQ((*source)->files().access_counts().mapped, static_cast<size_t>(opened));
    return sample.ok() ? *std::move(sample) : ShardSample();
  }
};

TEST(ShardSampleTest, ManyRanksStayWithinTheBound) {
  const ManyRanks folder(64, 8, 8, 12);
  for (const SampleLimits limits :
       {SampleLimits{1024, 64}, SampleLimits{256, 16}, SampleLimits{64, 8}, SampleLimits{8, 1}}) {
    for (const int64_t opened : {1, 8, 64}) {
      const ShardSample sample = folder.Sample(limits, opened);
      EXPECT_LE(sample.counts.reads, limits.reads);
      EXPECT_LE(sample.counts.files_opened, limits.files);
      EXPECT_LE(sample.counts.bytes, sample.counts.reads * (4096 + 1024));
      EXPECT_GE(sample.counts.parameters, 2U);  // of both layouts
      EXPECT_THAT(sample.differences, IsEmpty());
      EXPECT_THAT(sample.equal, IsEmpty());
    }
  }
}

TEST(ShardSampleTest, FewReadsFindAWrongStrategyOfManyRanks) {
  const SampleLimits limits{256, 16};
  for (const int64_t opened : {1, 4, 64}) {
    EXPECT_THAT(ManyRanks(64, 8, 4, 3).Sample(limits, opened).differences, Not(IsEmpty()));
    EXPECT_THAT(ManyRanks(64, 16, 2, 3).Sample(limits, opened).differences, Not(IsEmpty()));
    // Replicas of the strategy are replicas; ranks that are not are the same, too.
    EXPECT_THAT(ManyRanks(64, 4, 8, 3).Sample(limits, opened).equal, Not(IsEmpty()));
    EXPECT_THAT(ManyRanks(64, 4, 8, 3).Sample(limits, opened).differences, IsEmpty());
  }
}

// Samples the source of `folder`, said to be cut by `layouts`.
ShardSample SampleOf(const ConversionFolder& folder, const std::vector<NamedLayout>& layouts) {
  const std::string strategy = folder.folder().Write("s.ckpt", ProtobufStrategy(0, layouts));
  auto source = OpenSource({folder.options().source.path, strategy});
  EXPECT_TRUE(source.ok()) << source.status().message();
  if (!source.ok()) return {};
  const std::vector<int64_t> stages = {0};
  auto sample = SampleShards((*source)->tensors(), (*source)->rule().source(), ParameterChoice(),
                             stages, {}, {});
  EXPECT_TRUE(sample.ok()) << sample.status().message();
  return sample.ok() ? *std::move(sample) : ShardSample();
}

// Four ranks of a weight and of what tells nothing.
TEST(ShardSampleTest, ConstantsGiveWayToWhatTellsSomething) {
  const ParameterLayout rows = MakeLayout({2, 2}, {{0, -1}});
  ConversionFolder folder;
  std::vector<NamedLayout> layouts;
  std::vector<TestTensor> tensors;
  for (int i = 0; i < 4; ++i) {  // the largest, and zero
    TestTensor zeros = MakeTensor("zero" + std::to_string(i), DType::kFloat32, {512, 64});
    zeros.content.assign(zeros.content.size(), '\0');
    tensors.push_back(zeros);
  }
  tensors.push_back(MakeTensor("w", DType::kFloat32, {256, 64}));
  for (const TestTensor& tensor : tensors) layouts.push_back({tensor.name, rows});
  for (int64_t rank = 0; rank < 4; ++rank) {
    std::vector<TestTensor> shards;
    for (const TestTensor& tensor : tensors) shards.push_back(NaiveShard(tensor, rows, rank));
    if (rank == 2) shards.back().content[0] ^= 1;
    folder.WriteRank(rank, shards);
  }
  const ShardSample sample = SampleOf(folder, layouts);
  ASSERT_THAT(sample.differences, SizeIs(1));
  EXPECT_EQ(sample.differences[0].parameter, "w");
  EXPECT_EQ(sample.differences[0].rank, 2);
  EXPECT_EQ(sample.differences[0].offset, 0U);
  EXPECT_LE(sample.counts.parameters, 2U);  // one of the constants is enough
}

TEST(ShardSampleTest, TheMiddleIsWholeItemsFromTheSecondHalfOn) {
  const ParameterLayout replicas = MakeLayout({2}, {{-1}});
  ConversionFolder folder;
  std::vector<NamedLayout> layouts;
  std::vector<TestTensor> tensors;
  for (int i = 0; i < 4; ++i) {  // the largest, of an odd number of items; each is 1
    TestTensor ones = MakeTensor("one" + std::to_string(i), DType::kFloat32, {16387});
    for (size_t at = 0; at < ones.content.size(); ++at) ones.content[at] = "\0\0\x80\x3f"[at % 4];
    tensors.push_back(ones);
  }
  tensors.push_back(MakeTensor("w", DType::kFloat32, {16385}));
  for (const TestTensor& tensor : tensors) layouts.push_back({tensor.name, replicas});
  const uint64_t last_of_middle = 16385 / 2 * 4 + 4095;
  for (int64_t rank = 0; rank < 2; ++rank) {
    folder.WriteRank(rank, tensors);
    tensors.back().content[last_of_middle] ^= 1;
  }
  const ShardSample sample = SampleOf(folder, layouts);
  ASSERT_THAT(sample.differences, SizeIs(1));
  EXPECT_EQ(sample.differences[0].parameter, "w");
  EXPECT_EQ(sample.differences[0].offset, last_of_middle);
}

// Of another size, as where each rank has notes of its own: indexed, as long as reads are left.
TEST(ShardSampleTest, FilesWithAnotherTableAreIndexed) {
  const ParameterLayout rows = MakeLayout({2, 2}, {{0, -1}});
  ConversionFolder folder;
  const TestTensor full = MakeTensor("w", DType::kFloat32, {256, 64});
  for (int64_t rank = 0; rank < 4; ++rank) {
    TestTensor shard = NaiveShard(full, rows, rank);
    if (rank == 3) shard.content[0] ^= 1;
    const TestTensor own = MakeTensor("own", DType::kInt8, {rank + 1});
    folder.WriteRank(rank, {own, shard});
  }
  const ShardSample sample = SampleOf(folder, {{"w", rows}});
  EXPECT_EQ(sample.counts.files, 4U);
  EXPECT_EQ(sample.counts.comparisons, 2U);
  ASSERT_THAT(sample.differences, SizeIs(1));
  EXPECT_EQ(sample.differences[0].rank, 3);
}

}  // namespace
}  // namespace reshard::shard_sample_test
