// The proof that parts are a tensor, against a count of each element: grids with boxes taken away,
// added, repeated and moved.
#include "src/source/part_coverage.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/source/part_list.h"
#include "src/tensor/byte_box.h"
#include "tests/support/pick.h"

namespace reshard::part_coverage_property_test {
namespace {

std::string PathOf(int64_t rank) { return "file" + std::to_string(rank); }

Status Checked(const Shape& full, const std::vector<Box>& boxes) {
  PartListBuilder builder;
  const size_t tensor = builder.AddTensor("w", full);
  int64_t rank = 0;
  for (const Box& box : boxes) builder.AddPart(tensor, box, box.extent, rank++);
  const PartList list = std::move(builder).Finish();
  return CheckCoverage(list, *list.Find("w"), PathOf);
}

std::vector<Box> AnyGrid(const Shape& full) {
  std::vector<Box> boxes = {Box{}};
  for (const int64_t size : full) {
    std::set<int64_t> begins = {0};
    for (int64_t cut = Pick<int64_t>(0, 6); cut > 0; --cut) {
      begins.insert(Pick<int64_t>(0, size + 1));
    }
    std::vector<Box> next;
    for (const Box& box : boxes) {
      for (auto begin = begins.begin(); begin != begins.end(); ++begin) {
        const int64_t end = std::next(begin) == begins.end() ? size : *std::next(begin);
        next.push_back(box);
        next.back().begin.push_back(*begin);
        next.back().extent.push_back(end - *begin);
      }
    }
    boxes = std::move(next);
  }
  return boxes;
}

// Changes some boxes, or none. They stay within the tensor.
void Damage(const Shape& full, std::vector<Box>& boxes) {
  for (int changes = Pick(0, 4); changes > 0 && !boxes.empty(); --changes) {
    const auto place = Pick<size_t>(0, boxes.size());
    const Box box = boxes[place];
    switch (Pick(0, 4)) {
      case 0:
        boxes.erase(boxes.begin() + static_cast<std::ptrdiff_t>(place));
        break;
      case 1:
        boxes.push_back(box);
        break;
      case 2: {
        Box other;
        for (const int64_t size : full) {
          other.begin.push_back(Pick<int64_t>(0, size + 1));
          other.extent.push_back(Pick<int64_t>(0, size - other.begin.back() + 1));
        }
        boxes.push_back(std::move(other));
        break;
      }
      default:
        if (full.empty()) break;
        const auto d = Pick<size_t>(0, full.size());
        Box& moved = boxes[place];
        if (moved.begin[d] + moved.extent[d] < full[d]) ++moved.begin[d];
    }
  }
}

RC_GTEST_PROP(PartCoverageProperty, EachElementIsInOneBox, ()) {
  Shape full(Pick<size_t>(0, 4));
  for (int64_t& size : full) size = Pick<int64_t>(PickBool() ? 1 : 0, 9);
  std::vector<Box> boxes = AnyGrid(full);
  Damage(full, boxes);
  for (size_t i = boxes.size(); i > 1; --i) std::swap(boxes[i - 1], boxes[Pick<size_t>(0, i)]);

  std::vector<Box> distinct;
  for (const Box& box : boxes) {
    if (!box.empty() && std::find(distinct.begin(), distinct.end(), box) == distinct.end()) {
      distinct.push_back(box);
    }
  }
  // How many of them each element is in, in row-major order.
  bool overlaps = false;
  uint64_t missing = 0;
  std::optional<std::vector<int64_t>> hole;
  std::vector<int64_t> index(full.size(), 0);
  for (uint64_t left = Volume(Box::Whole(full)); left > 0; --left) {
    const auto holds = [&](const Box& box) {
      for (size_t d = 0; d < full.size(); ++d) {
        if (index[d] < box.begin[d] || index[d] >= box.begin[d] + box.extent[d]) return false;
      }
      return true;
    };
    const auto count = std::count_if(distinct.begin(), distinct.end(), holds);
    overlaps = overlaps || count > 1;
    if (count == 0 && missing++ == 0) hole = index;
    for (size_t d = full.size(); d-- > 0;) {
      if (++index[d] < full[d]) break;
      index[d] = 0;
    }
  }

  const auto found = FirstHole(Box::Whole(full), distinct);
  RC_ASSERT(found.has_value() == hole.has_value());
  if (found) {
    RC_ASSERT(found->begin == *hole);
    RC_ASSERT(!found->empty());
    for (const Box& box : distinct) RC_ASSERT(!Intersect(box, *found));
  }
  const Status status = Checked(full, boxes);
  RC_ASSERT(status.ok() == (!overlaps && !hole));
  if (status.ok()) return;
  RC_ASSERT(status.code() == StatusCode::kMismatch);
  if (!overlaps) {
    RC_ASSERT(status.message().find(std::to_string(missing) + " of ") != std::string::npos);
    return;
  }
  const auto says = [&](const Box& box) {
    return status.message().find("box " + ToString(box)) != std::string::npos;
  };
  bool named = false;
  for (const Box& a : distinct) {
    for (const Box& b : distinct) {
      named = named || (!(a == b) && Intersect(a, b) && says(a) && says(b));
    }
  }
  RC_ASSERT(named);
}

TEST(PartCoverageTest, ManyBoxesOfAGrid) {
  constexpr int64_t kRows = 400;
  constexpr int64_t kColumns = 256;
  std::vector<Box> boxes;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t column = 0; column < kColumns; ++column) {
      boxes.push_back({{row * 3, column * 5}, {3, 5}});
    }
  }
  const Shape full = {kRows * 3, kColumns * 5};
  EXPECT_EQ(Checked(full, boxes).message(), "");
  boxes.erase(boxes.begin() + 100 * kColumns + 7);
  const Status status = Checked(full, boxes);
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_NE(status.message().find("15 of 1536000 elements"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("box [300:303, 35:40]"), std::string::npos) << status.message();
}

// A square in rings, each of four boxes that turn around the next ring. No straight cut separates
// any of them.
std::vector<Box> Rings(int64_t size) {
  std::vector<Box> boxes;
  for (int64_t first = 0; first < size / 2; ++first) {
    const int64_t last = size - 1 - first;
    const int64_t length = last - first;
    boxes.push_back({{first, first}, {1, length}});
    boxes.push_back({{first, last}, {length, 1}});
    boxes.push_back({{last, first + 1}, {1, length}});
    boxes.push_back({{first + 1, first}, {length, 1}});
  }
  return boxes;
}

TEST(PartCoverageTest, BoxesThatInterlock) {
  constexpr int64_t kSize = 100;
  std::vector<Box> boxes = Rings(kSize);
  EXPECT_EQ(Checked({kSize, kSize}, boxes).message(), "");
  boxes.erase(boxes.begin() + 90);
  const Status status = Checked({kSize, kSize}, boxes);
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_NE(status.message().find("the first are box "), std::string::npos) << status.message();
}

// As many steps as pairs would take minutes for some more of them.
TEST(PartCoverageTest, SoManyBoxesThatInterlockAreRefused) {
  constexpr int64_t kSize = 8'000;
  const std::vector<Box> boxes = Rings(kSize);
  ASSERT_GT(boxes.size() * boxes.size() / 2, 5 * MostBoxSteps(boxes.size()));
  const Status status = Checked({kSize, kSize}, boxes);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("its 16000 boxes interlock"), std::string::npos)
      << status.message();
}

// A square in strips: the top row, the left column of the rest, and so on.
std::vector<Box> Strips(int64_t size) {
  std::vector<Box> boxes;
  for (int64_t first = 0; first < size; ++first) {
    boxes.push_back({{first, first}, {1, size - first}});
    if (first + 1 < size) boxes.push_back({{first + 1, first}, {size - first - 1, 1}});
  }
  return boxes;
}

// Each cut separates one box, and the others are sorted again.
TEST(PartCoverageTest, SoManyBoxesThatAreCutOffOneByOneAreRefused) {
  EXPECT_EQ(Checked({200, 200}, Strips(200)).message(), "");
  EXPECT_EQ(Checked({16'000, 16'000}, Strips(16'000)).code(), StatusCode::kResourceExhausted);
}

TEST(PartCoverageTest, AHoleAmongManyBoxesThatInterlock) {
  constexpr int64_t kSize = 4'000;
  std::vector<Box> boxes = Rings(kSize);
  boxes.pop_back();
  const Status status = Checked({kSize, kSize}, boxes);
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_NE(status.message().find("1 of 16000000 elements are in no file"), std::string::npos)
      << status.message();
}

TEST(PartCoverageTest, BoxesOutsideTheTensor) {
  for (const Box& box : std::vector<Box>{
           {{0, 1}, {2, 4}}, {{-1, 0}, {3, 4}}, {{0, 5}, {2, 0}}, {{0, INT64_MAX}, {2, 4}}}) {
    const Status status = Checked({2, 4}, {box});
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_NE(status.message().find("outside the full shape [2, 4]"), std::string::npos)
        << status.message();
  }
}

}  // namespace
}  // namespace reshard::part_coverage_property_test
