#include "format/mindspore_checkpoint/parameter_grouping.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

#include "format/mindspore_checkpoint/checkpoint_encoder.h"
#include "reshard/tensor.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

// The types of a MapTensor's tensors have NumPy's names: those of dtypes in lower case.
std::optional<uint64_t> NumpyItemBytes(std::string_view name) {
  const auto is_lower = [](char of_dtype, char c) {
    return std::tolower(static_cast<unsigned char>(of_dtype)) == c;
  };
  for (auto i = static_cast<int>(DType::kInt8); i <= static_cast<int>(DType::kComplex128); ++i) {
    const std::string_view known = DTypeName(static_cast<DType>(i));
    if (std::equal(known.begin(), known.end(), name.begin(), name.end(), is_lower)) {
      return ItemBytes(static_cast<DType>(i));
    }
  }
  return std::nullopt;
}

template <typename... Args>
Status Corrupt(std::string_view name, uint64_t offset, fmt::format_string<Args...> format,
               Args&&... args) {
  return CorruptError(fmt::format("parameter {} at offset {}: {}", Quote(name), offset,
                                  fmt::format(format, std::forward<Args>(args)...)));
}

// Returns the bytes of a tensor with these dims.
Result<uint64_t> BytesOfDims(std::string_view name, uint64_t offset, const Shape& dims,
                             std::string_view type, uint64_t item_bytes) {
  if (const auto bytes = TensorBytes(dims, item_bytes)) return *bytes;
  const bool negative = std::any_of(dims.begin(), dims.end(), [](int64_t dim) { return dim < 0; });
  return Corrupt(
      name, offset, "dims {} of {}{}", ToString(dims), type,
      negative ? ", but no size may be negative" : " make more bytes than 63 bits can count");
}

// Of a parameter. The next one reuses the memory.
constexpr size_t kMostValuesKept = 64;

// About the bytes of an allocation.
size_t HeapBytes(size_t bytes) { return bytes + 2 * sizeof(void*); }

// About the bytes that a Value takes: two ranges, and as much again for spare capacity.
constexpr size_t kOfValue = 4 * sizeof(ByteRange);

// How MindSpore writes both a scalar and an empty tensor.
bool IsZeroDims(const Shape& shape) { return shape.size() == 1 && shape[0] == 0; }

}  // namespace

ParameterGrouping::ParameterGrouping(std::shared_ptr<const FileTable> like)
    : like_(std::move(like)) {
  if (like_ && &like_->container() != &kMindSporeContainer) like_.reset();
}

bool ParameterGrouping::IsAsThere(const ParsedValue& value) const {
  if (alike_ == like_->arrays().size() || value.is_map_tensor) return false;
  const StoredArray& there = like_->arrays()[alike_];
  const ParsedTensor& tensor = value.tensors.front();
  return there.kind != ArrayKind::kMapTensor && there.framed.size() == 1 &&
         there.framed.front() == value.message && there.content.front() == tensor.content &&
         there.name == value.tag && tensor.type == DTypeName(there.dtype) &&
         (tensor.dims == there.shape || (there.shape.empty() && IsZeroDims(tensor.dims)));
}

void ParameterGrouping::Store() {
  for (size_t i = 0; i + 1 < alike_; ++i) builder_.Add(like_->arrays()[i]);
  if (alike_ > 0) {  // more Values of the array may follow and must have the same dims
    const StoredArray& there = like_->arrays()[alike_ - 1];
    last_ = {.name = std::string(there.name),
             .kind = there.kind,
             .dtype = there.dtype,
             .shape = zero_dims_ ? Shape{0} : there.shape,
             .bytes = there.bytes,
             .framed = {there.framed.begin(), there.framed.end()},
             .content = {there.content.begin(), there.content.end()},
             .map_tensor = {}};
    has_last_ = true;
    last_bytes_ = kOfValue;
  }
  like_.reset();
}

Status ParameterGrouping::Add(const ParsedValue& value) {
  if (like_ && IsAsThere(value)) {
    ++alike_;
    zero_dims_ = IsZeroDims(value.tensors.front().dims);
    return {};
  }
  if (like_) Store();
  if (has_last_ && last_.name == value.tag) {
    RESHARD_RETURN_IF_ERROR(Extend(value));
  } else {
    if (has_last_) RESHARD_RETURN_IF_ERROR(EndParameter());
    RESHARD_RETURN_IF_ERROR(Begin(value));
  }
  RESHARD_RETURN_IF_ERROR(Append(value));
  if (memory() <= kMaxTableBytes) return {};
  return ResourceExhaustedError(
      fmt::format("parameter {} at offset {}: too many Values up to here; their index takes more "
                  "than the {} MiB "
                  "that one file may have; save the parameters in several files",
                  Quote(value.tag), value.message.offset, kMaxTableBytes >> 20));
}

Status ParameterGrouping::Begin(const ParsedValue& value) {
  last_.name = value.tag;
  last_.kind = ArrayKind::kTensor;
  last_.shape.clear();
  last_.bytes = 0;
  last_.framed.clear();
  last_.content.clear();
  last_.map_tensor.clear();
  if (value.is_map_tensor) {
    last_.kind = ArrayKind::kMapTensor;
  } else {
    const ParsedTensor& tensor = value.tensors[0];
    const std::optional<DType> dtype = ParseDType(tensor.type);
    if (!dtype || !IsMindSporeType(*dtype)) {
      return Corrupt(value.tag, value.message.offset,
                     "unknown tensor_type {}; expected a name as MindSpore writes it, such as "
                     "Float32 or BFloat16",
                     Quote(tensor.type));
    }
    last_.dtype = *dtype;
    last_.shape = tensor.dims;
    if (*dtype == DType::kString) last_.kind = ArrayKind::kText;
    RESHARD_RETURN_IF_ERROR(
        BytesOfDims(value.tag, value.message.offset, tensor.dims, tensor.type, ItemBytes(*dtype))
            .status());
  }
  has_last_ = true;
  return {};
}

// Checks that a Value goes on with the last parameter.
Status ParameterGrouping::Extend(const ParsedValue& value) const {
  const Parameter& parameter = last_;
  const uint64_t offset = value.message.offset;
  const uint64_t begin = parameter.framed.front().offset;
  const bool is_map_tensor = parameter.kind == ArrayKind::kMapTensor;
  if (value.is_map_tensor != is_map_tensor) {
    return Corrupt(value.tag, offset, "a {}, but the Value of this tag before it is a {}",
                   value.is_map_tensor ? "MapTensor" : "tensor",
                   is_map_tensor ? "MapTensor" : "tensor");
  }
  if (is_map_tensor) {
    for (size_t i = 0; i < kMapTensors; ++i) {
      if (value.tensors[i].type == parameter.map_tensor[i].type) continue;
      return Corrupt(value.tag, offset, "part of the MapTensor at offset {}, but of type {} for {}",
                     begin, Quote(value.tensors[i].type), Quote(parameter.map_tensor[i].type));
    }
    return {};
  }
  const ParsedTensor& tensor = value.tensors[0];
  if (tensor.type == DTypeName(parameter.dtype) && tensor.dims == parameter.shape) return {};
  return Corrupt(value.tag, offset,
                 "part of the tensor at offset {}, but with dims {} of {}; expected {} of {}",
                 begin, ToString(tensor.dims), Escape(tensor.type), ToString(parameter.shape),
                 DTypeName(parameter.dtype));
}

Status ParameterGrouping::Append(const ParsedValue& value) {
  Parameter& parameter = last_;
  parameter.framed.push_back(value.message);
  for (const ParsedTensor& tensor : value.tensors) parameter.bytes += tensor.content.length;
  last_bytes_ += kOfValue;
  if (!value.is_map_tensor) {
    parameter.content.push_back(value.tensors[0].content);
    return {};
  }
  for (const ParsedTensor& tensor : value.tensors) {
    const std::optional<uint64_t> item_bytes = NumpyItemBytes(tensor.type);
    if (!item_bytes) {
      return Corrupt(value.tag, value.message.offset,
                     "unknown tensor_type {} in a MapTensor; expected a name such as int32",
                     Quote(tensor.type));
    }
    RESHARD_ASSIGN_OR_RETURN(
        const uint64_t expected,
        BytesOfDims(value.tag, value.message.offset, tensor.dims, tensor.type, *item_bytes));
    if (tensor.content.length != expected) {
      return Corrupt(value.tag, value.message.offset,
                     "{} content bytes in a MapTensor, but dims {} of {} need {}",
                     tensor.content.length, ToString(tensor.dims), tensor.type, expected);
    }
    parameter.map_tensor.push_back({tensor.type, tensor.dims, tensor.content});
    last_bytes_ +=
        2 * sizeof(StoredArray::MapTensorPart) + HeapBytes(tensor.dims.size() * sizeof(int64_t));
  }
  return {};
}

// Compares the content of a parameter with its dims, and stores it. All its Values are known.
Status ParameterGrouping::EndParameter() {
  RESHARD_RETURN_IF_ERROR(CheckContent());
  builder_.Add({.name = last_.name,
                .kind = last_.kind,
                .dtype = last_.dtype,
                .shape = last_.shape,
                .bytes = last_.bytes,
                .framed = last_.framed,
                .content = last_.content,
                .map_tensor = last_.map_tensor});
  has_last_ = false;
  // Of very many Values, the memory goes with them.
  if (last_.framed.size() > kMostValuesKept) last_ = Parameter();
  last_bytes_ = 0;
  return {};
}

Status ParameterGrouping::CheckContent() {
  Parameter& parameter = last_;
  const uint64_t offset = parameter.framed.front().offset;
  if (parameter.kind == ArrayKind::kMapTensor) return {};
  if (parameter.kind == ArrayKind::kText) {
    if (!IsZeroDims(parameter.shape)) {
      return Corrupt(parameter.name, offset, "dims {} of str; expected [0]",
                     ToString(parameter.shape));
    }
    if (parameter.bytes % ItemBytes(DType::kString) == 0) return {};
    return Corrupt(parameter.name, offset,
                   "{} content bytes of str; expected UTF-32 code points of 4 bytes each",
                   parameter.bytes);
  }
  const std::string_view type = DTypeName(parameter.dtype);
  const uint64_t item_bytes = ItemBytes(parameter.dtype);
  RESHARD_ASSIGN_OR_RETURN(const uint64_t expected,
                           BytesOfDims(parameter.name, offset, parameter.shape, type, item_bytes));
  if (parameter.bytes == expected) return {};
  if (IsZeroDims(parameter.shape) && parameter.bytes == item_bytes) {
    parameter.shape.clear();
    return {};
  }
  return Corrupt(
      parameter.name, offset, "{} content bytes{}, but dims {} of {} need {}{}", parameter.bytes,
      parameter.framed.size() == 1 ? std::string()
                                   : fmt::format(" in {} adjacent Values", parameter.framed.size()),
      ToString(parameter.shape), type, expected,
      IsZeroDims(parameter.shape) ? fmt::format(", or {} for a scalar", item_bytes)
                                  : std::string());
}

Result<std::shared_ptr<const FileTable>> ParameterGrouping::Finish() && {
  if (like_ && alike_ == like_->arrays().size()) return std::move(like_);
  if (like_) Store();
  if (has_last_) RESHARD_RETURN_IF_ERROR(EndParameter());
  std::shared_ptr<const FileTable> table = std::move(builder_).Finish();
  if (const auto twice = table->FindTwice()) {
    const auto& [first, second] = *twice;
    return Corrupt(first->name, second->framed.front().offset,
                   "the same tag occurs at offset {}, with others in between; only adjacent Values "
                   "may share a tag",
                   first->framed.front().offset);
  }
  return table;
}

}  // namespace reshard
