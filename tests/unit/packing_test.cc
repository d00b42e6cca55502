#include "src/full/packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace reshard::packing_test {
namespace {

using ::testing::ElementsAre;

Packing Unified(const std::vector<uint64_t>& bytes, uint64_t most) {
  return PackUnified(bytes, most);
}

Packing HuggingFace(const std::vector<uint64_t>& bytes, uint64_t most) {
  return PackHuggingFace(bytes, most);
}

TEST(PackingTest, UnifiedFilesFillEvenlyTheLargestFirst) {
  EXPECT_THAT(Unified({3, 9, 3, 5}, 10), ElementsAre(ElementsAre(1), ElementsAre(3, 0, 2)));
  // As many files as bytes fill, no more than there are tensors.
  EXPECT_THAT(Unified({5, 5}, 10), ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(Unified({5, 6}, 10), ElementsAre(ElementsAre(1), ElementsAre(0)));
  EXPECT_THAT(Unified({5, 60}, 10), ElementsAre(ElementsAre(1), ElementsAre(0)));
  EXPECT_THAT(Unified({0, 0}, 10), ElementsAre(ElementsAre(0, 1)));
}

// The example of huggingface_hub's documentation: 10 GB, tensors of 6, 6, 2, 6, 2, 2.
TEST(PackingTest, HuggingFaceFilesFillInOrder) {
  EXPECT_THAT(HuggingFace({6, 6, 2, 6, 2, 2}, 10),
              ElementsAre(ElementsAre(0), ElementsAre(1, 2), ElementsAre(3, 4, 5)));
}

TEST(PackingTest, ALargeTensorComesBeforeTheFileThatIsBeingFilled) {
  EXPECT_THAT(HuggingFace({4, 11, 4, 4}, 10),
              ElementsAre(ElementsAre(1), ElementsAre(0, 2), ElementsAre(3)));
  EXPECT_THAT(HuggingFace({11}, 10), ElementsAre(ElementsAre(0)));
  EXPECT_THAT(HuggingFace({10, 0, 1}, 10), ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
  EXPECT_TRUE(HuggingFace({}, 10).empty());
}

}  // namespace
}  // namespace reshard::packing_test
