// How often a conversion of very many small parameters allocates, for each of them: where contents
// are small, little else costs anything. Counts by an operator new of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"

namespace {

std::atomic<size_t> allocations = 0;

}  // namespace

[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace reshard::convert_allocations_test {
namespace {

constexpr int64_t kSources = 4;
constexpr int64_t kTargets = 2;
constexpr int64_t kRows = 8;
constexpr int64_t kColumns = 16;

std::string NameOf(int64_t parameter) {
  return "model.layers." + std::to_string(1000 + parameter) + ".attention_norm.weight";
}

// The allocations of a conversion of so many parameters, each cut by rows.
size_t AllocationsOf(int64_t parameters) {
  const TemporaryFolder folder;
  constexpr uint64_t kShardBytes = kRows / kSources * kColumns * 4;
  for (int64_t rank = 0; rank < kSources; ++rank) {
    std::string file;
    for (int64_t i = 0; i < parameters; ++i) {
      file += TensorValueHeader(NameOf(i), "Float32", {kRows / kSources, kColumns}, kShardBytes);
      file.append(kShardBytes, static_cast<char>('a' + rank));
    }
    const std::string number = std::to_string(rank);
    folder.Write("from/rank_" + number + "/net_" + number + ".ckpt", file);
  }
  const auto strategy = [&](const std::string& path, int64_t ranks) {
    std::vector<NamedLayout> layouts;
    layouts.reserve(static_cast<size_t>(parameters));
    for (int64_t i = 0; i < parameters; ++i) {
      layouts.push_back({NameOf(i), MakeLayout({ranks}, {{0, -1}})});
    }
    return folder.Write(path, ProtobufStrategy(0, layouts));
  };
  ConvertOptions options;
  options.source.path = (folder.path() / "from").string();
  options.target.folder = (folder.path() / "to").string();
  options.source.strategy = strategy("source.ckpt", kSources);
  options.target.strategy = strategy("target.ckpt", kTargets);
  options.run.jobs = 1;
  const size_t before = allocations;
  const auto report = Convert(options);
  const size_t after = allocations;
  EXPECT_TRUE(report.ok()) << report.status().message();
  return after - before;
}

TEST(ConvertAllocations, AreFewForEachParameterOfATargetFile) {
  // Each is in two source files and in two plans, and has a line in a record.
  constexpr double kMost = 20;
  constexpr int64_t kFew = 100;
  constexpr int64_t kMany = 500;
  const size_t more = AllocationsOf(kMany) - AllocationsOf(kFew);
  EXPECT_LE(static_cast<double>(more) / ((kMany - kFew) * kTargets), kMost);
}

}  // namespace
}  // namespace reshard::convert_allocations_test
