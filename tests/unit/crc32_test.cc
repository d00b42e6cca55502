#include "src/digest/crc32.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

namespace reshard {
namespace {

uint32_t CrcOf(std::string_view text) {
  Crc32 crc;
  crc.Update(std::as_bytes(std::span(text)));
  return crc.value();
}

TEST(Crc32Test, IsThatOfZlib) {
  EXPECT_EQ(CrcOf(""), 0U);
  EXPECT_EQ(CrcOf("123456789"), 0xcbf43926U);  // the check value of the CRC's definition
  EXPECT_EQ(CrcOf("The quick brown fox jumps over the lazy dog"), 0x414fa339U);
}

TEST(Crc32Test, CutsDoNotMatter) {
  constexpr std::string_view kText = "The quick brown fox jumps over the lazy dog";
  for (size_t cut = 0; cut <= kText.size(); ++cut) {
    Crc32 crc;
    crc.Update(std::as_bytes(std::span(kText.substr(0, cut))));
    crc.Update({});
    crc.Update(std::as_bytes(std::span(kText.substr(cut))));
    EXPECT_EQ(crc.value(), 0x414fa339U) << cut;
  }
}

}  // namespace
}  // namespace reshard
