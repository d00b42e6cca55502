// ValueParser against libprotobuf, and the index of a whole file against what libprotobuf reads.

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "format/safetensors/safetensors_container.h"
#include "src/source/indexed_file.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/checkpoint_oracle.h"
#include "tests/support/memory_file.h"
#include "tests/support/parse_values.h"

namespace reshard {
namespace {

// A parameter, put together of the adjacent Values of one tag.
struct Parameter {
  std::string name;
  const Checkpoint::Value* first = nullptr;
  std::string content;
};

std::string ContentOf(const Checkpoint::Value& value) {
  if (value.has_tensor()) return value.tensor().tensor_content();
  std::string content;
  for (const TensorProto& tensor : value.maptensor().tensor()) content += tensor.tensor_content();
  return content;
}

std::vector<Parameter> ParametersOf(const Checkpoint& checkpoint) {
  std::vector<Parameter> parameters;
  for (const Checkpoint::Value& value : checkpoint.value()) {
    if (parameters.empty() || parameters.back().name != value.tag()) {
      parameters.push_back({value.tag(), &value, ""});
    }
    parameters.back().content += ContentOf(value);
  }
  return parameters;
}

std::string ArrayDifference(const Parameter& expected, const StoredArray& found,
                            std::string_view bytes) {
  if (found.name != expected.name) return "another name";
  std::string content;
  for (const ByteRange& range : found.content) content += bytes.substr(range.offset, range.length);
  for (const StoredArray::MapTensorPart& part : found.map_tensor) {
    content += bytes.substr(part.content.offset, part.content.length);
  }
  if (content != expected.content || found.bytes != content.size()) return "other content";
  if (found.kind == ArrayKind::kMapTensor) return expected.first->has_tensor() ? "a MapTensor" : "";
  const TensorProto& tensor = expected.first->tensor();
  if (DTypeName(found.dtype) != tensor.tensor_type()) return "another dtype";
  if (found.kind == ArrayKind::kText) return "";
  const uint64_t elements = ElementCount(found.shape).value_or(0);
  if (elements * ItemBytes(found.dtype) != found.bytes) {
    return fmt::format("{} bytes of shape {}", found.bytes, ToString(found.shape));
  }
  const Shape dims(tensor.dims().begin(), tensor.dims().end());
  const bool scalar = found.shape.empty() && (dims.empty() || dims == Shape{0});
  return scalar || found.shape == dims ? "" : "another shape";
}

// The index takes up to 30 times what a parameter without content takes in the file, and more for
// the first ones, of which there is room for some.
constexpr size_t kIndexBytesPerByte = 40;
constexpr size_t kLeastIndexBytes = 1024;

// What a header says, by a parser that makes a tree of it.
std::string SafetensorsFault(const IndexedFile& index, std::string_view bytes) {
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<uint8_t>(bytes[i]);
  const auto header = nlohmann::json::parse(bytes.substr(8, length), nullptr, false);
  if (!header.is_object()) return "a header that is no JSON object has an index";
  const size_t others = header.contains("__metadata__") ? 1 : 0;
  if (index.arrays().size() + others != header.size()) return "another number of tensors";
  uint64_t end = 8 + length;
  for (const StoredArray& array : index.arrays()) {
    const auto tensor = header.find(std::string(array.name));
    if (tensor == header.end()) return "an unknown name";
    const nlohmann::json offsets = {array.content.front().offset - 8 - length,
                                    array.content.front().end() - 8 - length};
    if (tensor->at("data_offsets") != offsets) return "other offsets";
    if (array.content.front().offset != end) return "a gap";
    end = array.content.front().end();
    uint64_t elements = 1;
    for (const auto& size : tensor->at("shape")) elements *= size.get<uint64_t>();
    if (array.kind == ArrayKind::kTensor && ItemBytes(array.dtype) <= 8 &&
        ElementCount(array.shape).value_or(1) > elements) {
      return "another shape";
    }
    if (index.Find(array.name) != &array) return "a name is not found";
  }
  return end == bytes.size() ? "" : "bytes behind the last tensor";
}

std::string IndexFault(const IndexedFile& index, std::string_view bytes) {
  if (&index.table().container() == &kSafetensorsContainer) return SafetensorsFault(index, bytes);
  const std::string_view values = index.crc() ? bytes.substr(0, index.crc()->covered.end()) : bytes;
  const OracleAnswer answer = AskLibprotobuf(values);
  if (answer.verdict != OracleAnswer::Verdict::kValid) return "a bad file has an index";
  const std::vector<Parameter> expected = ParametersOf(answer.checkpoint);
  if (expected.size() != index.arrays().size()) {
    return fmt::format("{} parameters, not {}", index.arrays().size(), expected.size());
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string difference = ArrayDifference(expected[i], index.arrays()[i], bytes);
    if (!difference.empty()) return fmt::format("parameter {}: {}", i, difference);
    if (index.Find(expected[i].name) != &index.arrays()[i]) return "a name is not found";
  }
  if (index.memory() > sizeof(IndexedFile) + kLeastIndexBytes + kIndexBytesPerByte * bytes.size()) {
    return fmt::format("an index of {} bytes", index.memory());
  }
  return "";
}

}  // namespace

std::string FuzzFileTable(std::string_view bytes) {
  // Windows of all sizes, the same ones for the same bytes.
  uint64_t random = bytes.size();
  const auto surplus = [&random] {
    random = random * 6364136223846793005 + 1442695040888963407;
    return (random >> 33) % 40;
  };
  const std::string difference =
      Difference(AskLibprotobuf(bytes), ParseValues(bytes, surplus), bytes);
  if (!difference.empty()) return difference;

  if (bytes.starts_with("PK\3\4")) return FuzzTorchZip(bytes);
  static MemoryFile file;
  file.Set(bytes);
  SourceFiles files(1);
  const auto index = ReadFileTable(files, files.Add(file.path()));
  return index.ok() ? IndexFault(*index, bytes) : RefusalFault(index.status());
}

}  // namespace reshard
