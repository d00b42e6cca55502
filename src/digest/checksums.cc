// The digests of streams of bytes that are not the logical one, and how digests look.
#include <libdeflate.h>
#include <xxhash.h>
#include <zlib.h>

#include <charconv>
#include <cstddef>
#include <limits>
#include <new>

#include "src/base/kernel_list.h"
#include "src/digest/crc32.h"
#include "src/digest/digest128.h"
#include "src/digest/xxh3.h"
#include "src/digest/xxh3_update.h"

namespace reshard {
namespace {

using Available = KernelList<Xxh3Kernel, 3>;

Available Detect() {
  Available available;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) {
    if (__builtin_cpu_supports("avx512f")) {
      available.Add(kAvx512Xxh3Kernel);
    }
    available.Add(kAvx2Xxh3Kernel);
  }
#endif
  available.Add(kLibraryXxh3Kernel);
  return available;
}

void UpdateByLibrary(void* state, const void* bytes, size_t size) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state), bytes, size);
}

}  // namespace

const Xxh3Kernel kLibraryXxh3Kernel{.name = "library", .update = UpdateByLibrary};

std::span<const Xxh3Kernel* const> Xxh3Kernels() {
  static const Available kAvailable = Detect();
  return kAvailable.span();
}

namespace {

// Writes 8 digits, all at once: each in a byte of a number.
void PutHex(uint32_t number, char* out) {
  uint64_t digits = number;
  digits = (digits | digits << 16) & 0x0000ffff0000ffff;
  digits = (digits | digits << 8) & 0x00ff00ff00ff00ff;
  digits = (digits | digits << 4) & 0x0f0f0f0f0f0f0f0f;
  const uint64_t is_letter = (digits + 0x0606060606060606) >> 4 & 0x0101010101010101;
  digits += 0x3030303030303030 + is_letter * ('a' - '0' - 10);
  for (int i = 0; i < 8; ++i) out[i] = static_cast<char>(digits >> (56 - 8 * i) & 0xff);
}

}  // namespace

std::string ToHex(const Digest128& digest) {
  std::string hex;
  SetHex(digest, hex);
  return hex;
}

void SetHex(const Digest128& digest, std::string& hex) {
  hex.resize(32);
  for (size_t i = 0; i < 4; ++i) {
    const uint64_t half = i < 2 ? digest.high : digest.low;
    PutHex(static_cast<uint32_t>(i % 2 == 0 ? half >> 32 : half), hex.data() + 8 * i);
  }
}

std::optional<Digest128> ParseHex(std::string_view hex) {
  constexpr size_t kDigits = 16;  // of each half
  if (hex.size() != 2 * kDigits || hex.find_first_not_of("0123456789abcdef") != hex.npos) {
    return std::nullopt;
  }
  Digest128 digest;
  std::from_chars(hex.data(), hex.data() + kDigits, digest.high, 16);
  std::from_chars(hex.data() + kDigits, hex.data() + 2 * kDigits, digest.low, 16);
  return digest;
}

void Crc32::Update(std::span<const std::byte> bytes) {
  // Without bytes data() may be null, which libdeflate takes for a new beginning.
  if (!bytes.empty()) value_ = libdeflate_crc32(value_, bytes.data(), bytes.size());
}

void Crc32::UpdateZeros(uint64_t count) {
  constexpr uint64_t kMost = std::numeric_limits<z_off_t>::max();
  if (count > kMost) {
    UpdateZeros(count - kMost);
    count = kMost;
  }
  // Of a run of 1, 2, 4 ... zeros, which are put together as `count` says.
  const unsigned char zero = 0;
  uLong run = crc32_z(0, &zero, 1);
  for (uint64_t length = 1; count > 0; length *= 2, count /= 2) {
    const auto bytes = static_cast<z_off_t>(length);
    if (count % 2 == 1) value_ = static_cast<uint32_t>(crc32_combine(value_, run, bytes));
    if (count > 1) run = crc32_combine(run, run, bytes);
  }
}

void Xxh3::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

Xxh3::Xxh3() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  Reset();
}

void Xxh3::Update(std::span<const std::byte> bytes) {
  Update(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void Xxh3::Update(std::string_view bytes) {
  Xxh3Kernels().front()->update(state_.get(), bytes.data(), bytes.size());
}

Digest128 Xxh3::Digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return {.low = hash.low64, .high = hash.high64};
}

std::string Xxh3::HexDigest() const { return ToHex(Digest()); }

void Xxh3::Reset() { XXH3_128bits_reset(state_.get()); }

}  // namespace reshard
