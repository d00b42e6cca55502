// The logical digest against one computed bit by bit, on every path that this processor has.
#include "src/digest/logical_digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "src/os/fault_guard.h"
#include "src/os/file_pages.h"
#include "src/os/local_file.h"
#include "tests/support/mapped_source.h"
#include "tests/support/temporary_folder.h"

namespace reshard::logical_digest_test {
namespace {

// A polynomial over GF(2) modulo x^128 + x^7 + x^2 + x + 1, the coefficient of x^k in element k.
using Bits = std::bitset<128>;

void TimesX(Bits& value) {
  const bool over = value[127];
  value <<= 1;
  if (over) value ^= Bits(1 << 7 | 1 << 2 | 1 << 1 | 1);
}

// The definition, bit by bit: the sum of byte_i * x^(8 (position + i)). In hexadecimal.
std::string NaiveDigest(const std::vector<std::byte>& bytes, uint64_t position) {
  Bits power(1);
  for (uint64_t i = 0; i < 8 * position; ++i) TimesX(power);
  Bits sum;
  for (const std::byte byte : bytes) {
    for (int j = 0; j < 8; ++j) {
      if ((byte >> j & std::byte{1}) != std::byte{0}) sum ^= power;
      TimesX(power);
    }
  }
  std::string hex;
  for (size_t digit = 32; digit-- > 0;) {
    int value = 0;
    for (size_t k = 4; k-- > 0;) value = 2 * value + (sum[4 * digit + k] ? 1 : 0);
    hex += "0123456789abcdef"[value];
  }
  return hex;
}

std::vector<std::byte> Bytes(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

std::vector<std::byte> Counting(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

std::vector<std::byte> Squares(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * i >> 3);
  return bytes;
}

class LogicalDigestTest : public testing::TestWithParam<const LogicalKernel*> {
 protected:
  Digest128 Digest(const std::byte* bytes, uint64_t size, uint64_t position) {
    Digest128 sum;
    LogicalHasher(*GetParam()).Add(sum, bytes, size, position);
    return sum;
  }
  Digest128 Digest(const std::vector<std::byte>& bytes, uint64_t position) {
    return Digest(bytes.data(), bytes.size(), position);
  }

  std::vector<std::byte> RandomBytes(size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    return bytes;
  }
  uint64_t Below(uint64_t end) { return random_() % end; }
  // Any size, the smaller ones more often.
  uint64_t AnySize(uint64_t end) { return Below(Below(end) + 1); }

  std::mt19937_64 random_{20240229};  // NOLINT: the same cases each time
};

TEST_P(LogicalDigestTest, KnownVectors) {
  struct Vector {
    const char* name;
    std::vector<std::byte> bytes;
    uint64_t position;
    const char* hex;
  };
  const std::vector<std::byte> one = {std::byte{1}};
  const Vector vectors[] = {
      {"nothing", {}, 7, "00000000000000000000000000000000"},
      {"zeros", std::vector<std::byte>(100), 7, "00000000000000000000000000000000"},
      {"1", one, 0, "00000000000000000000000000000001"},
      {"x^120", one, 15, "01000000000000000000000000000000"},
      {"x^128 = x^7 + x^2 + x + 1", one, 16, "00000000000000000000000000000087"},
      {"x^256 = x^14 + x^4 + x^2 + 1", one, 32, "00000000000000000000000000004015"},
      {"x^1024", one, 128, "00000000000000000100000000010101"},
      {"16 bytes are their own digest", Bytes("0123456789abcdef"), 0,
       "66656463626139383736353433323130"},
      // Computed with Python's integers.
      {"all bytes", Counting(256), 1000, "e8e4fa695b17e6de5ecd747583345dbb"},
      {"the last position", one, ~uint64_t{0} >> 1, "e4c2c57e31da2ff653d47f657d9736d3"},
      {"a long run", Squares(100'000), 12'345'678'901, "9bb8d9ab13254fe1cf66335d440e75af"},
  };
  for (const Vector& vector : vectors) {
    EXPECT_EQ(ToHex(Digest(vector.bytes, vector.position)), vector.hex) << vector.name;
  }
}

TEST_P(LogicalDigestTest, EqualsTheDefinition) {
  // The cases are the same for each kernel, and the definition takes far longer than any of them.
  static std::vector<std::string> defined;
  for (size_t i = 0; i < 200; ++i) {
    const std::vector<std::byte> bytes = RandomBytes(AnySize(i % 20 == 0 ? 3000 : 300));
    const uint64_t position = AnySize(2000);
    if (i == defined.size()) defined.push_back(NaiveDigest(bytes, position));
    ASSERT_EQ(ToHex(Digest(bytes, position)), defined[i])
        << bytes.size() << " bytes at " << position;
  }
}

TEST_P(LogicalDigestTest, EqualsThePortablePath) {
  const std::vector<std::byte> bytes = RandomBytes(100'000);
  LogicalHasher hasher(*GetParam());
  LogicalHasher portable(kPortableLogicalKernel);
  for (int i = 0; i < 3000; ++i) {
    const uint64_t begin = Below(200);  // any alignment
    const uint64_t size = AnySize(i % 10 == 0 ? bytes.size() - begin : 1000);
    const uint64_t position = i % 2 == 0 ? AnySize(uint64_t{1} << 40) : random_() >> 1;
    Digest128 sum;
    Digest128 expected;
    hasher.Add(sum, bytes.data() + begin, size, position);
    portable.Add(expected, bytes.data() + begin, size, position);
    ASSERT_EQ(sum, expected) << size << " bytes at " << position;
  }
}

// Long runs are folded in another way, checked by cutting them into short ones here.
TEST_P(LogicalDigestTest, EverySizeAroundThoseOfTheRing) {
  const std::vector<std::byte> bytes = RandomBytes(60'000);
  const uint64_t ring = GetParam()->ring_bytes;
  for (const uint64_t rings : {1U, 2U, 3U, 5U}) {
    for (int64_t more = -70; more <= 70; ++more) {
      const uint64_t size = rings * ring + static_cast<uint64_t>(more);
      LogicalHasher hasher(*GetParam());
      Digest128 expected;
      for (uint64_t offset = 0; offset < size; offset += 1000) {
        hasher.Add(expected, bytes.data() + 3 + offset, std::min<uint64_t>(1000, size - offset),
                   77 + offset);
      }
      ASSERT_EQ(Digest(bytes.data() + 3, size, 77), expected) << size;
    }
  }
}

TEST_P(LogicalDigestTest, AnyCutInAnyOrderAddsUp) {
  for (int i = 0; i < 30; ++i) {
    const std::vector<std::byte> bytes = RandomBytes(1 + AnySize(50'000));
    const uint64_t position = AnySize(uint64_t{1} << 50);
    std::vector<std::pair<uint64_t, uint64_t>> parts;
    const uint64_t longest = i % 3 == 0 ? bytes.size() : 700;
    for (uint64_t begin = 0; begin < bytes.size();) {
      const uint64_t size = std::min(bytes.size() - begin, AnySize(longest) + 1);
      parts.emplace_back(begin, size);
      begin += size;
    }
    std::shuffle(parts.begin(), parts.end(), random_);
    LogicalHasher hasher(*GetParam());
    LogicalHasher other(*GetParam());
    Digest128 sum;
    Digest128 rest;
    for (size_t part = 0; part < parts.size(); ++part) {
      const auto& [begin, size] = parts[part];
      if (part % 3 == 0) {
        other.Add(rest, bytes.data() + begin, size, position + begin);
      } else {
        hasher.Add(sum, bytes.data() + begin, size, position + begin);
      }
    }
    EXPECT_EQ(sum ^ rest, Digest(bytes, position)) << bytes.size() << " bytes";
  }
}

TEST_P(LogicalDigestTest, RowsOfRunsEqualTheirRuns) {
  const std::vector<std::byte> bytes = RandomBytes(400'000);
  LogicalHasher hasher(*GetParam());
  for (int i = 0; i < 1500; ++i) {
    LogicalRuns runs;
    runs.count = AnySize(i % 20 == 0 ? 1000 : 70);
    runs.size = i % 2 == 0 ? AnySize(300) : uint64_t{1} << Below(10);
    if (i % 50 == 0) {  // long enough to be folded
      runs.count = Below(4);
      runs.size = 20'000 + Below(5000);
    }
    const uint64_t most = runs.count == 0 ? 0 : bytes.size() / runs.count;
    runs.bytes_stride = most <= runs.size ? runs.size : runs.size + AnySize(most - runs.size);
    const uint64_t spread = runs.bytes_stride * runs.count;
    runs.bytes = bytes.data() + (spread < bytes.size() ? Below(bytes.size() - spread) : 0);
    runs.size = std::min(runs.size, most);
    runs.bytes_stride = std::min(runs.bytes_stride, most);
    // The same few distances often, backwards too.
    runs.position_stride = i % 3 == 0 ? 4096 : AnySize(uint64_t{1} << 30);
    runs.position = AnySize(uint64_t{1} << 45);
    if (i % 7 == 0) {
      runs.position += runs.count * runs.position_stride;
      runs.position_stride = ~runs.position_stride + 1;
    }
    Digest128 sum;
    hasher.AddRuns(sum, runs);
    Digest128 expected;
    LogicalHasher one_by_one(*GetParam());
    for (uint64_t run = 0; run < runs.count; ++run) {
      one_by_one.Add(expected, runs.bytes + run * runs.bytes_stride, runs.size,
                     runs.position + run * runs.position_stride);
    }
    ASSERT_EQ(sum, expected) << runs.count << " runs of " << runs.size << " bytes, "
                             << runs.position_stride << " apart";
  }
}

TEST_P(LogicalDigestTest, AnyChangeOfPlaceIsSeen) {
  const std::vector<std::byte> bytes = RandomBytes(4096);
  const Digest128 digest = Digest(bytes, 0);
  for (int i = 0; i < 200; ++i) {
    // Two blocks of one size exchanged, a block shifted by a few bytes, a bit flipped.
    const uint64_t size = 1 + Below(512);
    const uint64_t a = Below(2048 - size);
    const uint64_t b = 2048 + Below(2048 - size);
    if (std::equal(&bytes[a], &bytes[a] + size, &bytes[b])) continue;
    std::vector<std::byte> exchanged = bytes;
    std::swap_ranges(&exchanged[a], &exchanged[a] + size, &exchanged[b]);
    ASSERT_NE(Digest(exchanged, 0), digest) << size << " bytes of " << a << " and " << b;

    std::vector<std::byte> shifted = bytes;
    std::rotate(&shifted[a], &shifted[a] + 1 + Below(16), &shifted[a] + size + 16);
    if (shifted != bytes) {
      ASSERT_NE(Digest(shifted, 0), digest) << size << " bytes at " << a;
    }
    std::vector<std::byte> flipped = bytes;
    flipped[a] ^= std::byte{1} << Below(8);
    ASSERT_NE(Digest(flipped, 0), digest) << a;
    ASSERT_NE(Digest(bytes, 1 + Below(1000)), digest);
  }
}

// Nothing around the bytes counts, and nothing behind them is touched (AddressSanitizer sees that).
TEST_P(LogicalDigestTest, ReadsItsBytesOnly) {
  for (size_t size = 0; size < 700; ++size) {
    const std::vector<std::byte> bytes = RandomBytes(size);  // an allocation of just this size
    std::vector<std::byte> inside = RandomBytes(size + 200);
    std::copy(bytes.begin(), bytes.end(), inside.begin() + 100);
    ASSERT_EQ(Digest(bytes, 5), Digest(inside.data() + 100, size, 5)) << size;
  }
}

// A map whose file has lost its pages after the first.
TEST_P(LogicalDigestTest, WorksOnAfterAFault) {
  const TemporaryFolder folder;
  const size_t size = 20 * PageSize();
  const std::string path = folder.Write("a", std::string(size, 'x'));
  const LocalFile source = MappedSource(path);
  const std::byte* const map = source.map();
  std::filesystem::resize_file(path, PageSize());

  LogicalHasher hasher(*GetParam());
  Digest128 sum;
  hasher.Add(sum, map, 100, 1'000'000);
  const Digest128 before = sum;
  const auto fault = [&](auto read) { return Guarded(map, size, read).has_value(); };
  Digest128 lost;
  EXPECT_TRUE(fault([&] { hasher.Add(lost, map, size, 5'000'000); }));
  EXPECT_TRUE(fault([&] { hasher.Add(lost, map + PageSize() - 50, 100, 6'000'000); }));
  EXPECT_TRUE(fault([&] {
    hasher.AddRuns(lost, {.bytes = map,
                          .size = 4,
                          .position = 7'000'000,
                          .count = size / 64,
                          .bytes_stride = 64,
                          .position_stride = 640});
  }));
  sum = before;
  hasher.Add(sum, map + 100, 50, 1'000'100);
  EXPECT_EQ(sum, Digest(std::vector<std::byte>(150, std::byte{'x'}), 1'000'000));
}

std::vector<const LogicalKernel*> Kernels() {
  return {LogicalKernels().begin(), LogicalKernels().end()};
}

INSTANTIATE_TEST_SUITE_P(Kernels, LogicalDigestTest, testing::ValuesIn(Kernels()),
                         [](const auto& param) { return std::string(param.param->name); });

TEST(LogicalKernelsTest, ThePortablePathIsAlwaysThereAndLast) {
  EXPECT_EQ(LogicalKernels().back(), &kPortableLogicalKernel);
  for (const LogicalKernel* kernel : LogicalKernels()) {
    EXPECT_LE(kernel->ring_bytes, kMaxRingBytes) << kernel->name;
  }
}

}  // namespace
}  // namespace reshard::logical_digest_test
