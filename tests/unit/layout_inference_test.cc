// Layouts that explain which ranks hold the same, and which part of a reference each of them holds.
#include "src/mindspore/layout_inference.h"

#include <gmock/gmock.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "src/mindspore/layout_grid.h"
#include "src/source/shard_grid.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::layout_inference_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// What `layout` gives the ranks, where all parts differ.
ShardEvidence EvidenceOf(const ParameterLayout& layout, size_t dims, bool reference) {
  const auto grid = MakeGrid(layout, dims, "test");
  EXPECT_TRUE(grid.ok()) << grid.status().message();
  ShardEvidence evidence{grid->cuts(), {}, {}};
  for (int64_t rank = 0; rank < grid->devices(); ++rank) {
    evidence.ranks.push_back(static_cast<ContentClass>(grid->PartNumberOf(rank)));
  }
  if (reference) {
    evidence.parts.resize(static_cast<size_t>(grid->parts()));
    std::iota(evidence.parts.begin(), evidence.parts.end(), ContentClass{0});
  }
  return evidence;
}

ParameterLayout Sharded(ParameterLayout layout, int64_t shards, int64_t step) {
  layout.opt_weight_shard_size = shards;
  layout.opt_weight_shard_step = step;
  return layout;
}

TEST(LayoutInference, AReferenceTellsTheLayout) {
  const struct {
    ParameterLayout layout;
    size_t dims;
  } rows[] = {
      {MakeLayout({1}, {{-1}}), 1},
      {MakeLayout({8}, {{-1, -1}}), 2},
      {MakeLayout({4, 2}, {{0, -1}}), 2},
      {MakeLayout({4, 2}, {{1, -1}}), 2},
      {MakeLayout({2, 2, 2}, {{1, 0}}), 2},
      {MakeLayout({2, 2, 2}, {{0, 2}}), 2},
      {MakeLayout({3, 2}, {{-1, 1, 0}}), 3},
      {Sharded(MakeLayout({4, 2}, {{0, -1}}), 4, 2), 2},
      {Sharded(MakeLayout({8}, {{-1}}), 8, 1), 1},
  };
  for (const auto& [layout, dims] : rows) {
    const ShardEvidence evidence = EvidenceOf(layout, dims, true);
    const LayoutCandidates candidates = FindLayouts(evidence);
    ASSERT_THAT(candidates.found, SizeIs(1)) << ToString(layout.device_matrix);
    EXPECT_FALSE(candidates.more);
    const LayoutCandidate& found = candidates.found[0];
    EXPECT_TRUE(found.HasParts(evidence));
    EXPECT_TRUE(found.Explains(evidence));
    EXPECT_EQ(found.Contents(evidence), evidence.parts);
    // Read as any other layout, it gives each rank the part that it holds.
    const ShardEvidence again = EvidenceOf(found.layout, dims, true);
    EXPECT_EQ(again.cuts, evidence.cuts);
    EXPECT_EQ(again.ranks, evidence.ranks);
  }
}

// As pipelines of two device matrices interleave them: no single axis stands for the dimension.
TEST(LayoutInference, SeveralAxesOfADimensionAreFoundByValuesAlone) {
  const ParameterLayout layout = MakeLayout({2, 2, 2}, {{0, 2}, {-1}});
  const ShardEvidence evidence = EvidenceOf(layout, 2, true);
  EXPECT_THAT(FindLayouts(evidence).found, SizeIs(1));
  for (const LayoutCandidate& found : FindLayouts(EvidenceOf(layout, 2, false)).found) {
    EXPECT_THAT(found.layout.tensor_map, SizeIs(1)) << "of one axis a dimension";
  }
}

TEST(LayoutInference, ReplicasTellWhichDigitsCut) {
  // The low bit cuts, by rows or by optimizer sharding; which part comes first nobody can tell.
  const ShardEvidence evidence{{2}, {0, 1, 0, 1}, {}};
  const LayoutCandidates candidates = FindLayouts(evidence);
  ASSERT_THAT(candidates.found, SizeIs(1));
  EXPECT_EQ(candidates.found[0].layout, MakeLayout({2, 2}, {{0}}));
  EXPECT_THAT(candidates.found[0].part_of_rank, ElementsAre(0, 1, 0, 1));
}

TEST(LayoutInference, AmbiguousShardsHaveSeveralLayouts) {
  // Two dimensions in two parts each, all of them different: the axes may be swapped.
  const LayoutCandidates candidates = FindLayouts({{2, 2}, {0, 1, 2, 3}, {}});
  ASSERT_THAT(candidates.found, SizeIs(2));
  EXPECT_NE(candidates.found[0].Contents({{2, 2}, {0, 1, 2, 3}, {}}),
            candidates.found[1].Contents({{2, 2}, {0, 1, 2, 3}, {}}));
}

TEST(LayoutInference, ThePlainestLayoutComesFirst) {
  // All equal: anything fits, also a cut by optimizer shards.
  const LayoutCandidates candidates = FindLayouts({{2}, {0, 0, 0, 0}, {}});
  ASSERT_FALSE(candidates.found.empty());
  EXPECT_EQ(candidates.found[0].layout.opt_weight_shard_size, 0);
}

TEST(LayoutInference, NothingFitsWhereReplicasDiffer) {
  EXPECT_THAT(FindLayouts({{1}, {0, 1}, {}}).found, IsEmpty());        // whole, and not the same
  EXPECT_THAT(FindLayouts({{2}, {0, 1, 1, 1}, {}}).found, IsEmpty());  // three of one part
  EXPECT_THAT(FindLayouts({{2}, {0, 1, 0, 1}, {1, 1}}).found, IsEmpty());  // no such part
  EXPECT_THAT(FindLayouts({{2}, {1, 1}, {0, 1}}).found, IsEmpty());
}

TEST(LayoutInference, WhatACandidateDoesNotExplain) {
  const LayoutCandidate candidate{MakeLayout({2, 2}, {{0}}), {0, 1, 0, 1}};
  EXPECT_TRUE(candidate.Explains({{2}, {5, 6, 5, 6}, {}}));
  EXPECT_FALSE(candidate.Explains({{2}, {5, 5, 6, 6}, {}}));
  EXPECT_TRUE(candidate.HasParts({{2}, {5, 6, 5, 6}, {5, 6}}));
  EXPECT_FALSE(candidate.HasParts({{2}, {5, 6, 5, 6}, {6, 5}}));
  EXPECT_THAT(candidate.Contents({{2}, {5, 6, 5, 6}, {}}), ElementsAre(5, 6));
}

// Equal ranks in 32 parts: there are more layouts than anybody could choose from.
TEST(LayoutInference, ASearchThatIsTooLongIsGivenUp) {
  const LayoutCandidates candidates =
      FindLayouts({{4, 4, 2}, std::vector<ContentClass>(64, 0), {}});
  EXPECT_TRUE(candidates.more);
  EXPECT_EQ(candidates.found.size(), 32U);
}

}  // namespace
}  // namespace reshard::layout_inference_test
