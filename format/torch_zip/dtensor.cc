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

// The places of a mesh in its list of ranks. An axis may have several parts, or none if it has a
// single place.
struct MeshLayout {
  Shape extents;               // of the axes
  std::vector<size_t> firsts;  // the first part of each axis
  Shape parts;                 // of all axes, slowest first
  Shape strides;               // of the parts
  int64_t begin = 0;
};

// Adds an axis with its shape and strides, which may be nested.
bool AddAxis(const Pickle& pickle, const PickleValue& shape, const PickleValue& strides,
             MeshLayout& layout) {
  const size_t before = layout.parts.size();
  if (!AppendIntegers(pickle, shape, layout.parts) ||
      !AppendIntegers(pickle, strides, layout.strides) ||
      layout.parts.size() != layout.strides.size()) {
    return false;
  }
  int64_t extent = 1;
  for (size_t i = before; i < layout.parts.size(); ++i) {
    const auto more = CheckedMul(extent, layout.parts[i]);
    if (!more || *more < 1 || *more > static_cast<int64_t>(kMostRanks)) return false;
    extent = *more;
  }
  layout.extents.push_back(extent);
  layout.firsts.push_back(before);
  return layout.extents.size() <= kMaxDims;
}

// Reads a layout of torch, whose form depends on the release: axes with a shape and strides each,
// or these of all axes.
std::optional<MeshLayout> LayoutOf(const Pickle& pickle, const PickleValue& layout) {
  MeshLayout read;
  if (const PickleValue* const axes = AttributeOf(pickle, layout, "axes")) {
    if (axes->kind != PickleKind::kTuple) return {};
    for (const PickleValue& axis : pickle.Items(*axes)) {
      const PickleValue* const shape = AttributeOf(pickle, axis, "shape");
      const PickleValue* const strides = AttributeOf(pickle, axis, "stride");
      if (shape == nullptr || strides == nullptr || !AddAxis(pickle, *shape, *strides, read)) {
        return {};
      }
    }
    return read.extents.empty() ? std::nullopt : std::optional(std::move(read));
  }
  const PickleValue* const shape = AttributeOf(pickle, layout, "shape");
  const PickleValue* const strides = AttributeOf(pickle, layout, "stride");
  if (shape == nullptr || strides == nullptr) return {};
  if (shape->kind != PickleKind::kTuple || strides->kind != PickleKind::kTuple) {
    return AddAxis(pickle, *shape, *strides, read) ? std::optional(std::move(read)) : std::nullopt;
  }
  const std::span<const PickleValue> shapes = pickle.Items(*shape);
  const std::span<const PickleValue> steps = pickle.Items(*strides);
  if (shapes.empty() || shapes.size() != steps.size()) return {};
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!AddAxis(pickle, shapes[i], steps[i], read)) return {};
  }
  return read;
}

// Returns where the places of the mesh begin in `map`: a part of a larger mesh knows its own place
// in it, and the rank that is there. No value if that contradicts itself.
std::optional<int64_t> BeginOf(const Pickle& pickle, const PickleValue& mesh,
                               const MeshLayout& layout, const std::vector<int64_t>& map) {
  const PickleValue* const rank = AttributeOf(pickle, mesh, "_rank");
  const PickleValue* const coordinates = AttributeOf(pickle, mesh, "_coordinate_on_dim");
  if (rank == nullptr || rank->kind != PickleKind::kInteger || coordinates == nullptr ||
      (coordinates->kind != PickleKind::kTuple && coordinates->kind != PickleKind::kList)) {
    return 0;
  }
  const std::span<const PickleValue> axes = pickle.Items(*coordinates);
  const auto place = std::find(map.begin(), map.end(), pickle.Integer(*rank));
  if (axes.size() != layout.extents.size() || place == map.end()) return std::nullopt;
  auto begin = std::optional<int64_t>(place - map.begin());
  size_t part = layout.parts.size();
  for (size_t axis = axes.size(); axis-- > 0;) {
    if (axes[axis].kind != PickleKind::kInteger) return std::nullopt;
    int64_t rest = pickle.Integer(axes[axis]);
    if (rest < 0 || rest >= layout.extents[axis]) return std::nullopt;
    while (part > layout.firsts[axis]) {
      --part;
      const auto way = CheckedMul(rest % layout.parts[part], layout.strides[part]);
      begin = way && *begin >= *way ? std::optional(*begin - *way) : std::nullopt;
      if (!begin) return std::nullopt;
      rest /= layout.parts[part];
    }
  }
  return begin;
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
  const std::optional<uint64_t> places = PlacesOf(layout.parts);
  std::vector<int64_t> ranks;
  for (uint64_t place = 0; places && place < *places; ++place) {
    auto at = std::optional(layout.begin);
    uint64_t rest = place;
    for (size_t i = layout.parts.size(); at && i-- > 0;) {
      const auto extent = static_cast<uint64_t>(layout.parts[i]);
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
    std::optional<MeshLayout> form = LayoutOf(pickle_, *layout);
    if (!form) return UnsupportedError("a mesh whose _layout has a form that is not known");
    Shape shape;
    RESHARD_ASSIGN_OR_RETURN(const std::vector<int64_t> ranks, ReadRanks(*map, shape));
    const std::optional<int64_t> begin = BeginOf(pickle_, mesh, *form, ranks);
    if (!begin) return CorruptError("a mesh whose place in its list of ranks contradicts its rank");
    form->begin = *begin;
    RESHARD_ASSIGN_OR_RETURN(read->ranks, RanksOf(*form, ranks));
    read->extents = std::move(form->extents);
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
