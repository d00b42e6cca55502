// CRC-32 and XXH3: known values, in any pieces.
#include "src/digest/crc32.h"

#include <gmock/gmock.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/digest/xxh3.h"
#include "src/digest/xxh3_update.h"

namespace reshard::checksums_test {
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

TEST(Crc32Test, ZerosCountAsIfTheyWereThere) {
  const std::vector<std::byte> zeros(70'000);
  for (const uint64_t count : {0UL, 1UL, 2UL, 3UL, 255UL, 65'537UL, 70'000UL}) {
    Crc32 added;
    Crc32 there;
    for (Crc32* const crc : {&added, &there}) crc->Update(std::as_bytes(std::span("abc", 3)));
    added.UpdateZeros(count);
    there.Update(std::span(zeros).first(count));
    EXPECT_EQ(added.value(), there.value()) << count;
  }
  Crc32 at_once;
  at_once.UpdateZeros(~uint64_t{0});
  Crc32 in_two;
  in_two.UpdateZeros(uint64_t{1} << 63);
  in_two.UpdateZeros((uint64_t{1} << 63) - 1);
  EXPECT_EQ(at_once.value(), in_two.value());
}

TEST(Xxh3Test, IsWhatXxhsumPrints) {
  Xxh3 digest;
  EXPECT_EQ(digest.HexDigest(), "99aa06d3014798d86001c324468d497f");
  digest.Update("abc");
  EXPECT_EQ(digest.HexDigest(), "06b05ab6733a618578af5f94892f3950");
  EXPECT_EQ(ToHex(digest.Digest()), digest.HexDigest());
  digest.Update("def");  // more may follow
  EXPECT_EQ(digest.HexDigest(), "389197a55db2b2e4da35a6714d34f8a2");
  digest.Reset();
  EXPECT_EQ(digest.HexDigest(), "99aa06d3014798d86001c324468d497f");
}

// Each kernel goes on with what another one began.
TEST(Xxh3Test, AllKernelsGiveTheSame) {
  std::vector<std::byte> bytes(100'003);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i >> 3);
  const auto kernels = Xxh3Kernels();
  ASSERT_EQ(kernels.back(), &kLibraryXxh3Kernel);
  for (const size_t size : {0UL, 1UL, 16UL, 240UL, 241UL, 1024UL, 1025UL, bytes.size()}) {
    std::vector<std::string> digests;
    for (const Xxh3Kernel* kernel : kernels) {
      const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                           XXH3_freeState);
      XXH3_128bits_reset(state.get());
      const size_t cut = size / 3;
      kernel->update(state.get(), bytes.data(), cut);
      kernels.back()->update(state.get(), bytes.data() + cut, cut);
      kernel->update(state.get(), bytes.data() + 2 * cut, size - 2 * cut);
      const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
      digests.push_back(ToHex({.low = hash.low64, .high = hash.high64}));
    }
    EXPECT_THAT(digests, testing::Each(digests.back())) << size;
    Xxh3 whole;
    whole.Update(std::span(bytes).first(size));
    EXPECT_EQ(whole.HexDigest(), digests.back());
  }
}

TEST(Xxh3Test, CutsDoNotMatter) {
  const std::vector<std::byte> bytes(1'000'000, std::byte{7});
  Xxh3 whole;
  whole.Update(bytes);
  EXPECT_EQ(whole.HexDigest(), "11a4f7552e348fb14db45d8a3f5456cb");
  Xxh3 parts;
  for (size_t offset = 0, size = 1; offset < bytes.size();
       offset += size, size = size * 3 % 10007) {
    parts.Update(std::span(bytes).subspan(offset, std::min(size, bytes.size() - offset)));
  }
  EXPECT_EQ(parts.Digest(), whole.Digest());
}

TEST(Digest128Test, HexHasTheMostSignificantDigitFirst) {
  EXPECT_EQ(ToHex({.low = 0x1, .high = 0xab00000000000000}), "ab000000000000000000000000000001");
}

}  // namespace
}  // namespace reshard::checksums_test
