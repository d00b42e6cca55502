#include "tests/support/test_tensor.h"

#include <functional>
#include <stdexcept>
#include <utility>

#include "format/mindspore_checkpoint/checkpoint_encoder.h"
#include "reshard/checkpoint.h"
#include "tests/support/random_bytes.h"

namespace reshard {

std::ostream& operator<<(std::ostream& out, const TestTensor& tensor) {
  out << '"' << tensor.name << "\" " << DTypeName(tensor.dtype) << " " << ToString(tensor.shape)
      << ", " << tensor.content.size() << " bytes:" << std::hex;
  for (const char c : tensor.content.substr(0, 64)) out << ' ' << (c & 0xff);
  return out << (tensor.content.size() > 64 ? " ..." : "") << std::dec;
}

TestTensor MakeTensor(std::string name, DType dtype, Shape shape, uint64_t salt) {
  std::string content = RandomBytes(ElementCount(shape).value() * ItemBytes(dtype),
                                    std::hash<std::string>()(name) + salt);
  return {std::move(name), dtype, std::move(shape), std::move(content)};
}

std::string EncodeCheckpoint(const std::vector<TestTensor>& tensors) {
  std::string bytes;
  for (const TestTensor& tensor : tensors) {
    bytes += EncodeValueHeader(tensor.name, tensor.dtype, tensor.shape, tensor.content.size());
    bytes += tensor.content;
  }
  return bytes;
}

std::vector<TestTensor> ReadTensors(const std::string& path) {
  const auto checkpoint = Checkpoint::Open(path);
  if (!checkpoint.ok()) throw std::runtime_error(checkpoint.status().message());
  std::vector<TestTensor> tensors;
  for (const StoredArray& parameter : checkpoint->parameters()) {
    TestTensor tensor = {std::string(parameter.name), parameter.dtype, parameter.shape, ""};
    const auto spans = checkpoint->View(parameter.name);
    for (const auto& span : *spans) {
      tensor.content.append(reinterpret_cast<const char*>(span.data()), span.size());
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace reshard
