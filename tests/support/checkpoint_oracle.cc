#include "tests/support/checkpoint_oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace reshard {
namespace {

// What of a Value ValueParser refuses, although libprotobuf reads it.
bool IsBeyondLimits(const Checkpoint::Value& value) {
  const auto tensor_is = [](const TensorProto& tensor) {
    return tensor.dims_size() > static_cast<int>(kMaxDims) ||
           tensor.tensor_type().size() > kMaxTypeBytes;
  };
  if (value.tag().size() > kMaxTagBytes) return true;
  if (value.has_tensor()) return tensor_is(value.tensor());
  if (!value.has_maptensor()) return true;
  const auto& tensors = value.maptensor().tensor();
  return tensors.size() != static_cast<int>(kMapTensors) ||
         std::any_of(tensors.begin(), tensors.end(), tensor_is);
}

std::string Difference(const TensorProto& expected, const ParsedTensor& found,
                       std::string_view bytes) {
  const Shape dims(expected.dims().begin(), expected.dims().end());
  if (found.dims != dims) {
    return fmt::format("dims {}, not {}", ToString(found.dims), ToString(dims));
  }
  if (found.type != expected.tensor_type()) return "another type";
  if (bytes.substr(found.content.offset, found.content.length) != expected.tensor_content()) {
    return fmt::format("other content, at {}", found.content.offset);
  }
  return "";
}

std::string Difference(const Checkpoint::Value& expected, const ParsedValue& found,
                       std::string_view bytes) {
  if (found.tag != expected.tag()) return "another tag";
  if (found.is_map_tensor != expected.has_maptensor())
    return "a tensor for a MapTensor, or the other way round";
  // The message alone is the same Value again.
  const std::string_view message = bytes.substr(found.message.offset, found.message.length);
  Checkpoint alone;
  if (!alone.ParsePartialFromArray(message.data(), static_cast<int>(message.size())) ||
      alone.value_size() != 1 ||
      alone.value(0).SerializePartialAsString() != expected.SerializePartialAsString()) {
    return "another message";
  }
  if (!found.is_map_tensor) {
    if (found.tensors.size() != 1) return "more than one tensor";
    return Difference(expected.tensor(), found.tensors[0], bytes);
  }
  for (size_t i = 0; i < kMapTensors; ++i) {
    const std::string difference =
        Difference(expected.maptensor().tensor(static_cast<int>(i)), found.tensors.at(i), bytes);
    if (!difference.empty()) return difference;
  }
  return "";
}

}  // namespace

OracleAnswer AskLibprotobuf(std::string_view bytes) {
  OracleAnswer answer;
  // Without "Partial" it would print each missing field.
  if (!answer.checkpoint.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      !answer.checkpoint.IsInitialized()) {
    return answer;
  }
  const auto& values = answer.checkpoint.value();
  const bool limited = std::any_of(values.begin(), values.end(), IsBeyondLimits);
  answer.verdict = limited ? OracleAnswer::Verdict::kBeyondLimits : OracleAnswer::Verdict::kValid;
  return answer;
}

std::string Difference(const OracleAnswer& expected, const Result<std::vector<ParsedValue>>& found,
                       std::string_view bytes) {
  if (expected.verdict != OracleAnswer::Verdict::kValid) {
    if (found.ok()) return "ValueParser takes what is invalid or beyond its limits";
    return found.status().code() == StatusCode::kCorrupt ? "" : found.status().message();
  }
  if (!found.ok()) return "ValueParser refuses what is valid: " + found.status().message();
  const auto count = static_cast<size_t>(expected.checkpoint.value_size());
  if (found->size() != count) return fmt::format("{} Values, not {}", found->size(), count);
  uint64_t end = 0;
  for (size_t i = 0; i < count; ++i) {
    const ParsedValue& value = (*found)[i];
    if (value.message.offset < end) return fmt::format("Value {} begins too early", i);
    end = value.message.end();
    const std::string difference =
        Difference(expected.checkpoint.value(static_cast<int>(i)), value, bytes);
    if (!difference.empty()) return fmt::format("Value {}: {}", i, difference);
  }
  return "";
}

}  // namespace reshard
