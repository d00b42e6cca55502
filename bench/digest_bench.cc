// How fast the digests are: build/bench/bin/digest_bench.
//
// Each path of the logical digest that this processor has, and XXH3-128 beside it, over bytes that
// stay in the cache (256 KiB), as the bytes of a window mostly are, and over bytes that do not
// (1 GiB, more than most processors' last caches have: as one run, in windows of 4 MiB, and in
// windows by a thread on each core, which share what the memory gives). Rows are what a tensor cut
// in its last dimension consists of: runs of a few bytes, at distances of 4 KiB in the parameter.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "src/digest/logical_digest.h"
#include "src/digest/logical_kernel.h"
#include "src/digest/xxh3.h"

namespace reshard {
namespace {

constexpr size_t kCached = size_t{256} << 10;
constexpr size_t kWindow = size_t{4} << 20;
constexpr size_t kMemory = size_t{1} << 30;

const std::vector<std::byte>& Bytes() {
  static const std::vector<std::byte> kBytes = [] {
    std::vector<std::byte> random(kWindow);
    std::mt19937 engine(1);  // NOLINT: the same bytes each time
    for (std::byte& byte : random) byte = static_cast<std::byte>(engine());
    std::vector<std::byte> all;
    all.reserve(kMemory);
    while (all.size() < kMemory) all.insert(all.end(), random.begin(), random.end());
    return all;
  }();
  return kBytes;
}

// Calls visit(offset) for each run of `run` bytes of `total` that is this thread's; they are dealt
// out in turn.
template <typename Visit>
void ForEachRun(benchmark::State& state, size_t run, size_t total, const Visit& visit) {
  const size_t first = run * static_cast<size_t>(state.thread_index());
  const size_t step = run * static_cast<size_t>(state.threads());
  uint64_t bytes = 0;
  for (auto _ : state) {
    for (size_t offset = first; offset < total; offset += step, bytes += run) visit(offset);
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}

void LogicalAdd(benchmark::State& state, const LogicalKernel& kernel, size_t run, size_t total) {
  LogicalHasher hasher(kernel);
  Digest128 sum;
  ForEachRun(state, run, total, [&](size_t offset) {
    hasher.Add(sum, Bytes().data() + offset, run, offset * 3);
    benchmark::DoNotOptimize(sum);
  });
}

// With one call for all runs.
void LogicalRows(benchmark::State& state, const LogicalKernel& kernel, size_t run, size_t total) {
  LogicalHasher hasher(kernel);
  Digest128 sum;
  for (auto _ : state) {
    hasher.AddRuns(sum, {.bytes = Bytes().data(),
                         .size = run,
                         .position = 0,
                         .count = total / run,
                         .bytes_stride = run,
                         .position_stride = 4096});
    benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(total));
}

void Xxh3Update(benchmark::State& state, size_t run, size_t total) {
  Xxh3 digest;
  ForEachRun(state, run, total, [&](size_t offset) {
    digest.Update(std::span(Bytes()).subspan(offset, run));
    benchmark::DoNotOptimize(digest);
  });
}

void Register() {
  Bytes();  // made now, not in what is measured first
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  for (const LogicalKernel* kernel : LogicalKernels()) {
    const std::string name = std::string("logical/") + kernel->name;
    const auto add = [&](const std::string& what, auto function, size_t run, size_t total) {
      const std::string full = std::string(name).append("/").append(what);
      return benchmark::RegisterBenchmark(
          full.c_str(), [=](benchmark::State& state) { function(state, *kernel, run, total); });
    };
    add("memory, one run", LogicalAdd, kMemory, kMemory);
    add("memory, runs of 4 MiB", LogicalAdd, kWindow, kMemory);
    add("memory, all cores", LogicalAdd, kWindow, kMemory)->Threads(cores)->UseRealTime();
    add("cached, one run", LogicalAdd, kCached, kCached);
    add("cached, runs of 4 KiB", LogicalAdd, 4096, kCached);
    add("cached, runs of 256 B", LogicalAdd, 256, kCached);
    add("cached, runs of 4 B", LogicalAdd, 4, kCached);
    for (const size_t run : {4096U, 1024U, 256U, 64U, 16U, 8U, 4U}) {
      add("cached, rows of " + std::to_string(run) + " B", LogicalRows, run, kCached);
    }
  }
  benchmark::RegisterBenchmark("xxh3-128/memory, one run", Xxh3Update, kMemory, kMemory);
  benchmark::RegisterBenchmark("xxh3-128/memory, runs of 4 MiB", Xxh3Update, kWindow, kMemory);
  benchmark::RegisterBenchmark("xxh3-128/memory, all cores", Xxh3Update, kWindow, kMemory)
      ->Threads(cores)
      ->UseRealTime();
  benchmark::RegisterBenchmark("xxh3-128/cached, one run", Xxh3Update, kCached, kCached);
}

}  // namespace
}  // namespace reshard

int main(int argc, char** argv) {
  reshard::Register();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
