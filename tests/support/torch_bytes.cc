#include "tests/support/torch_bytes.h"

#include <cstddef>

#include "tests/support/zip_bytes.h"

namespace reshard {
namespace {

std::string LittleEndian(uint64_t number, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i) & 0xff);
  return text;
}

std::string Joined(const std::vector<std::string>& items) {
  std::string all;
  for (const std::string& item : items) all += item;
  return all;
}

}  // namespace

std::string PickledNone() { return "N"; }
std::string PickledBool(bool value) { return value ? "\x88" : "\x89"; }
std::string PickledInteger(int64_t value) {
  return "\x8a\x08" + LittleEndian(static_cast<uint64_t>(value), 8);
}
std::string PickledText(std::string_view text) {
  return "X" + LittleEndian(text.size(), 4) + std::string(text);
}
std::string PickledGlobal(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
std::string PickledTuple(const std::vector<std::string>& items) {
  return "(" + Joined(items) + "t";
}
std::string PickledIntegers(const std::vector<int64_t>& numbers) {
  std::vector<std::string> items;
  items.reserve(numbers.size());
  for (const int64_t number : numbers) items.push_back(PickledInteger(number));
  return PickledTuple(items);
}
std::string PickledList(const std::vector<std::string>& items) {
  return "](" + Joined(items) + "e";
}
std::string PickledDict(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string all = "}(";
  for (const auto& [key, value] : entries) all += key + value;
  return all + "u";
}
std::string PickledCall(std::string_view module, std::string_view name,
                        const std::vector<std::string>& arguments) {
  return PickledGlobal(module, name) + PickledTuple(arguments) + "R";
}

std::string Pickled(const PickledTensor& tensor) {
  const std::string_view module = tensor.type == "UntypedStorage" ? "torch.storage" : "torch";
  std::vector<std::string> arguments = {
      PickledTuple({PickledText("storage"), PickledGlobal(module, tensor.type),
                    PickledText(tensor.key), PickledText("cpu"), PickledInteger(tensor.elements)}) +
          "Q",
      PickledInteger(tensor.offset),
      PickledIntegers(tensor.shape),
      PickledIntegers(tensor.strides),
      PickledBool(false),
      PickledCall("collections", "OrderedDict", {})};
  if (!tensor.dtype.empty()) arguments.push_back(PickledGlobal("torch", tensor.dtype));
  if (!tensor.flags.empty()) arguments.push_back(tensor.flags);
  return PickledCall("torch._utils",
                     tensor.dtype.empty() ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3", arguments);
}

std::string PickledWhole(std::string_view key, const std::vector<int64_t>& shape) {
  PickledTensor tensor{.key = std::string(key), .elements = 1, .shape = shape};
  tensor.strides.resize(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    tensor.strides[i] = tensor.elements;
    tensor.elements *= shape[i];
  }
  return Pickled(tensor);
}

std::string PickleOf(std::string_view value) { return "\x80\x02" + std::string(value) + "."; }

std::string TorchFile(std::string_view pickle, const std::vector<std::string>& storages,
                      std::string_view byte_order) {
  std::vector<ZipEntry> members = {{.name = "archive/data.pkl", .content = std::string(pickle)}};
  members.push_back({.name = "archive/byteorder", .content = std::string(byte_order)});
  for (size_t i = 0; i < storages.size(); ++i) {
    members.push_back({.name = "archive/data/" + std::to_string(i), .content = storages[i]});
  }
  members.push_back({.name = "archive/version", .content = "3\n"});
  return ZipOf(members);
}

}  // namespace reshard
