// Pickles whose few bytes refer to large values again and again: time and memory follow from the
// size of the file.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/malformed/hostile_file.h"
#include "tests/support/torch_bytes.h"

namespace reshard::hostile_pickle_test {
namespace {

// Puts the last value into the memo, and fetches it.
std::string Put(char entry) { return std::string("q") + entry; }
std::string Get(char entry) { return std::string("h") + entry; }

// The state of the instance below it.
std::string State(const std::string& entries) { return "}(" + entries + "ub"; }
std::string Entry(std::string_view key, const std::string& value) {
  return PickledText(key) + value;
}

// A dict of `count` names, all with `value`, after these entries.
std::string Named(const std::string& entries, int count, const std::string& value) {
  std::string all = "}(" + entries;
  for (int i = 0; i < count; ++i) all += PickledText("w" + std::to_string(i)) + value;
  return all + "u";
}

// Little-endian numbers of 64 bits, counted down to 0.
std::string Descending(int64_t count) {
  std::string bytes;
  for (int64_t number = count; number-- > 0;) {
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  }
  return bytes;
}

std::string Instance(std::string_view module, std::string_view name) {
  return PickledGlobal(module, name) + ")\x81";
}

std::string Ranks(std::string_view key, int64_t count) {
  return Pickled({.type = "LongStorage",
                  .key = std::string(key),
                  .elements = count,
                  .shape = {count},
                  .strides = {1}});
}

// A tensor of one float, of which a state of a DTensor says the place.
std::string DTensor(int64_t full, const std::string& state) {
  return PickledCall("torch._tensor", "_rebuild_from_type_v2",
                     {PickledGlobal("torch._utils", "_rebuild_wrapper_subclass"),
                      PickledGlobal("torch.distributed.tensor", "DTensor"),
                      PickledTuple({PickledGlobal("torch.distributed.tensor", "DTensor"),
                                    PickledGlobal("torch", "float32"), PickledIntegers({full})}),
                      state});
}

std::string Spec(const std::string& mesh) {
  return Instance("torch.distributed.tensor._dtensor_spec", "DTensorSpec") +
         State(Entry("mesh", mesh) +
               Entry("placements",
                     PickledTuple({Instance("torch.distributed.tensor.placement_types", "Shard") +
                                   State(Entry("dim", PickledInteger(0)))})));
}

std::string Mesh(const std::string& state) {
  return Instance("torch.distributed.device_mesh", "DeviceMesh") + State(state);
}

std::string LocalAndSpec(const std::string& mesh) {
  return "}(" + Entry("_local_tensor", PickledWhole("0", {1})) + Entry("_spec", Spec(mesh)) + "u";
}

std::vector<HostileFile> TorchFiles() {
  const std::vector<std::vector<std::string>> commands = {
      {"inspect", "FILE"},
      {"convert", "FILE", "FOLDER/out", "--format", "huggingface"},
  };
  std::vector<HostileFile> files;
  const auto add = [&](const std::string& name, const std::string& value,
                       const std::string& ranks = "") {
    files.push_back({name, TorchFile(PickleOf(value), {"0123", ranks}), commands});
  };
  const std::string long_key = PickledText(std::string(2'000'000, 'x')) + Put(0);
  const std::string tensor = PickledWhole("0", {1}) + Put(1);
  add("a long key of 600,000 values",
      "}(" + Entry("a", long_key) + Repeat(Get(0) + "N", 600'000) + "u");
  add("a long key of 300,000 tensors",
      "}(" + Entry("a", long_key) + Entry("b", tensor) + Repeat(Get(0) + Get(1), 300'000) + "u");
  add("a long key of 300,000 dicts", "}(" + Entry("a", long_key) + Entry("b", "}" + Put(1)) +
                                         Repeat(Get(0) + Get(1), 300'000) + "u");
  add("300,000 names of a tensor of 64 dimensions",
      Named(Entry("w", PickledWhole("0", std::vector<int64_t>(64, 1)) + Put(0)), 300'000, Get(0)));
  add("300,000 instances of a million arguments", "](ca\nb\n" + Put(0) + "(" +
                                                      Repeat("N", 1'000'000) + "t" + Put(1) +
                                                      Repeat(Get(0) + Get(1) + "R", 300'000) + "e");
  std::string state = "}(" + Entry("_local_tensor", tensor) + Entry("_spec", PickledNone());
  for (int i = 0; i < 200'000; ++i) state += Entry("k" + std::to_string(i), "N");
  add("100,000 DTensors with a large state",
      Named(Entry("w", DTensor(1, state + "u") + Put(0)), 100'000, Get(0)));
  std::string meshes;
  for (int i = 0; i < 20'000; ++i) {
    meshes += Entry("w" + std::to_string(i), DTensor(1, LocalAndSpec(Mesh(Entry("mesh", Get(0))))));
  }
  add("20,000 meshes of the same 100,000 ranks",
      "}(" + Entry("ranks", Ranks("1", 100'000) + Put(0)) + meshes + "u", Descending(100'000));
  const auto mesh_of = [](const std::string& shape) {
    return Mesh(
        Entry("_layout", Instance("torch", "_MeshLayout") +
                             State(Entry("shape", shape) + Entry("stride", PickledIntegers({0})))) +
        Entry("_rank_map", Ranks("1", 1)));
  };
  add("a mesh of 2^45 empty tuples",
      "}(" +
          Entry("w", DTensor(1, LocalAndSpec(mesh_of(")" + Put(0) +
                                                     Repeat(Get(0) + "\x86" + Put(0), 45))))) +
          "u",
      Descending(1));
  add("a mesh of 2^22 places and one rank",
      "}(" + Entry("w", DTensor(1, LocalAndSpec(mesh_of(PickledIntegers({1 << 22}))))) + "u",
      Descending(1));
  return files;
}

// Of FSDP's ranks, in a folder.
std::vector<HostileFile> RankFiles() {
  constexpr int64_t kRanks = 500'000;
  const std::string mesh = Mesh(Entry("mesh", Ranks("1", kRanks)));
  const std::string names =
      Named(Entry("w", DTensor(kRanks, LocalAndSpec(mesh)) + Put(0)), 50'000, Get(0));
  return {{"50,000 tensors over 500,000 ranks",
           TorchFile(PickleOf(names), {"0123", Descending(kRanks)}),
           {{"digest", "FOLDER/ranks"}}}};
}

// The .metadata of DCP checkpoints.
std::vector<HostileFile> DcpFiles() {
  const std::vector<std::vector<std::string>> commands = {
      {"inspect", "FOLDER/hostile"},
      {"convert", "FOLDER/hostile", "FOLDER/out", "--format", "huggingface"},
  };
  constexpr std::string_view kModule = "torch.distributed.checkpoint.metadata";
  std::vector<HostileFile> files;
  const auto add = [&](const std::string& name, const std::string& tensors,
                       const std::string& items) {
    const std::string top =
        Instance(kModule, "Metadata") + State(Entry("state_dict_metadata", "}(" + tensors + "u") +
                                              Entry("storage_data", "}(" + items + "u"));
    files.push_back({name, PickleOf(top), commands});
  };
  const std::string none = PickledCall("torch", "Size", {PickledIntegers({0})});
  const auto tensor = [&](const std::string& chunks, const std::string& size = {}) {
    return Instance(kModule, "TensorStorageMetadata") +
           State(Entry("properties",
                       Instance(kModule, "TensorProperties") +
                           PickledTuple({PickledGlobal("torch", "float32"),
                                         PickledCall("torch.serialization", "_get_layout",
                                                     {PickledText("torch.strided")}),
                                         PickledNone(), PickledNone(), PickledNone()}) +
                           "b") +
                 Entry("size", size.empty() ? none + Put(1) : size) +
                 Entry("chunks", "](" + chunks + "e"));
  };
  const auto index = [&](const std::string& name) {
    return Instance(kModule, "MetadataIndex") + State(Entry("fqn", name) + Entry("offset", Get(1)));
  };
  const auto item = [&](const std::string& path, const std::string& transforms) {
    return Instance("torch.distributed.checkpoint.filesystem", "_StorageInfo") +
           State(Entry("relative_path", path) + Entry("offset", PickledInteger(0)) +
                 Entry("length", PickledInteger(1)) + Entry("transform_descriptors", transforms));
  };
  const std::string name = PickledText(std::string(1'000'000, 'x')) + Put(0);
  const std::string path = PickledText("__0_0.distcp") + Put(2);
  std::string others;  // so that names are looked up by their hashes
  for (int i = 0; i < 100; ++i) others += PickledText("v" + std::to_string(i)) + Get(5);
  add("a long name in 50,000 entries", name + tensor("") + Put(5) + others,
      index(Get(0)) + item(path, PickledNone()) + Put(3) + Repeat(index(Get(0)) + Get(3), 50'000));
  add("a long path in 50,000 items", PickledText("w") + Put(0) + tensor(""),
      index(Get(0)) + Put(3) + item(PickledText(std::string(4096, 'x')) + Put(2), PickledNone()) +
          Repeat(Get(3) + item(Get(2), PickledNone()), 50'000));
  add("long transforms of 50,000 items", PickledText("w") + Put(0) + tensor(""),
      index(Get(0)) + Put(3) +
          item(path,
               PickledList(std::vector<std::string>(16, PickledText(std::string(100'000, 'x')))) +
                   Put(4)) +
          Repeat(Get(3) + item(Get(2), Get(4)), 50'000));
  const std::string chunk = Instance(kModule, "ChunkStorageMetadata") +
                            State(Entry("offsets", Get(1)) + Entry("sizes", Get(1)));
  std::string names;
  for (int i = 0; i < 50'000; ++i) names += PickledText("w" + std::to_string(i)) + Get(0);
  add("50,000 names of a tensor of 50,000 chunks",
      PickledText("w") + tensor(Repeat(chunk, 50'000)) + Put(0) + names, "");
  // Each chunk in a file has a name of its own.
  std::string chunks;
  std::string entries;
  for (int i = 0; i < 2'000; ++i) {
    const std::string size = PickledCall("torch", "Size", {PickledIntegers({i})});
    chunks += Instance(kModule, "ChunkStorageMetadata") +
              State(Entry("offsets", size) +
                    Entry("sizes", PickledCall("torch", "Size", {PickledIntegers({1})})));
    entries += Instance(kModule, "MetadataIndex") +
               State(Entry("fqn", Get(0)) + Entry("offset", size)) +
               Instance("torch.distributed.checkpoint.filesystem", "_StorageInfo") +
               State(Entry("relative_path", PickledText("__0_0.distcp")) +
                     Entry("offset", PickledInteger(i)) + Entry("length", PickledInteger(1)));
  }
  add("2,000 chunks of a tensor of a long name",
      name + tensor(chunks, PickledCall("torch", "Size", {PickledIntegers({2'000})})), entries);
  return files;
}

using HostileTorchPickleTest = HostileCostTest;
TEST_P(HostileTorchPickleTest, CostsWhatItsSizeCosts) { Run("hostile.pt"); }
INSTANTIATE_TEST_SUITE_P(Files, HostileTorchPickleTest, testing::ValuesIn(TorchFiles()));

using HostileRankPickleTest = HostileCostTest;
TEST_P(HostileRankPickleTest, CostsWhatItsSizeCosts) { Run("ranks/model_world_size_1_rank_0.pt"); }
INSTANTIATE_TEST_SUITE_P(Files, HostileRankPickleTest, testing::ValuesIn(RankFiles()));

using HostileDcpPickleTest = HostileCostTest;
TEST_P(HostileDcpPickleTest, CostsWhatItsSizeCosts) { Run("hostile/.metadata"); }
INSTANTIATE_TEST_SUITE_P(Files, HostileDcpPickleTest, testing::ValuesIn(DcpFiles()));

}  // namespace
}  // namespace reshard::hostile_pickle_test
