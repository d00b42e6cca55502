// How fast the steps of a conversion are, each alone, on one core: build/bench/bin/module_bench.
//
// Indexing a checkpoint, parsing a strategy, planning a target rank, gathering bytes, decrypting.
// Samples are made in the folder for temporary files; their content is holes, but for what is
// gathered. Files are in the page cache. Digests have a program of their own, digest_bench.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reshard/encryption.h"
#include "src/cipher/encrypted_block.h"
#include "src/convert/opened_source.h"
#include "src/io/source_files.h"
#include "src/mindspore/mindspore_target.h"
#include "src/mindspore/strategy_codec.h"
#include "src/mindspore/strategy_tables.h"
#include "src/source/indexed_file.h"
#include "src/write/gather.h"
#include "tools/gen/sample_files.h"
#include "tools/gen/sample_model.h"

namespace reshard {
namespace {

namespace fs = std::filesystem;

// A folder for samples, gone at the end.
class Workplace {
 public:
  Workplace() : path_((fs::temp_directory_path() / "reshard_module_bench_XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~Workplace() { fs::remove_all(path_); }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  // Makes a sample once and returns its folder.
  std::string Sample(const std::string& name, const SampleModel& model, bool json = false) const {
    SampleOptions options{.folder = path_ + "/" + name, .model = model, .sparse = true};
    options.json = json;
    if (!fs::exists(options.folder) && !WriteSample(options).ok()) std::abort();
    return options.folder;
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

SampleModel Matrices(int64_t count) {
  SampleModel model;
  model.matrices = count;
  model.rows = 1024;
  model.columns = 64;
  model.optimizer = false;
  return model;
}

void CountItems(benchmark::State& state, int64_t items) {
  state.SetItemsProcessed(state.iterations() * items);
}

// A file of state.range(0) parameters, opened anew each time.
void IndexFile(benchmark::State& state, const Workplace& place) {
  const int64_t count = state.range(0);
  const std::string path =
      place.Sample(fmt::format("index_{}", count), Matrices(count)) + "/rank_0/llama-1_100.ckpt";
  for (auto _ : state) {
    SourceFiles files(SourceFiles::DefaultMaxOpen());
    const auto index = ReadFileTable(files, files.Add(path));
    if (!index.ok()) return state.SkipWithError(index.status().message().c_str());
    benchmark::DoNotOptimize(index->arrays().data());
  }
  CountItems(state, count);
}

// A strategy of state.range(0) layouts, from bytes to the value that plans ask.
void ParseStrategyFile(benchmark::State& state, const Workplace& place, bool json) {
  const int64_t count = state.range(0);
  const std::string folder =
      place.Sample(fmt::format("strategy_{}_{}", json, count), Matrices(count), json);
  const std::string path = folder + "/strategy/strategy_0" + (json ? ".json" : ".ckpt");
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  for (auto _ : state) {
    auto parsed = ParseStrategy(path, bytes);
    if (!parsed.ok()) return state.SkipWithError(parsed.status().message().c_str());
    const auto strategy = StrategyTables::FromFile(*std::move(parsed));
    if (!strategy.ok()) return state.SkipWithError(strategy.status().message().c_str());
    benchmark::DoNotOptimize(strategy->path().data());
  }
  CountItems(state, count);
}

// One target rank of a Llama-like model with Adam's states: 1,089 parameters cut over
// state.range(0) source ranks. Indexes are there after the first time.
void PlanRank(benchmark::State& state, const Workplace& place) {
  SampleModel model;
  model.layers = 40;
  model.tp = 8;
  model.dp = state.range(0) / model.tp;
  model.optimizer_sharding = true;
  const std::string source = place.Sample(fmt::format("plan_{}", state.range(0)), model);
  model.tp = 4;
  model.dp = 1;
  model.optimizer_sharding = false;
  const std::string target = place.Sample("plan_target", model);
  const auto opened = OpenSource({.path = source, .strategy = source + "/strategy"},
                                 {.target = {.strategy = target + "/strategy"}});
  if (!opened.ok()) return state.SkipWithError(opened.status().message().c_str());
  const MindSporeTarget target_files((*opened)->tensors(), (*opened)->rule(), "checkpoint_",
                                     Selection::Unmatched::kCopy);
  uint64_t parameters = 0;
  for (auto _ : state) {
    PlanFindings findings;
    const auto plan = target_files.Plan(0, findings);
    if (!plan.ok()) return state.SkipWithError(plan.status().message().c_str());
    parameters = plan->parameters;
  }
  CountItems(state, static_cast<int64_t>(parameters));
}

// Every second run of state.range(0) bytes of a file, in calls for 4 MiB.
void GatherRuns(benchmark::State& state, const Workplace& place) {
  constexpr uint64_t kBytes = uint64_t{64} << 20;
  const std::string path = place.path() + "/gather";
  if (!fs::exists(path)) std::ofstream(path, std::ios::binary) << std::string(2 * kBytes, 'x');
  const auto run = static_cast<uint64_t>(state.range(0));
  SourceFiles files(SourceFiles::DefaultMaxOpen());
  const BlockCopy copy{.source = files.Add(path),
                       .source_offset = 0,
                       .target_offset = 0,
                       .run_length = run,
                       .dims = {{kBytes / run, 2 * run, run}}};
  std::vector<std::byte> out(size_t{4} << 20);
  for (auto _ : state) {
    for (uint64_t offset = 0; offset < kBytes; offset += out.size()) {
      const Status status = Gather(files, {&copy, 1}, offset, out);
      if (!status.ok()) return state.SkipWithError(status.message().c_str());
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kBytes));
}

// A window of a block of 64 MiB, decrypted in place again and again, as `openssl speed -evp ...
// -bytes 4194304 -decrypt` does, which it is held against; reading the bytes is apart. Of AES-GCM,
// checking the tag of all of the block is, too.
struct Cipher {
  TargetSpec::EncryptionMode mode;
  bool authenticate = false;
};
void DecryptBlock(benchmark::State& state, const Cipher& cipher) {
  constexpr size_t kBlockBytes = size_t{64} << 20;
  std::vector<std::byte> window(size_t{4} << 20);
  const auto key = EncryptionKey::FromBytes(std::span(window).first(16));
  if (!key.ok()) return state.SkipWithError(key.status().message().c_str());
  const auto with = BlockCipher::Make(*key, cipher.mode);
  if (!with.ok()) return state.SkipWithError(with.status().message().c_str());
  EncryptedBlock block;
  block.cipher_bytes = kBlockBytes;
  const auto stay = [](uint64_t /*offset*/, std::span<std::byte> /*bytes*/) { return Status(); };
  size_t done = 0;
  for (auto _ : state) {
    if (cipher.authenticate) {
      // No tag of zeros fits, which takes as long to find.
      if (with->Authenticate(block, stay).ok()) return state.SkipWithError("a tag that fits");
      done += kBlockBytes;
    } else {
      const Status status = with->Decrypt(block, done % kBlockBytes, window, stay);
      if (!status.ok()) return state.SkipWithError(status.message().c_str());
      done += window.size();
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(done));
}

void Register(const Workplace& place) {
  const auto add = [&place](const char* name, auto function) {
    return benchmark::RegisterBenchmark(
        name, [function, &place](benchmark::State& state) { function(state, place); });
  };
  add("index, parameters", IndexFile)->Arg(1000)->Arg(10000);
  const auto protobuf = [](auto& state, const auto& at) { ParseStrategyFile(state, at, false); };
  const auto json = [](auto& state, const auto& at) { ParseStrategyFile(state, at, true); };
  add("strategy in protobuf, layouts", protobuf)->Arg(3400);
  add("strategy in JSON, layouts", json)->Arg(3400);
  add("plan a rank, source ranks", PlanRank)->Arg(8)->Arg(64);
  auto* gather = add("gather, bytes of a run", GatherRuns);
  for (const int64_t run : {64, 256, 1024, 4096, 65536, 1048576}) gather->Arg(run);
  const auto add_cipher = [](const char* name, const Cipher& cipher) {
    benchmark::RegisterBenchmark(name,
                                 [cipher](benchmark::State& state) { DecryptBlock(state, cipher); })
        ->Threads(1)
        ->Threads(2)
        ->UseRealTime();
  };
  add_cipher("check a tag, AES-128-GCM", {TargetSpec::EncryptionMode::kAesGcm, true});
  add_cipher("decrypt, AES-128-GCM after its tag", {TargetSpec::EncryptionMode::kAesGcm});
  add_cipher("decrypt, AES-128-CBC", {TargetSpec::EncryptionMode::kAesCbc});
  add_cipher("decrypt, SM4-CBC", {TargetSpec::EncryptionMode::kSm4Cbc});
}

}  // namespace
}  // namespace reshard

int main(int argc, char** argv) {
  const reshard::Workplace place;
  reshard::Register(place);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
