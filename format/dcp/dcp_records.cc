#include "format/dcp/dcp_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "format/dcp/dcp_names.h"
#include "format/torch_zip/torch_tensor.h"
#include "src/base/checked.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

constexpr uint64_t kClasses = 16;  // a record number is place * kClasses + class

// Of a class, and transforms of an item. Instances may share a list, and each looks at all of it.
constexpr size_t kMostMembers = 16;
constexpr size_t kShortPath = 64;

constexpr std::string_view kTorch = "torch";
constexpr std::string_view kDistributed = "torch.distributed.";
constexpr std::string_view kStrided = "torch.strided";

struct NamedClass {
  std::string_view name;  // in a module of torch.distributed
  DcpClass kind;
};

constexpr std::array<NamedClass, 7> kDistributedClasses = {{
    {"Metadata", DcpClass::kMetadata},
    {"BytesStorageMetadata", DcpClass::kObject},
    {"TensorProperties", DcpClass::kProperties},
    {"ChunkStorageMetadata", DcpClass::kChunk},
    {"TensorStorageMetadata", DcpClass::kTensor},
    {"MetadataIndex", DcpClass::kIndex},
    {"_StorageInfo", DcpClass::kItem},
}};

// Returns the error for a member of a class that is missing or another one.
Status Other(const Pickle& pickle, std::string_view member, std::string_view expected,
             const PickleValue* found) {
  return CorruptError(fmt::format("{}: expected {}, found {}", member, expected,
                                  found == nullptr ? "none" : pickle.Shown(*found)));
}

Result<uint64_t> Natural(const Pickle& pickle, const PickleValue* value, std::string_view what) {
  if (value == nullptr || value->kind != PickleKind::kInteger || pickle.Integer(*value) < 0) {
    return Other(pickle, what, "an integer from 0 on", value);
  }
  return static_cast<uint64_t>(pickle.Integer(*value));
}

// Returns the name of the layout that torch.serialization._get_layout returns; no value for another
// value.
std::optional<std::string_view> LayoutOf(const Pickle& pickle, const PickleValue& value) {
  if (value.kind != PickleKind::kNode) return std::nullopt;
  if (pickle.Global(value) != PickleGlobal{"torch.serialization", "_get_layout"}) {
    return std::nullopt;
  }
  const std::span<const PickleValue> arguments = pickle.Items(pickle.Arguments(value));
  if (arguments.size() != 1 || arguments[0].kind != PickleKind::kText) return std::nullopt;
  return pickle.Text(arguments[0]);
}

}  // namespace

DcpClass DcpClassOf(const PickleGlobal& global) {
  if (global == PickleGlobal{kTorch, "Size"}) return DcpClass::kSize;
  if (!global.module.starts_with(kDistributed)) return DcpClass::kOther;
  const auto found =
      std::find_if(kDistributedClasses.begin(), kDistributedClasses.end(),
                   [&](const NamedClass& known) { return known.name == global.name; });
  return found == kDistributedClasses.end() ? DcpClass::kOther : found->kind;
}

uint64_t DcpRecords::RecordOf(DcpClass kind, uint64_t place) {
  return place * kClasses + static_cast<uint64_t>(kind);
}

std::optional<size_t> DcpRecords::PlaceOf(DcpClass kind, const PickleValue& value) {
  if (value.kind != PickleKind::kRecord) return std::nullopt;
  if (value.data % kClasses != static_cast<uint64_t>(kind)) return std::nullopt;
  return value.data / kClasses;
}

void DcpRecords::ForgetTexts() {
  std::vector<Index>().swap(indexes_);
  known_files_.clear();
  files_by_place_.clear();
}

const DcpRecords::Tensor* DcpRecords::AsTensor(const PickleValue& value) const {
  const auto place = PlaceOf(DcpClass::kTensor, value);
  return place ? &tensors_[*place] : nullptr;
}

const DcpRecords::Index* DcpRecords::AsIndex(const PickleValue& value) const {
  const auto place = PlaceOf(DcpClass::kIndex, value);
  return place ? &indexes_[*place] : nullptr;
}

std::optional<uint32_t> DcpRecords::ItemPlace(const PickleValue& value) {
  const auto place = PlaceOf(DcpClass::kItem, value);
  return place ? std::optional(static_cast<uint32_t>(*place)) : std::nullopt;
}

DcpClass DcpRecords::ClassOf(const Pickle& pickle, const PickleValue& node) {
  // Globals have numbers without gaps.
  const uint32_t number = pickle.GlobalNumber(node);
  if (number < classes_.size()) return classes_[number];
  for (uint32_t next = static_cast<uint32_t>(classes_.size()); next <= number; ++next) {
    classes_.push_back(DcpClassOf(pickle.Global({PickleKind::kGlobal, 0, next})));
  }
  return classes_[number];
}

Result<std::optional<uint64_t>> DcpRecords::Collapse(const Pickle& pickle,
                                                     const PickleValue& node) {
  const std::optional<uint64_t> none;
  const DcpClass kind = ClassOf(pickle, node);
  if (kind == DcpClass::kSize) {
    RESHARD_ASSIGN_OR_RETURN(const uint64_t record, TakeSize(pickle, node));
    return std::optional(record);
  }
  const PickleValue& state = pickle.State(node);
  if (kind <= DcpClass::kObject || state.kind == PickleKind::kNone) return none;
  const bool is_properties = kind == DcpClass::kProperties;
  if (state.kind != (is_properties ? PickleKind::kTuple : PickleKind::kDict)) {
    return Other(pickle, Escape(pickle.Global(node).name), is_properties ? "a tuple" : "a dict",
                 &state);
  }
  if (pickle.Items(state).size() > 2 * kMostMembers) {
    return Other(pickle, Escape(pickle.Global(node).name), "fewer members", &state);
  }
  const auto take = is_properties               ? &DcpRecords::TakeProperties
                    : kind == DcpClass::kChunk  ? &DcpRecords::TakeChunk
                    : kind == DcpClass::kTensor ? &DcpRecords::TakeTensor
                    : kind == DcpClass::kIndex  ? &DcpRecords::TakeIndex
                                                : &DcpRecords::TakeItem;
  const Result<uint64_t> record = (this->*take)(pickle, state);
  if (record.ok()) return std::optional(*record);
  return record.status().WithMessage(
      fmt::format("{}: {}", Escape(pickle.Global(node).name), record.status().message()));
}

Result<uint64_t> DcpRecords::TakeSize(const Pickle& pickle, const PickleValue& node) {
  const std::span<const PickleValue> arguments = pickle.Items(pickle.Arguments(node));
  Numbers numbers;
  if (!arguments.empty()) {
    RESHARD_ASSIGN_OR_RETURN(numbers, NumbersOf(pickle, arguments.data(), "torch.Size"));
  }
  return RecordOf(DcpClass::kSize, numbers.packed);
}

Result<DcpRecords::Numbers> DcpRecords::Keep(std::span<const int64_t> numbers) {
  uint64_t hash = numbers.size();
  for (const int64_t number : numbers) {
    hash = (hash ^ static_cast<uint64_t>(number)) * 0x9e3779b97f4a7c15;
  }
  Numbers& recent = recent_[(hash >> 32) % kRecent];
  const std::span<const int64_t> known = At(recent);
  if (!std::equal(numbers.begin(), numbers.end(), known.begin(), known.end())) {
    RESHARD_RETURN_IF_ERROR(expansion_.Take(numbers.size() * sizeof(int64_t)));
    recent = Numbers::Of(numbers_.size(), numbers.size());
    numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
  }
  return recent;
}

Result<DcpRecords::Numbers> DcpRecords::NumbersOf(const Pickle& pickle, const PickleValue* value,
                                                  std::string_view what) {
  if (value != nullptr) {
    if (const auto size = PlaceOf(DcpClass::kSize, *value)) return Numbers{*size};
  }
  if (value == nullptr || (value->kind != PickleKind::kTuple && value->kind != PickleKind::kList)) {
    return Other(pickle, what, "integers", value);
  }
  const std::span<const PickleValue> items = pickle.Items(*value);
  if (items.size() > kMaxDims) {
    return CorruptError(
        fmt::format("{}: {} dimensions, at most {} are read", what, items.size(), kMaxDims));
  }
  list_.clear();
  for (const PickleValue& item : items) {
    RESHARD_ASSIGN_OR_RETURN(const uint64_t number, Natural(pickle, &item, what));
    list_.push_back(static_cast<int64_t>(number));
  }
  return Keep(list_);
}

Result<uint64_t> DcpRecords::TakeProperties(const Pickle& pickle, const PickleValue& state) {
  const std::span<const PickleValue> items = pickle.Items(state);
  // dtype, layout, requires_grad, memory format, pin_memory and, in newer versions, strides.
  if (items.size() < 5 || items.size() > 6) {
    return Other(pickle, "its state", "a tuple of 5 or 6", &state);
  }
  if (items[0].kind != PickleKind::kGlobal) return Other(pickle, "dtype", "a dtype", items.data());
  Properties properties;
  const Result<DType> dtype = TorchDType(pickle.Global(items[0]));
  const std::optional<std::string_view> layout = LayoutOf(pickle, items[1]);
  if (layout != kStrided) {
    properties.unsupported =
        fmt::format("the layout {}", layout ? Escape(*layout) : pickle.Shown(items[1]));
  } else if (!dtype.ok()) {
    properties.unsupported = dtype.status().message();
  } else {
    properties.dtype = *dtype;
  }
  const auto [known, is_new] =
      known_properties_.try_emplace(std::move(properties), properties_.size());
  if (is_new) {
    properties_.push_back(&known->first);
    RESHARD_RETURN_IF_ERROR(expansion_.Take(known->first.unsupported.size()));
  }
  return RecordOf(DcpClass::kProperties, known->second);
}

Result<uint64_t> DcpRecords::TakeChunk(const Pickle& pickle, const PickleValue& state) {
  Chunk chunk;
  RESHARD_ASSIGN_OR_RETURN(chunk.offsets,
                           NumbersOf(pickle, pickle.Find(state, "offsets"), "offsets"));
  RESHARD_ASSIGN_OR_RETURN(chunk.sizes, NumbersOf(pickle, pickle.Find(state, "sizes"), "sizes"));
  chunks_.push_back(chunk);
  return RecordOf(DcpClass::kChunk, chunks_.size() - 1);
}

Result<uint64_t> DcpRecords::TakeTensor(const Pickle& pickle, const PickleValue& state) {
  Tensor tensor;
  const PickleValue* const properties = pickle.Find(state, "properties");
  const auto place =
      properties == nullptr ? std::nullopt : PlaceOf(DcpClass::kProperties, *properties);
  if (!place) return Other(pickle, "properties", "TensorProperties", properties);
  tensor.properties = *place;
  RESHARD_ASSIGN_OR_RETURN(tensor.size, NumbersOf(pickle, pickle.Find(state, "size"), "size"));
  const PickleValue* const chunks = pickle.Find(state, "chunks");
  if (chunks == nullptr ||
      (chunks->kind != PickleKind::kList && chunks->kind != PickleKind::kTuple)) {
    return Other(pickle, "chunks", "a list", chunks);
  }
  const std::span<const PickleValue> items = pickle.Items(*chunks);
  if (items.size() > most_chunks_ - chunks_of_tensors_.size()) {
    return CorruptError(fmt::format("all tensors together have more than {} chunks", most_chunks_));
  }
  tensor.first_chunk = chunks_of_tensors_.size();
  for (const PickleValue& item : items) {
    const auto chunk = PlaceOf(DcpClass::kChunk, item);
    if (!chunk) return Other(pickle, "chunks", "ChunkStorageMetadata", &item);
    chunks_of_tensors_.push_back(static_cast<uint32_t>(*chunk));
  }
  tensor.chunk_count = chunks_of_tensors_.size() - tensor.first_chunk;
  tensors_.push_back(tensor);
  return RecordOf(DcpClass::kTensor, tensors_.size() - 1);
}

Result<uint64_t> DcpRecords::TakeIndex(const Pickle& pickle, const PickleValue& state) {
  const PickleValue* const name = pickle.Find(state, "fqn");
  if (name == nullptr || name->kind != PickleKind::kText) {
    return Other(pickle, "fqn", "a text", name);
  }
  Index index;
  index.name = pickle.Text(*name);
  const PickleValue* const offsets = pickle.Find(state, "offset");
  if (offsets != nullptr && offsets->kind != PickleKind::kNone) {
    RESHARD_ASSIGN_OR_RETURN(index.offsets, NumbersOf(pickle, offsets, "offset"));
  }
  indexes_.push_back(index);
  return RecordOf(DcpClass::kIndex, indexes_.size() - 1);
}

Result<uint64_t> DcpRecords::TakeItem(const Pickle& pickle, const PickleValue& state) {
  const PickleValue* const path = pickle.Find(state, "relative_path");
  if (path == nullptr || path->kind != PickleKind::kText) {
    return Other(pickle, "relative_path", "a text", path);
  }
  Item item;
  RESHARD_ASSIGN_OR_RETURN(item.file, FileOf(pickle.Text(*path)));
  RESHARD_ASSIGN_OR_RETURN(item.range.offset,
                           Natural(pickle, pickle.Find(state, "offset"), "offset"));
  RESHARD_ASSIGN_OR_RETURN(item.range.length,
                           Natural(pickle, pickle.Find(state, "length"), "length"));
  // Both are below 2^63.
  if (item.range.offset + item.range.length > static_cast<uint64_t>(INT64_MAX)) {
    return CorruptError(
        fmt::format("{} bytes at offset {} end beyond 2^63", item.range.length, item.range.offset));
  }
  RESHARD_ASSIGN_OR_RETURN(item.transform,
                           TransformOf(pickle, pickle.Find(state, "transform_descriptors")));
  items_.push_back(item);
  return RecordOf(DcpClass::kItem, items_.size() - 1);
}

Result<uint32_t> DcpRecords::FileOf(std::string_view path) {
  // Many items may refer to one long text: it is looked up once.
  const bool is_long = path.size() > kShortPath;
  if (is_long) {
    const auto place = files_by_place_.find(path.data());
    if (place != files_by_place_.end()) return place->second;
  }
  const auto [known, is_new] = known_files_.try_emplace(path, static_cast<uint32_t>(files_.size()));
  if (is_long) files_by_place_.emplace(path.data(), known->second);
  if (!is_new) return known->second;
  if (!IsDcpPath(path)) {
    return CorruptError(
        fmt::format("relative_path: {} is not the path of a file in the folder of the checkpoint",
                    Quote(path)));
  }
  files_.emplace_back(path);
  return known->second;
}

Result<uint32_t> DcpRecords::TransformOf(const Pickle& pickle, const PickleValue* value) {
  if (value == nullptr || value->kind == PickleKind::kNone) return 0;
  if (value->kind != PickleKind::kList && value->kind != PickleKind::kTuple) {
    return Other(pickle, "transform_descriptors", "a list", value);
  }
  if (pickle.Items(*value).size() > kMostMembers) {
    return Other(pickle, "transform_descriptors", "fewer", value);
  }
  FirstFew names;
  for (const PickleValue& item : pickle.Items(*value)) {
    if (names.full()) {
      names.AddUnnamed(1);
      continue;
    }
    names.Add(item.kind == PickleKind::kText ? Escape(pickle.Text(item)) : pickle.Shown(item));
  }
  const auto [known, is_new] =
      known_transforms_.try_emplace(names.Joined(), static_cast<uint32_t>(transforms_.size()));
  if (is_new) {
    transforms_.push_back(known->first);
    RESHARD_RETURN_IF_ERROR(expansion_.Take(2 * known->first.size()));
  }
  return known->second;
}

}  // namespace reshard
