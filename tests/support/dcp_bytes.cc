#include "tests/support/dcp_bytes.h"

#include <string_view>

#include "tests/support/torch_bytes.h"

namespace reshard {
namespace {

using Members = std::vector<std::pair<std::string, std::string>>;

std::string Instance(const std::string& module, std::string_view name, const Members& members) {
  Members state;
  for (const auto& [key, value] : members) state.emplace_back(PickledText(key), value);
  return PickledGlobal(module, name) + ")\x81" + PickledDict(state) + "b";
}

std::string Size(const std::vector<int64_t>& numbers) {
  return PickledCall("torch", "Size", {PickledIntegers(numbers)});
}

std::string Properties(const DcpBytes& checkpoint, const DcpTensorBytes& tensor) {
  const std::string module = checkpoint.module + ".metadata";
  std::vector<std::string> members = {
      PickledGlobal("torch", tensor.dtype),
      PickledCall("torch.serialization", "_get_layout", {PickledText(tensor.layout)}),
      PickledBool(false),
      PickledCall(module, "_MEM_FORMAT_ENCODING", {PickledInteger(0)}),
      PickledBool(false),
      PickledIntegers({1})};
  members.resize(checkpoint.properties, PickledNone());
  return PickledGlobal(module, "TensorProperties") + ")\x81" + PickledTuple(members) + "b";
}

std::string Tensor(const DcpBytes& checkpoint, const DcpTensorBytes& tensor) {
  const std::string module = checkpoint.module + ".metadata";
  std::vector<std::string> chunks;
  for (const DcpChunkBytes& chunk : tensor.chunks) {
    chunks.push_back(Instance(module, "ChunkStorageMetadata",
                              {{"offsets", Size(chunk.offsets)}, {"sizes", Size(chunk.sizes)}}));
  }
  return Instance(module, "TensorStorageMetadata",
                  {{"properties", Properties(checkpoint, tensor)},
                   {"size", Size(tensor.size)},
                   {"chunks", PickledList(chunks)}});
}

std::string Item(const DcpBytes& checkpoint, const DcpChunkBytes& chunk) {
  Members members = {{"relative_path", PickledText(chunk.path)},
                     {"offset", PickledInteger(chunk.offset)},
                     {"length", PickledInteger(chunk.length)}};
  std::vector<std::string> transforms;
  for (const std::string& name : chunk.transforms) transforms.push_back(PickledText(name));
  if (!transforms.empty()) members.emplace_back("transform_descriptors", PickledList(transforms));
  return Instance(checkpoint.module + ".filesystem", "_StorageInfo", members);
}

}  // namespace

std::string DcpMetadataOf(const DcpBytes& checkpoint) {
  const std::string module = checkpoint.module + ".metadata";
  Members names;
  Members items;
  for (const DcpTensorBytes& tensor : checkpoint.tensors) {
    names.emplace_back(PickledText(tensor.name), Tensor(checkpoint, tensor));
    for (const DcpChunkBytes& chunk : tensor.chunks) {
      if (!chunk.is_stored) continue;
      const std::string key = Instance(module, "MetadataIndex",
                                       {{"fqn", PickledText(tensor.name)},
                                        {"offset", Size(chunk.offsets)},
                                        {"index", PickledInteger(0)}});
      items.emplace_back(key, Item(checkpoint, chunk));
    }
  }
  for (const std::string& name : checkpoint.objects) {
    names.emplace_back(PickledText(name), PickledGlobal(module, "BytesStorageMetadata") + ")\x81");
    items.emplace_back(Instance(module, "MetadataIndex", {{"fqn", PickledText(name)}}),
                       Item(checkpoint, {.path = "__0_0.distcp", .offset = 1 << 20, .length = 9}));
  }
  return "\x80\x04" +
         Instance(module, "Metadata",
                  {{"state_dict_metadata", PickledDict(names)},
                   {"planner_data", PickledNone()},
                   {"storage_data", PickledDict(items)},
                   {"version", PickledText("1.0.0")}}) +
         ".";
}

std::string DcpItemOf(const std::vector<int64_t>& shape, const std::string& content) {
  return TorchFile(PickleOf(PickledWhole("0", shape)), {content});
}

}  // namespace reshard
