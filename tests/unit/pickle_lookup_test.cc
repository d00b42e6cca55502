#include "format/pickle/pickle_lookup.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/pickle/pickle_expansion.h"
#include "format/pickle/pickle_reader.h"
#include "tests/support/torch_bytes.h"

namespace reshard::pickle_lookup_test {
namespace {

TEST(PickleLookupTest, FindsAsThePickleDoes) {
  for (const int keys : {3, 100}) {
    std::vector<std::pair<std::string, std::string>> entries;
    for (int i = 0; i < keys; ++i) {
      entries.emplace_back(PickledText("k" + std::to_string(i * 7 % keys)), PickledInteger(i));
    }
    entries.emplace_back(PickledText("k1"), PickledText("last"));
    entries.emplace_back(PickledInteger(5), PickledText("of a number"));
    entries.emplace_back(PickledText(std::string(100, 'x')), PickledText("of a long key"));
    entries.emplace_back(PickledText(""), PickledText("of none"));
    const std::string bytes = PickleOf(PickledDict(entries));
    const auto pickle = ReadPickle(bytes);
    ASSERT_TRUE(pickle.ok()) << pickle.status().message();
    PickleLookup lookup(*pickle);
    for (int again = 0; again < 2; ++again) {
      EXPECT_EQ(lookup.Find(pickle->top(), "missing"), nullptr);
      EXPECT_EQ(pickle->Text(*lookup.Find(pickle->top(), "")), "of none");
      EXPECT_EQ(pickle->Text(*lookup.Find(pickle->top(), "k1")), "last");
      for (int i = 0; i < keys; ++i) {
        const std::string key = "k" + std::to_string(i);
        EXPECT_EQ(lookup.Find(pickle->top(), key), pickle->Find(pickle->top(), key)) << key;
      }
    }
  }
}

TEST(PickleExpansionTest, FollowsFromTheSizeOfThePickle) {
  PickleExpansion expansion(uint64_t{1} << 20);
  EXPECT_TRUE(expansion.Take(uint64_t{20} << 20).ok());
  EXPECT_TRUE(expansion.Take(0).ok());
  EXPECT_EQ(expansion.Take(1).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(expansion.Take(UINT64_MAX).code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace reshard::pickle_lookup_test
