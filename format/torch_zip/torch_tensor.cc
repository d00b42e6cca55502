#include "format/torch_zip/torch_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "src/base/checked.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

constexpr std::string_view kUtils = "torch._utils";

struct TorchType {
  std::string_view name;     // torch.NAME
  std::string_view storage;  // torch.STORAGE; "" if the dtype has none
  DType dtype;
};

constexpr std::array<TorchType, 18> kTypes = {{
    {"float32", "FloatStorage", DType::kFloat32},
    {"float64", "DoubleStorage", DType::kFloat64},
    {"float16", "HalfStorage", DType::kFloat16},
    {"bfloat16", "BFloat16Storage", DType::kBFloat16},
    {"int64", "LongStorage", DType::kInt64},
    {"int32", "IntStorage", DType::kInt32},
    {"int16", "ShortStorage", DType::kInt16},
    {"int8", "CharStorage", DType::kInt8},
    {"uint8", "ByteStorage", DType::kUInt8},
    {"bool", "BoolStorage", DType::kBool},
    {"complex64", "ComplexFloatStorage", DType::kComplex64},
    {"complex128", "ComplexDoubleStorage", DType::kComplex128},
    {"uint16", "", DType::kUInt16},
    {"uint32", "", DType::kUInt32},
    {"uint64", "", DType::kUInt64},
    {"float8_e4m3fn", "", DType::kFloat8E4M3FN},
    {"float8_e5m2", "", DType::kFloat8E5M2},
    {"float8_e8m0fnu", "", DType::kFloat8E8M0},
}};

std::string NameOf(const PickleGlobal& global) {
  return fmt::format("{}.{}", Escape(global.module), Escape(global.name));
}

// What is looked at of one value: a few bytes can refer to it again.
constexpr size_t kMostArguments = 16;
constexpr size_t kMostFlags = 16;

// A function of a pickle, and its arguments.
struct TorchCall {
  PickleGlobal function;
  std::span<const PickleValue> arguments;

  bool Is(std::string_view module, std::string_view name) const {
    return function == PickleGlobal{module, name};
  }
};

std::optional<TorchCall> CallOf(const Pickle& pickle, const PickleValue& value) {
  if (value.kind != PickleKind::kNode) return std::nullopt;
  return TorchCall{pickle.Global(value), pickle.Items(pickle.Arguments(value))};
}

// Of tensors on Ascend. It has the arguments of _rebuild_tensor_v2, but that the last one is a
// format of the device; the storage is that of the tensor on the host.
bool IsRebuildOfNpu(const TorchCall& call) {
  return call.function.module.starts_with("torch_npu.") &&
         call.function.name == "_rebuild_npu_tensor";
}

bool IsRebuild(const TorchCall& call) {
  return IsRebuildOfNpu(call) ||
         ((call.function.module == kUtils || call.function.module == "torch._tensor") &&
          call.function.name.starts_with("_rebuild_"));
}

// Whether a call takes a storage, as those do that make tensors.
bool TakesStorage(const TorchCall& call) {
  const auto first = call.arguments.first(std::min(call.arguments.size(), kMostArguments));
  return std::any_of(first.begin(), first.end(), [](const PickleValue& argument) {
    return argument.kind == PickleKind::kPersistentId;
  });
}

Status OtherArguments(const TorchCall& call, std::string_view what) {
  return CorruptError(fmt::format("{}: {}", NameOf(call.function), what));
}

// Follows the functions that only mark another tensor.
Result<TorchCall> Innermost(const Pickle& pickle, TorchCall call) {
  for (;;) {
    if (call.Is(kUtils, "_rebuild_parameter") || call.Is(kUtils, "_rebuild_parameter_with_state")) {
      const std::optional<TorchCall> inner =
          call.arguments.empty() ? std::nullopt : CallOf(pickle, call.arguments.front());
      if (!inner) return OtherArguments(call, "expected a tensor as its first argument");
      call = *inner;
    } else if (call.Is("torch._tensor", "_rebuild_from_type_v2") ||
               call.Is("torch._tensor", "_rebuild_from_type")) {
      const bool fits = call.arguments.size() == 4 &&
                        call.arguments[0].kind == PickleKind::kGlobal &&
                        call.arguments[2].kind == PickleKind::kTuple;
      if (!fits) return OtherArguments(call, "expected a function, a type, arguments and a state");
      call = {pickle.Global(call.arguments[0]), pickle.Items(call.arguments[2])};
    } else {
      return call;
    }
    if (!IsRebuild(call)) {
      return OtherArguments(call, "expected a function that makes a tensor");
    }
  }
}

Status NotPlain(const Pickle& pickle, const TorchCall& call) {
  const std::string_view name = call.function.name;
  if (name == "_rebuild_wrapper_subclass" && !call.arguments.empty() &&
      call.arguments.front().kind == PickleKind::kGlobal) {
    const PickleGlobal& type = pickle.Global(call.arguments.front());
    return UnsupportedError(
        fmt::format("a tensor of the class {}, which holds others{}", NameOf(type),
                    type.name == "ShardedTensor"
                        ? "; save it with torch.distributed.checkpoint, or as a full state dict"
                        : ""));
  }
  const std::string_view kind =
      name.find("qtensor") != std::string_view::npos  ? "a quantized tensor"
      : name.find("sparse") != std::string_view::npos ? "a sparse tensor"
      : name.find("nested") != std::string_view::npos ? "a nested tensor"
      : name.find("meta") != std::string_view::npos   ? "a tensor without a storage"
                                                      : "a tensor";
  return UnsupportedError(
      fmt::format("{} ({}); save it as a plain tensor", kind, NameOf(call.function)));
}

Result<Shape> NumbersOf(const Pickle& pickle, PickleValue value, std::string_view what) {
  if (value.kind == PickleKind::kNode && pickle.Global(value) == PickleGlobal{"torch", "Size"} &&
      pickle.Items(pickle.Arguments(value)).size() == 1) {
    value = pickle.Items(pickle.Arguments(value)).front();
  }
  if (value.kind != PickleKind::kTuple) {
    return CorruptError(
        fmt::format("expected a tuple as its {}, found {}", what, pickle.Shown(value)));
  }
  const std::span<const PickleValue> items = pickle.Items(value);
  if (items.size() > kMaxDims) {
    return CorruptError(fmt::format("{} dimensions; at most {} are read", items.size(), kMaxDims));
  }
  Shape numbers;
  for (const PickleValue& item : items) {
    if (item.kind != PickleKind::kInteger || pickle.Integer(item) < 0) {
      return CorruptError(
          fmt::format("expected integers from 0 on in its {}, found {}", what, pickle.Shown(item)));
    }
    numbers.push_back(pickle.Integer(item));
  }
  return numbers;
}

// A storage, as a persistent id has it.
struct TorchStorage {
  std::string_view key;
  std::optional<DType> dtype;  // none: it counts bytes
  uint64_t bytes = 0;
};

// Whether the key of a storage is a name of a member in the folder data.
bool IsKey(std::string_view key) {
  return !key.empty() && key.size() <= kLongestStorageKey &&
         key.find('/') == std::string_view::npos;
}

Result<TorchStorage> StorageOf(const Pickle& pickle, const PickleValue& value) {
  const bool is_id =
      value.kind == PickleKind::kPersistentId && pickle.Id(value).kind == PickleKind::kTuple;
  const std::span<const PickleValue> id =
      is_id ? pickle.Items(pickle.Id(value)) : std::span<const PickleValue>();
  const bool fits = id.size() >= 5 && id[0].kind == PickleKind::kText &&
                    pickle.Text(id[0]) == "storage" && id[1].kind == PickleKind::kGlobal &&
                    id[2].kind == PickleKind::kText && IsKey(pickle.Text(id[2])) &&
                    id[4].kind == PickleKind::kInteger && pickle.Integer(id[4]) >= 0;
  if (!fits) {
    return CorruptError(
        fmt::format("expected a storage, its class, key, device and elements, found {}",
                    pickle.Shown(is_id ? pickle.Id(value) : value)));
  }
  TorchStorage storage{.key = pickle.Text(id[2]), .dtype = {}};
  const PickleGlobal& type = pickle.Global(id[1]);
  const bool is_untyped = (type.module == "torch.storage" || type.module == "torch") &&
                          (type.name == "UntypedStorage" || type.name == "_UntypedStorage");
  if (!is_untyped) {
    const auto known = std::find_if(kTypes.begin(), kTypes.end(), [&](const TorchType& candidate) {
      return type.module == "torch" && !type.name.empty() && candidate.storage == type.name;
    });
    if (known == kTypes.end()) {
      return UnsupportedError(fmt::format("a storage of the class {}", NameOf(type)));
    }
    storage.dtype = known->dtype;
  }
  const auto bytes = CheckedMul(
      pickle.Integer(id[4]), storage.dtype ? static_cast<int64_t>(ItemBytes(*storage.dtype)) : 1);
  if (!bytes) {
    return CorruptError(fmt::format(
        "a storage of {} elements makes more bytes than 63 bits can count", pickle.Integer(id[4])));
  }
  storage.bytes = static_cast<uint64_t>(*bytes);
  return storage;
}

// Errors: kUnsupported if a flag of the dict is set, such as "conj".
Status CheckFlags(const Pickle& pickle, const PickleValue& flags) {
  if (flags.kind == PickleKind::kNone) return {};
  if (flags.kind != PickleKind::kDict) {
    return CorruptError(fmt::format("expected a dict of flags, found {}", pickle.Shown(flags)));
  }
  const std::span<const PickleValue> items = pickle.Items(flags);
  if (items.size() > 2 * kMostFlags) {
    return CorruptError(
        fmt::format("expected at most {} flags, found {}", kMostFlags, pickle.Shown(flags)));
  }
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i + 1].kind == PickleKind::kBool && !pickle.Bool(items[i + 1])) continue;
    const std::string_view flag =
        items[i].kind == PickleKind::kText ? pickle.Text(items[i]) : std::string_view();
    if (flag == "conj" || flag == "neg") {
      return UnsupportedError(
          fmt::format("{}, whose bytes are not its values; save it after resolve_{}()",
                      flag == "conj" ? "a conjugate view" : "a negative view", flag));
    }
    return UnsupportedError(fmt::format("a tensor with the flag {}", pickle.Shown(items[i])));
  }
  return {};
}

// The numbers of a tensor in elements of its storage.
struct Strided {
  Shape shape;
  Shape strides;
  int64_t offset = 0;
};

// Errors: kCorrupt if an element lies beyond `elements`.
Status CheckInStorage(const Strided& tensor, uint64_t elements) {
  auto last = std::optional(static_cast<uint64_t>(tensor.offset));
  for (size_t i = 0; last && i < tensor.shape.size(); ++i) {
    const auto way = CheckedMul(static_cast<uint64_t>(tensor.shape[i] - 1),
                                static_cast<uint64_t>(tensor.strides[i]));
    last = way ? CheckedAdd(*last, *way) : std::nullopt;
  }
  if (last && *last < elements) return {};
  return CorruptError(
      fmt::format("shape {} with strides {} from element {} on leaves its storage of {} elements",
                  ToString(tensor.shape), ToString(tensor.strides), tensor.offset, elements));
}

bool IsRowMajor(const Strided& tensor) {
  int64_t stride = 1;
  for (size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] == 1) continue;
    if (tensor.strides[i] != stride) return false;
    stride *= tensor.shape[i];  // fits: TensorBytes does
  }
  return true;
}

Result<Strided> StridedOf(const Pickle& pickle, const TorchCall& call) {
  Strided tensor;
  if (call.arguments[1].kind != PickleKind::kInteger || pickle.Integer(call.arguments[1]) < 0) {
    return OtherArguments(call, fmt::format("expected an offset from 0 on, found {}",
                                            pickle.Shown(call.arguments[1])));
  }
  tensor.offset = pickle.Integer(call.arguments[1]);
  RESHARD_ASSIGN_OR_RETURN(tensor.shape, NumbersOf(pickle, call.arguments[2], "shape"));
  RESHARD_ASSIGN_OR_RETURN(tensor.strides, NumbersOf(pickle, call.arguments[3], "strides"));
  if (tensor.shape.size() == tensor.strides.size()) return tensor;
  return OtherArguments(
      call, fmt::format("shape {} has {} strides", ToString(tensor.shape), tensor.strides.size()));
}

Result<TorchTensor> Placed(const Strided& strided, const TorchStorage& storage, DType dtype) {
  const std::optional<uint64_t> bytes = TensorBytes(strided.shape, dtype);
  if (!bytes) {
    return CorruptError(fmt::format("shape {} of {} makes more bytes than 63 bits can count",
                                    ToString(strided.shape), DTypeName(dtype)));
  }
  TorchTensor tensor{.dtype = dtype,
                     .shape = strided.shape,
                     .storage = storage.key,
                     .storage_bytes = storage.bytes,
                     .storage_item = storage.dtype ? ItemBytes(*storage.dtype) : 1,
                     .place = {}};
  if (*bytes == 0) return tensor;
  RESHARD_RETURN_IF_ERROR(CheckInStorage(strided, storage.bytes / ItemBytes(dtype)));
  if (!IsRowMajor(strided)) {
    return UnsupportedError(
        fmt::format("transposed or expanded: shape {} with strides {}; save it after contiguous()",
                    ToString(strided.shape), ToString(strided.strides)));
  }
  tensor.place = {static_cast<uint64_t>(strided.offset) * ItemBytes(dtype), *bytes};
  return tensor;
}

}  // namespace

Result<DType> TorchDType(const PickleGlobal& global) {
  const auto known = std::find_if(kTypes.begin(), kTypes.end(), [&](const TorchType& type) {
    return global.module == "torch" && type.name == global.name;
  });
  if (known != kTypes.end()) return known->dtype;
  return UnsupportedError(fmt::format("the dtype {}", NameOf(global)));
}

bool IsTorchTensor(const Pickle& pickle, const PickleValue& value) {
  const std::optional<TorchCall> call = CallOf(pickle, value);
  return call && (IsRebuild(*call) || TakesStorage(*call));
}

Result<TorchTensor> ReadTorchTensor(const Pickle& pickle, const PickleValue& value) {
  const std::optional<TorchCall> outer = CallOf(pickle, value);
  if (!outer || !IsTorchTensor(pickle, value)) {
    return CorruptError(fmt::format("expected a tensor, found {}", pickle.Shown(value)));
  }
  RESHARD_ASSIGN_OR_RETURN(const TorchCall call, Innermost(pickle, *outer));
  const bool is_v3 = call.Is(kUtils, "_rebuild_tensor_v3");
  const bool is_of_npu = IsRebuildOfNpu(call);
  if (!is_v3 && !is_of_npu && !call.Is(kUtils, "_rebuild_tensor_v2")) return NotPlain(pickle, call);
  const size_t least = is_v3 ? 7 : 6;
  if (call.arguments.size() < least || call.arguments.size() > least + 1) {
    return OtherArguments(call, fmt::format("{} arguments, expected {} or {}",
                                            call.arguments.size(), least, least + 1));
  }
  RESHARD_ASSIGN_OR_RETURN(const TorchStorage storage, StorageOf(pickle, call.arguments[0]));
  RESHARD_ASSIGN_OR_RETURN(const Strided strided, StridedOf(pickle, call));
  if (call.arguments.size() > least && !is_of_npu) {
    RESHARD_RETURN_IF_ERROR(CheckFlags(pickle, call.arguments[least]));
  }
  if (!is_v3) {
    if (!storage.dtype) return OtherArguments(call, "a storage of bytes, which states no dtype");
    return Placed(strided, storage, *storage.dtype);
  }
  if (call.arguments[6].kind != PickleKind::kGlobal) {
    return OtherArguments(
        call, fmt::format("expected a dtype, found {}", pickle.Shown(call.arguments[6])));
  }
  RESHARD_ASSIGN_OR_RETURN(const DType dtype, TorchDType(pickle.Global(call.arguments[6])));
  return Placed(strided, storage, dtype);
}

}  // namespace reshard
