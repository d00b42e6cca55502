// Files made to be expensive: whatever they claim, memory and time follow from their size.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/malformed/hostile_file.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/dcp_bytes.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/torch_bytes.h"
#include "tests/support/zip_bytes.h"

namespace reshard::hostile_cost_test {
namespace {

std::vector<HostileFile> Strategies() {
  const std::vector<std::vector<std::string>> commands = {
      {"strategy", "show", "FILE"},
      {"ranks", "0", "--src-strategy", "FILE", "--dst-strategy", "FILE"},
      {"convert", "FOLDER/good", "FOLDER/out", "--src-strategy", "FILE"},
      {"convert", "FOLDER/good", "FOLDER/out", "--dst-strategy", "FILE"},
      {"digest", "FOLDER/good", "--strategy", "FILE"},
  };
  const auto devices = [](int64_t each, size_t count) {
    return std::vector<NamedLayout>{
        {"w", MakeLayout(std::vector<int64_t>(count, each), {{0}, {-1}})}};
  };
  std::vector<HostileFile> files;
  const auto add = [&](const std::string& name, const std::string& content) {
    files.push_back({name, content, commands});
  };
  for (const bool json : {false, true}) {
    const auto encode = json ? JsonStrategy : ProtobufStrategy;
    const std::string kind = json ? " (JSON)" : "";
    add("2^60 devices" + kind, encode(0, devices(int64_t{1} << 20, 3)));
    add("2^63 - 1 devices" + kind, encode(0, devices(INT64_MAX, 1)));
    add("2^62 devices in one row" + kind, encode(0, devices(2, 62)));
    add("a million dimensions of one device" + kind, encode(0, devices(1, 1'000'000)));
    add("a stage of 2^31 - 1" + kind, encode(INT32_MAX, devices(2, 1)));
    std::vector<NamedLayout> many;
    for (int i = 0; i < 100'000; ++i) {
      many.push_back({"w" + std::to_string(i), MakeLayout({2}, {{0}})});
    }
    add("100,000 layouts" + kind, encode(0, many));
  }
  add("nested JSON", "{\"parallel_layout_item\":" + std::string(10'000'000, '['));
  add("a long string", "{\"" + std::string(20'000'000, 'x') + "\": 1}");
  add("empty layouts", Repeat(BlockField(3, ""), 5'000'000));
  return files;
}

std::vector<HostileFile> Checkpoints() {
  const std::string strategy = ProtobufStrategy(0, {{"w", MakeLayout({2}, {{0}})}});
  const std::vector<std::vector<std::string>> commands = {
      {"inspect", "FILE"},
      {"digest", "FILE"},
      {"convert", "FILE", "FOLDER/out", "--dst-strategy", "FOLDER/strategy"},
  };
  std::vector<HostileFile> files;
  const auto add = [&](const std::string& name, const std::string& content) {
    files.push_back({name, content, commands});
  };
  const std::string tensor = TensorValue("w", "Float32", {2}, "12345678");
  add("a Value of 2^63 bytes", tensor + BlockHeader(1, uint64_t{1} << 63));
  add("content of 2^63 - 1 bytes",
      TensorValueHeader("w", "Int8", {INT64_MAX}, uint64_t{INT64_MAX} - 100));
  add("2^62 elements of no bytes", TensorValue("w", "Float32", {int64_t{1} << 62}, ""));
  add("a million dims", TensorValue("w", "Int8", std::vector<int64_t>(1'000'000, 1), "x"));
  add("ten million empty Values", Repeat(BlockField(1, ""), 10'000'000));
  add("a million Values of one tag", Repeat(tensor, 1'000'000));
  std::string distinct;
  for (int i = 0; i < 250'000; ++i) {
    distinct += TensorValue("w" + std::to_string(i), "Int8", {1}, "x");
  }
  add("250,000 tensors", distinct);
  add("unknown fields", Repeat(NumberField(9, 1), 10'000'000));
  add("a long tag", TensorValue(std::string(20'000'000, 'x'), "Int8", {1}, "x"));
  return files;
}

std::string Safetensors(const std::string& members) {
  const std::string header = "{" + members + "}";
  std::string file;
  for (size_t i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return file + header;
}

std::vector<HostileFile> SafetensorsFiles() {
  const std::vector<std::vector<std::string>> commands = {
      {"inspect", "FILE"},
      {"digest", "FILE"},
      {"convert", "FILE", "FOLDER/out", "--dst-strategy", "FOLDER/strategy"},
  };
  const std::string tensor = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  std::vector<HostileFile> files;
  const auto add = [&](const std::string& name, const std::string& members) {
    files.push_back({name, Safetensors(members), commands});
  };
  std::string tensors;
  std::string keys;
  for (int i = 0; i < 250'000; ++i) {
    tensors += (i == 0 ? "\"w" : ",\"w") + std::to_string(i) + "\":" + tensor;
    keys += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + R"(":"")";
  }
  add("250,000 tensors", tensors);
  add("250,000 keys of metadata", R"("__metadata__":{)" + keys + "}");
  add("a long name", '"' + std::string(20'000'000, 'x') + "\":" + tensor);
  add("a long value", R"("__metadata__":{"a":")" + std::string(20'000'000, 'x') + "\"}");
  add("20 million arrays", R"("w":{"more":)" + std::string(20'000'000, '['));
  add("a million sizes",
      R"("w":{"shape":[1)" + Repeat(",1", 1'000'000) + R"(],"dtype":"U8","data_offsets":[0,1]})");
  return files;
}

std::vector<HostileFile> TorchFiles() {
  const std::vector<std::vector<std::string>> commands = {
      {"inspect", "FILE"},
      {"digest", "FILE"},
      {"convert", "FILE", "FOLDER/out", "--format", "huggingface"},
  };
  std::vector<HostileFile> files;
  const auto add = [&](const std::string& name, const std::string& pickle) {
    files.push_back({name, TorchFile(pickle, {}), commands});
  };
  add("a million lists", PickleOf("](" + Repeat("]", 1'000'000) + "e"));
  add("300,000 instances", PickleOf("](ca\nb\nq" + std::string(1, '\0') +
                                    Repeat(std::string("h\0)R", 4), 300'000) + "e"));
  add("3 million values", PickleOf("](" + Repeat("N", 3'000'000) + "e"));
  add("a long name",
      PickleOf(PickledDict({{PickledText(std::string(2'000'000, 'x')), PickledWhole("0", {1})}})));
  // Each tuple holds the last one twice.
  std::string repeated = "]q" + std::string(1, '\0');
  for (char level = 0; level < 50; ++level) {
    repeated += std::string("h") + level + '\x86' + 'q' + static_cast<char>(level + 1);
  }
  add("2^50 values", PickleOf(repeated));
  std::vector<ZipEntry> members = {{.name = "a/data.pkl", .content = PickleOf(PickledDict({}))}};
  for (int i = 0; i < 30'000; ++i) members.push_back({.name = "a/" + std::to_string(i)});
  files.push_back({"30,000 members", ZipOf(members), commands});
  return files;
}

// The .metadata of DCP checkpoints.
std::vector<HostileFile> DcpFiles() {
  const std::vector<std::vector<std::string>> commands = {
      {"inspect", "FOLDER/hostile"},
      {"convert", "FOLDER/hostile", "FOLDER/out", "--format", "huggingface"},
  };
  std::vector<HostileFile> files;
  const auto add = [&](const std::string& name, const std::string& pickle) {
    files.push_back({name, PickleOf(pickle), commands});
  };
  const std::string module = "torch.distributed.checkpoint.metadata";
  const std::string zero = std::string("\0", 1);
  const std::string one = "\x01";
  const auto instance = [&](const std::string& name, const std::string& state) {
    return PickledGlobal(module, name) + ")\x81" + state + "b";
  };
  // Each instance has the same dict, or the same list.
  add("50,000 instances of 100,000 members",
      "(}(" + Repeat("K\x01N", 100'000) + "uq" + zero +
          Repeat(instance("MetadataIndex", "h" + zero), 50'000) + "t");
  const std::string size = PickledCall("torch", "Size", {PickledTuple({})}) + "q" + zero;
  const std::string chunk = instance(
      "ChunkStorageMetadata",
      PickledDict({{PickledText("offsets"), "h" + zero}, {PickledText("sizes"), "h" + zero}}));
  const std::string two = "\x02";
  const std::string properties =
      instance("TensorProperties", PickledTuple({PickledGlobal("torch", "float32"), PickledNone(),
                                                 PickledNone(), PickledNone(), PickledNone()})) +
      "q" + two;
  const std::string tensor =
      instance("TensorStorageMetadata", PickledDict({{PickledText("properties"), "h" + two},
                                                     {PickledText("size"), "h" + zero},
                                                     {PickledText("chunks"), "h" + one}}));
  add("20,000 tensors of 20,000 chunks", "(" + properties + size + "](" + Repeat(chunk, 20'000) +
                                             "eq" + one + Repeat(tensor, 20'000) + "t");
  DcpBytes many;
  for (int i = 0; i < 20'000; ++i) {
    many.tensors.push_back({.name = "w" + std::to_string(i), .size = {0, 3}});
  }
  files.push_back({"20,000 tensors", DcpMetadataOf(many), commands});
  return files;
}

std::vector<HostileFile> Manifests() {
  std::vector<HostileFile> files;
  const auto add = [&](const std::string& name, const std::string& content) {
    files.push_back({name, content, {{"verify", "FOLDER"}}});
  };
  add("nested", std::string(20'000'000, '['));
  add("a long number", R"({"schema_version": )" + std::string(20'000'000, '9'));
  add("a long string", R"({"schema_version": ")" + std::string(20'000'000, 'x') + '"');
  add("empty sources", R"({"schema_version":2,"tool":{"name":"reshard","version":"0"},"plan":"a",)"
                       R"("strategies":{"source":null,"target":null},"sources":[)" +
                           Repeat("{},", 5'000'000));
  return files;
}

using HostileStrategyTest = HostileCostTest;
TEST_P(HostileStrategyTest, CostsWhatItsSizeCosts) { Run("hostile.ckpt"); }
INSTANTIATE_TEST_SUITE_P(Files, HostileStrategyTest, testing::ValuesIn(Strategies()));

using HostileCheckpointTest = HostileCostTest;
TEST_P(HostileCheckpointTest, CostsWhatItsSizeCosts) { Run("hostile.ckpt"); }
INSTANTIATE_TEST_SUITE_P(Files, HostileCheckpointTest, testing::ValuesIn(Checkpoints()));

using HostileSafetensorsTest = HostileCostTest;
TEST_P(HostileSafetensorsTest, CostsWhatItsSizeCosts) { Run("hostile.safetensors"); }
INSTANTIATE_TEST_SUITE_P(Files, HostileSafetensorsTest, testing::ValuesIn(SafetensorsFiles()));

using HostileTorchTest = HostileCostTest;
TEST_P(HostileTorchTest, CostsWhatItsSizeCosts) { Run("hostile.pt"); }
INSTANTIATE_TEST_SUITE_P(Files, HostileTorchTest, testing::ValuesIn(TorchFiles()));

using HostileDcpTest = HostileCostTest;
TEST_P(HostileDcpTest, CostsWhatItsSizeCosts) { Run("hostile/.metadata"); }
INSTANTIATE_TEST_SUITE_P(Files, HostileDcpTest, testing::ValuesIn(DcpFiles()));

using HostileManifestTest = HostileCostTest;
TEST_P(HostileManifestTest, CostsWhatItsSizeCosts) { Run("manifest.json"); }
INSTANTIATE_TEST_SUITE_P(Files, HostileManifestTest, testing::ValuesIn(Manifests()));

}  // namespace
}  // namespace reshard::hostile_cost_test
