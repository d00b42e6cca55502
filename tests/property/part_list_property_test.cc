// Parts of tensors against a search of all of them: random boxes, many of them equal or empty, and
// uneven grids, as they lie in checkpoints.
#include "src/source/part_list.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/pick.h"

namespace reshard::part_list_property_test {
namespace {

struct Stated {
  Box box;
  int64_t rank = 0;
  std::string array;
};

using Seen = std::tuple<std::vector<int64_t>, std::vector<int64_t>, int64_t, std::string>;

Seen SeenOf(const Box& box, int64_t rank, std::string_view array) {
  return {box.begin, box.extent, rank, std::string(array)};
}

Box AnyBox(const Shape& full) {
  Box box;
  for (const int64_t size : full) {
    const auto begin = Pick<int64_t>(0, size + 1);
    box.begin.push_back(begin);
    box.extent.push_back(Pick<int64_t>(0, size - begin + 1));
  }
  return box;
}

// Boxes anywhere, mostly more than have one box around them.
std::vector<Stated> AnyParts(const Shape& full) {
  std::vector<Stated> parts(Pick<size_t>(1, 700));
  for (Stated& part : parts) {
    part.box = AnyBox(full);
    part.rank = Pick<int64_t>(0, 4);
    part.array = std::to_string(Pick(0, 3));
  }
  return parts;
}

// The boxes of a grid, each at most `most` times, in any order.
std::vector<Stated> AnyGrid(const Shape& full, int most) {
  std::vector<Box> boxes = {Box{}};
  for (const int64_t size : full) {
    std::set<int64_t> begins = {0};
    for (int64_t cut = Pick<int64_t>(0, 30); cut > 0; --cut) begins.insert(Pick<int64_t>(0, size));
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
  std::vector<Stated> parts;
  for (const Box& box : boxes) {
    for (int copies = Pick(1, most + 1); copies > 0; --copies) {
      parts.push_back({box, copies, std::to_string(parts.size())});
    }
  }
  for (size_t i = parts.size(); i > 1; --i) std::swap(parts[i - 1], parts[Pick<size_t>(0, i)]);
  return parts;
}

Shape AnyShape() {
  Shape full(Pick<size_t>(0, 4));
  for (int64_t& size : full) size = Pick<int64_t>(1, full.size() == 3 ? 12 : 60);
  return full;
}

RC_GTEST_PROP(PartListProperty, FindsThePartsThatShareElements, ()) {
  // Other tensors lie around the one that is asked for.
  const std::vector<std::string> names = {"b", "c", "a"};
  const Shape full = AnyShape();
  std::vector<std::vector<Stated>> stated;
  PartListBuilder builder;
  for (const std::string& name : names) {
    stated.push_back(PickBool() ? AnyParts(full) : AnyGrid(full, Pick(1, 20)));
    const size_t tensor = builder.AddTensor(name, full);
    for (const Stated& part : stated.back()) {
      builder.AddPart(tensor, part.box, part.box.extent, {part.rank, part.array});
    }
  }
  const PartList list = std::move(builder).Finish();
  RC_ASSERT(list.Find("aa") == nullptr);
  for (size_t i = 0; i < names.size(); ++i) {
    const PartList::Tensor* const tensor = list.Find(names[i]);
    RC_ASSERT(tensor != nullptr && tensor->name == names[i] && *tensor->full == full);
    RC_ASSERT(tensor->parts.size() == stated[i].size());
    for (int query = 0; query < 5; ++query) {
      const Box box = AnyBox(full);
      std::multiset<Seen> expected;
      for (const Stated& part : stated[i]) {
        if (!Intersect(part.box, box)) continue;
        expected.insert(SeenOf(part.box, part.rank, part.array));
      }
      std::multiset<Seen> seen;
      std::vector<Box> boxes;
      const auto visit = [&](std::span<const PartList::Part> replicas) {
        boxes.push_back(replicas.front().box());
        for (const PartList::Part& part : replicas) {
          RC_ASSERT(part.box() == boxes.back());
          RC_ASSERT(part.shape() == boxes.back().extent);
          seen.insert(SeenOf(part.box(), part.rank(), part.place().array));
        }
        return true;
      };
      list.ForEachOverlap(*tensor, box, visit);
      RC_ASSERT(seen == expected);
      const auto is_before = [](const Box& a, const Box& b) {
        return std::tie(a.begin, a.extent) < std::tie(b.begin, b.extent);
      };
      // In order, and each box once.
      RC_ASSERT(std::adjacent_find(boxes.begin(), boxes.end(), [&](const Box& a, const Box& b) {
                  return !is_before(a, b);
                }) == boxes.end());
      size_t calls = 0;
      list.ForEachOverlap(*tensor, box,
                          [&](std::span<const PartList::Part>) { return ++calls < 2; });
      RC_ASSERT(calls == std::min<size_t>(boxes.size(), 2));
    }
  }
}

}  // namespace
}  // namespace reshard::part_list_property_test
