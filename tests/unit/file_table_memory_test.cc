// What the table of a file takes for each tensor, while headers are read and after. Counts by an
// operator new of its own what the allocator holds.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "format/mindspore_checkpoint/checkpoint_reader.h"
#include "format/safetensors/safetensors_reader.h"
#include "tests/support/checkpoint_bytes.h"

namespace {

constexpr size_t kOfAllocation = sizeof(size_t);  // beside what may be used of it

size_t held = 0;
size_t most_held = 0;

void* Allocate(size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  held += malloc_usable_size(memory) + kOfAllocation;
  most_held = std::max(most_held, held);
  return memory;
}

void Free(void* memory) {
  if (memory == nullptr) return;
  held -= malloc_usable_size(memory) + kOfAllocation;
  std::free(memory);
}

}  // namespace

[[gnu::noinline]] void* operator new(size_t size) { return Allocate(size); }
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return Allocate(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { Free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t /*size*/) noexcept { Free(memory); }

namespace reshard::file_table_memory_test {
namespace {

// The sizes that the tensors of a layer have.
constexpr int64_t kRows[] = {8, 2, 2, 8, 24, 24, 8, 1, 1};

std::string NameOf(size_t tensor) {
  return fmt::format("model.layers.{}.self_attn.q_proj_{}.weight", tensor / std::size(kRows),
                     tensor % std::size(kRows));
}

// In the order of the bytes, or against it.
std::string Safetensors(size_t tensors, bool in_order) {
  std::vector<std::string> members;
  uint64_t end = 0;
  for (size_t i = 0; i < tensors; ++i) {
    const int64_t rows = kRows[i % std::size(kRows)];
    members.push_back(fmt::format(R"("{}":{{"dtype":"U8","shape":[{},1],"data_offsets":[{},{}]}})",
                                  NameOf(i), rows, end, end + static_cast<uint64_t>(rows)));
    end += static_cast<uint64_t>(rows);
  }
  if (!in_order) std::reverse(members.begin(), members.end());
  const std::string header = fmt::format("{{{}}}", fmt::join(members, ","));
  std::string file(8, '\0');
  for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return file.append(header).append(end, 'c');
}

std::string Checkpoint(size_t tensors) {
  std::string file;
  for (size_t i = 0; i < tensors; ++i) {
    const int64_t rows = kRows[i % std::size(kRows)];
    file += TensorValue(NameOf(i), "UInt8", {rows, 1}, std::string(static_cast<size_t>(rows), 'c'));
  }
  return file;
}

struct Taken {
  double while_read = 0;
  double after = 0;
  double said = 0;  // by the table
};

Taken TakenBy(const std::string& bytes, bool is_safetensors) {
  const FileBytes file = {"a", bytes.size(),
                          [&bytes](uint64_t offset, std::span<std::byte> out) -> Status {
                            std::memcpy(out.data(), bytes.data() + offset, out.size());
                            return {};
                          },
                          [](ByteRange) { return Status(); }, false};
  const auto head = std::as_bytes(std::span(bytes).first(kHeaderPage));
  most_held = held;
  const size_t before = held;
  const auto read = is_safetensors
                        ? ReadSafetensorsTable(file, head, {})
                        : ReadMindSporeTable(file, {head.begin(), head.end()}, {}, nullptr);
  EXPECT_TRUE(read.ok()) << read.status().message();
  if (!read.ok()) return {};
  return {static_cast<double>(most_held - before), static_cast<double>(held - before),
          static_cast<double>(read->table->memory())};
}

// What one more tensor takes: the blocks that are read into are the same for all.
Taken TakenForEach(const std::string& few, const std::string& many, size_t more,
                   bool is_safetensors) {
  const Taken first = TakenBy(few, is_safetensors);
  const Taken second = TakenBy(many, is_safetensors);
  const auto each = [more](double a, double b) { return (b - a) / static_cast<double>(more); };
  return {each(first.while_read, second.while_read), each(first.after, second.after),
          each(first.said, second.said)};
}

TEST(FileTableMemoryTest, IsAtMost200BytesATensor) {
  constexpr size_t kFew = 20'000;
  constexpr size_t kMany = 70'000;
  constexpr double kMost = 200;
  // Of a .ckpt file, contents lie apart from their messages; there is one range more.
  constexpr double kMostOfCkpt = 225;
  for (const int kind : {0, 1, 2}) {
    const auto file = [kind](size_t tensors) {
      return kind == 2 ? Checkpoint(tensors) : Safetensors(tensors, kind == 0);
    };
    const Taken taken = TakenForEach(file(kFew), file(kMany), kMany - kFew, kind != 2);
    SCOPED_TRACE(fmt::format("kind {}: {:.0f} bytes while it is read, {:.0f} after, {:.0f} said",
                             kind, taken.while_read, taken.after, taken.said));
    EXPECT_LE(taken.while_read, kind == 2 ? kMostOfCkpt : kMost);
    EXPECT_LE(taken.after, kMost);
    EXPECT_GE(taken.said, taken.after * 0.97);
    EXPECT_LE(taken.said, taken.after * 1.1);
    RecordProperty(fmt::format("while_read_{}", kind), fmt::format("{:.1f}", taken.while_read));
    RecordProperty(fmt::format("after_{}", kind), fmt::format("{:.1f}", taken.after));
  }
}

}  // namespace
}  // namespace reshard::file_table_memory_test
