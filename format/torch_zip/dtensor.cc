#include "format/torch_zip/dtensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "format/torch_zip/torch_tensor.h"
#include "src/base/checked.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

// Of a mesh; also bounds the products of its extents.
constexpr uint64_t kMostRanks = uint64_t{1} << 22;

constexpr std::string_view kDTensorModule = "torch.distributed";

bool IsOf(const PickleGlobal& global, std::string_view name) {
  return global.module.starts_with(kDTensorModule) && global.name == name;
}

// Returns the attribute of an object: an entry of its state, which may be a pair of dicts.
const PickleValue* Attribute(const Pickle& pickle, const PickleValue& state,
                             std::string_view name) {
  if (state.kind == PickleKind::kDict) return pickle.Find(state, name);
  if (state.kind != PickleKind::kTuple) return nullptr;
  for (const PickleValue& part : pickle.Items(state)) {
    if (part.kind != PickleKind::kDict) continue;
    if (const PickleValue* const found = pickle.Find(part, name)) return found;
  }
  return nullptr;
}

const PickleValue* AttributeOf(const Pickle& pickle, const PickleValue& object,
                               std::string_view name) {
  return object.kind == PickleKind::kNode ? Attribute(pickle, pickle.State(object), name) : nullptr;
}

// The parts of _rebuild_from_type_v2(function, type, arguments, state).
std::span<const PickleValue> PartsOf(const Pickle& pickle, const PickleValue& value) {
  if (value.kind != PickleKind::kNode) return {};
  const PickleGlobal& function = pickle.Global(value);
  const std::span<const PickleValue> parts = pickle.Items(pickle.Arguments(value));
  const bool fits = function == PickleGlobal{"torch._tensor", "_rebuild_from_type_v2"} &&
                    parts.size() == 4 && parts[1].kind == PickleKind::kGlobal &&
                    IsOf(pickle.Global(parts[1]), "DTensor") && parts[2].kind == PickleKind::kTuple;
  return fits ? parts : std::span<const PickleValue>();
}

// Appends the integers of nested tuples.
bool AppendIntegers(const Pickle& pickle, const PickleValue& value, Shape& numbers) {
  std::vector<PickleValue> open = {value};
  while (!open.empty()) {
    const PickleValue next = open.back();
    open.pop_back();
    if (next.kind == PickleKind::kInteger) {
      numbers.push_back(pickle.Integer(next));
      if (numbers.size() > kMaxDims) return false;
    } else if (next.kind == PickleKind::kTuple && open.size() <= kMaxDims) {
      const std::span<const PickleValue> items = pickle.Items(next);
      if (items.size() > kMaxDims) return false;
      open.insert(open.end(), items.rbegin(), items.rend());
    } else {
      return false;
    }
  }
  return true;
}

// The extents and strides of a mesh in its list of ranks.
struct MeshLayout {
  Shape extents;
  Shape strides;
};

// Reads a layout of torch, whose form depends on the release: axes, or a shape and strides.
std::optional<MeshLayout> LayoutOf(const Pickle& pickle, const PickleValue& layout) {
  MeshLayout read;
  std::vector<PickleValue> parts = {layout};
  const PickleValue* const axes = AttributeOf(pickle, layout, "axes");
  if (axes != nullptr) {
    if (axes->kind != PickleKind::kTuple || pickle.Items(*axes).size() > kMaxDims) return {};
    parts.assign(pickle.Items(*axes).begin(), pickle.Items(*axes).end());
  }
  for (const PickleValue& part : parts) {
    const PickleValue* const shape = AttributeOf(pickle, part, "shape");
    const PickleValue* const strides = AttributeOf(pickle, part, "stride");
    const size_t before = read.extents.size();
    if (shape == nullptr || strides == nullptr || !AppendIntegers(pickle, *shape, read.extents) ||
        !AppendIntegers(pickle, *strides, read.strides) ||
        (axes != nullptr && read.extents.size() != before + 1)) {
      return std::nullopt;
    }
  }
  if (read.extents.empty() || read.extents.size() != read.strides.size()) return std::nullopt;
  return read;
}

// Returns the number of places; no value if there are none, or too many.
std::optional<uint64_t> PlacesOf(const Shape& extents) {
  uint64_t places = 1;
  for (const int64_t extent : extents) {
    if (extent < 1 || static_cast<uint64_t>(extent) > kMostRanks / places) return std::nullopt;
    places *= static_cast<uint64_t>(extent);
  }
  return places;
}

// Puts the ranks into the order of the mesh. Errors: kCorrupt if a stride leaves `map`.
Result<std::vector<int64_t>> RanksOf(const MeshLayout& layout, const std::vector<int64_t>& map) {
  const std::optional<uint64_t> places = PlacesOf(layout.extents);
  std::vector<int64_t> ranks;
  for (uint64_t place = 0; places && place < *places; ++place) {
    auto at = std::optional<int64_t>(0);
    uint64_t rest = place;
    for (size_t i = layout.extents.size(); at && i-- > 0;) {
      const auto extent = static_cast<uint64_t>(layout.extents[i]);
      const auto step = CheckedMul(static_cast<int64_t>(rest % extent), layout.strides[i]);
      at = step ? CheckedAdd(*at, *step) : std::nullopt;
      rest /= extent;
    }
    if (!at || *at < 0 || static_cast<uint64_t>(*at) >= map.size()) break;
    ranks.push_back(map[static_cast<size_t>(*at)]);
  }
  if (places && ranks.size() == *places) return ranks;
  return CorruptError(fmt::format("a mesh {} with strides {} in a list of {} ranks",
                                  ToString(layout.extents), ToString(layout.strides), map.size()));
}

}  // namespace

const PickleValue* LocalTensorOf(const Pickle& pickle, const PickleValue& value) {
  const std::span<const PickleValue> parts = PartsOf(pickle, value);
  if (parts.empty()) return nullptr;
  return Attribute(pickle, parts[3], "_local_tensor");
}

Result<std::vector<int64_t>> DTensorReader::ReadRanks(const PickleValue& tensor, Shape& shape) {
  RESHARD_ASSIGN_OR_RETURN(TorchTensor read, ReadTorchTensor(pickle_, tensor));
  if (read.dtype != DType::kInt32 && read.dtype != DType::kInt64) {
    return CorruptError(fmt::format("a mesh of {}, expected integers", DTypeName(read.dtype)));
  }
  const size_t item = ItemBytes(read.dtype);
  if (read.storage_bytes > kMostRanks * item) {
    return UnsupportedError(fmt::format("a mesh of more than {} ranks", kMostRanks));
  }
  RESHARD_ASSIGN_OR_RETURN(const ZipMember* const member, archive_.StorageOf(read));
  std::vector<int64_t> ranks;
  if (member == nullptr || read.place.length == 0) {
    return CorruptError("a mesh without ranks");
  }
  RESHARD_ASSIGN_OR_RETURN(const std::string bytes,
                           archive_.directory().ReadChecked(*member, memory_));
  for (uint64_t at = read.place.offset; at < read.place.end(); at += item) {
    uint64_t number = 0;
    for (size_t i = item; i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[at + i]);
    ranks.push_back(static_cast<int64_t>(number));
  }
  shape = std::move(read.shape);
  return ranks;
}

Result<std::shared_ptr<const DeviceMesh>> DTensorReader::MeshOf(const PickleValue& mesh) {
  if (mesh.kind != PickleKind::kNode) {
    return CorruptError(fmt::format("expected a mesh, found {}", pickle_.Shown(mesh)));
  }
  const auto known = meshes_.find(mesh.data);
  if (known != meshes_.end()) return known->second;
  auto read = std::make_shared<DeviceMesh>();
  const PickleValue* const layout = AttributeOf(pickle_, mesh, "_layout");
  const PickleValue* const map = AttributeOf(pickle_, mesh, "_rank_map");
  const PickleValue* whole = AttributeOf(pickle_, mesh, "mesh");
  if (whole == nullptr) whole = AttributeOf(pickle_, mesh, "_mesh");
  if (layout != nullptr && map != nullptr) {
    const std::optional<MeshLayout> form = LayoutOf(pickle_, *layout);
    if (!form) return UnsupportedError("a mesh whose _layout has a form that is not known");
    Shape shape;
    RESHARD_ASSIGN_OR_RETURN(const std::vector<int64_t> ranks, ReadRanks(*map, shape));
    RESHARD_ASSIGN_OR_RETURN(read->ranks, RanksOf(*form, ranks));
    read->extents = form->extents;
  } else if (whole != nullptr) {
    RESHARD_ASSIGN_OR_RETURN(read->ranks, ReadRanks(*whole, read->extents));
    if (read->extents.empty()) read->extents = {1};
  } else {
    return UnsupportedError("a mesh that does not say its ranks");
  }
  meshes_.emplace(mesh.data, read);
  return std::shared_ptr<const DeviceMesh>(std::move(read));
}

Result<MeshPlacement> DTensorReader::PlacementOf(const PickleValue& value) const {
  if (value.kind != PickleKind::kNode) {
    return CorruptError(fmt::format("expected a placement, found {}", pickle_.Shown(value)));
  }
  const PickleGlobal& kind = pickle_.Global(value);
  if (IsOf(kind, "Replicate")) return MeshPlacement{};
  const bool is_strided = IsOf(kind, "_StridedShard");
  if (!is_strided && !IsOf(kind, "Shard")) {
    return UnsupportedError(fmt::format("the placement {}.{}; save a full or sharded tensor",
                                        Escape(kind.module), Escape(kind.name)));
  }
  // A dataclass has a state; other forms take the numbers as arguments.
  const std::span<const PickleValue> arguments = pickle_.Items(pickle_.Arguments(value));
  const auto number = [&](std::string_view name, size_t place) -> std::optional<int64_t> {
    const PickleValue* found = AttributeOf(pickle_, value, name);
    if (found == nullptr && place < arguments.size()) found = &arguments[place];
    if (found == nullptr || found->kind != PickleKind::kInteger) return std::nullopt;
    return pickle_.Integer(*found);
  };
  const std::optional<int64_t> dim = number("dim", 0);
  const std::optional<int64_t> split = is_strided ? number("split_factor", 1) : 1;
  if (!dim || !split || *split < 1) {
    return UnsupportedError(fmt::format("a placement {} without its numbers", Escape(kind.name)));
  }
  return MeshPlacement{.dim = *dim, .split = *split};
}

Result<MeshTensor> DTensorReader::Read(const std::string& name, const PickleValue& value) {
  const std::span<const PickleValue> parts = PartsOf(pickle_, value);
  const PickleValue* const spec = Attribute(pickle_, parts[3], "_spec");
  const PickleValue* const mesh = spec == nullptr ? nullptr : AttributeOf(pickle_, *spec, "mesh");
  const PickleValue* const placements =
      spec == nullptr ? nullptr : AttributeOf(pickle_, *spec, "placements");
  const std::span<const PickleValue> wrapper = pickle_.Items(parts[2]);
  if (mesh == nullptr || placements == nullptr || placements->kind != PickleKind::kTuple ||
      wrapper.size() < 3) {
    return UnsupportedError("a DTensor without mesh, placements or full shape");
  }
  MeshTensor read{.name = name, .full_shape = {}, .mesh = nullptr, .placements = {}};
  if (!AppendIntegers(pickle_, wrapper[2], read.full_shape) ||
      std::any_of(read.full_shape.begin(), read.full_shape.end(),
                  [](int64_t extent) { return extent < 0; })) {
    return CorruptError(fmt::format("expected a full shape, found {}", pickle_.Shown(wrapper[2])));
  }
  RESHARD_ASSIGN_OR_RETURN(read.mesh, MeshOf(*mesh));
  const std::span<const PickleValue> axes = pickle_.Items(*placements);
  if (axes.size() != read.mesh->extents.size()) {
    return CorruptError(
        fmt::format("{} placements over a mesh {}", axes.size(), ToString(read.mesh->extents)));
  }
  for (const PickleValue& axis : axes) {
    RESHARD_ASSIGN_OR_RETURN(MeshPlacement placement, PlacementOf(axis));
    const auto dims = static_cast<int64_t>(read.full_shape.size());
    if (placement.dim && *placement.dim < 0) *placement.dim += dims;
    if (placement.dim && (*placement.dim < 0 || *placement.dim >= dims)) {
      return CorruptError(fmt::format("a cut of dimension {} of a tensor {}", *placement.dim,
                                      ToString(read.full_shape)));
    }
    read.placements.push_back(placement);
  }
  return read;
}

}  // namespace reshard
