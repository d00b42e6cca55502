#include "tools/gen/sample_values.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace reshard {
namespace {

constexpr uint64_t kWordBytes = sizeof(uint64_t);
constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;

// The finaliser of SplitMix64: neighbouring numbers become unrelated ones.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// FNV-1a. std::hash could differ from one standard library to the next.
uint64_t Hash(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  return hash;
}

// One lane's bits, repeated over a word.
constexpr uint64_t Repeat16(uint64_t lane) { return lane * 0x0001000100010001; }
constexpr uint64_t Repeat32(uint64_t lane) { return lane * 0x0000000100000001; }

}  // namespace

SampleValues::SampleValues(std::string_view name, DType dtype) : seed_(Mix(Hash(name))) {
  uint64_t sign = 0;
  switch (dtype) {
    case DType::kFloat32:
      sign = Repeat32(0x80000000);
      mask_ = Repeat32(0x83FFFFFF);
      base_ = Repeat32((127 - 8) << 23);
      break;
    case DType::kFloat16:
      sign = Repeat16(0x8000);
      mask_ = Repeat16(0x9FFF);
      base_ = Repeat16((15 - 8) << 10);
      break;
    default:
      assert(dtype == DType::kBFloat16);
      sign = Repeat16(0x8000);
      mask_ = Repeat16(0x83FF);
      base_ = Repeat16((127 - 8) << 7);
  }
  if (name.starts_with("adam_v.")) mask_ &= ~sign;
}

uint64_t SampleValues::Word(uint64_t index) const {
  return (Mix(seed_ + index * kGoldenRatio) & mask_) + base_;
}

void SampleValues::Fill(uint64_t offset, std::span<std::byte> out) const {
  if (out.empty()) return;  // memcpy wants a pointer even for no bytes
  uint64_t index = offset / kWordBytes;
  if (const uint64_t skip = offset % kWordBytes; skip != 0) {
    const uint64_t word = Word(index++);
    const size_t length = std::min<size_t>(kWordBytes - skip, out.size());
    std::memcpy(out.data(), reinterpret_cast<const std::byte*>(&word) + skip, length);
    out = out.subspan(length);
  }
  const size_t words = out.size() / kWordBytes;
  for (size_t i = 0; i < words; ++i) {
    const uint64_t word = Word(index + i);
    std::memcpy(out.data() + i * kWordBytes, &word, kWordBytes);
  }
  if (const size_t rest = out.size() % kWordBytes; rest != 0) {
    const uint64_t word = Word(index + words);
    std::memcpy(out.data() + words * kWordBytes, &word, rest);
  }
}

}  // namespace reshard
