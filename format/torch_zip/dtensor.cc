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

// The dicts of an object's state: attributes, and those with slots.
constexpr size_t kMostDicts = 2;

// Of such a dict. A few bytes of a pickle can refer to a large one again, which is searched anew.
constexpr size_t kMostAttributes = 64;

// Returns the attribute of an object: an entry of its state, which may be a pair of dicts. Null if
// the object lacks it, or a dict has more than kMostAttributes: then all attributes are unknown.
const PickleValue* Attribute(const Pickle& pickle, const PickleValue& state,
                             std::string_view name) {
  std::span<const PickleValue> parts(&state, 1);
  if (state.kind == PickleKind::kTuple) parts = pickle.Items(state);
  const PickleValue* found = nullptr;
  for (const PickleValue& part : parts.first(std::min(parts.size(), kMostDicts))) {
    if (part.kind != PickleKind::kDict) continue;
    if (pickle.Items(part).size() > 2 * kMostAttributes) return nullptr;
    if (found == nullptr) found = pickle.Find(part, name);
  }
  return found;
}

const PickleValue* AttributeOf(const Pickle& pickle, const PickleValue& object,
                               std::string_view name) {
  return object.kind == PickleKind::kNode ? Attribute(pickle, pickle.State(object), name) : nullptr;
}

// The parts of _rebuild_from_type_v2(function, type, arguments, state).
std::span<const PickleValue> NodeParts(const Pickle& pickle, const PickleValue& value) {
  if (value.kind != PickleKind::kNode) return {};
  const PickleGlobal& function = pickle.Global(value);
  const std::span<const PickleValue> parts = pickle.Items(pickle.Arguments(value));
  const bool fits = function == PickleGlobal{"torch._tensor", "_rebuild_from_type_v2"} &&
                    parts.size() == 4 && parts[1].kind == PickleKind::kGlobal &&
                    IsOf(pickle.Global(parts[1]), "DTensor") && parts[2].kind == PickleKind::kTuple;
  return fits ? parts : std::span<const PickleValue>();
}

// Appends the integers of nested tuples. Tuples of one tuple share it, so that few of them may be
// as many as a power of two.
bool AppendIntegers(const Pickle& pickle, const PickleValue& value, Shape& numbers) {
  constexpr size_t kMostVisits = 4 * kMaxDims;
  std::vector<PickleValue> open = {value};
  for (size_t visits = 0; !open.empty(); ++visits) {
    if (visits == kMostVisits) return false;
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
std::optional<MeshLayout> MeshLayoutOf(const Pickle& pickle, const PickleValue& layout) {
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
                               const MeshLayout& layout, const MeshRanks& map) {
  const PickleValue* const rank = AttributeOf(pickle, mesh, "_rank");
  const PickleValue* const coordinates = AttributeOf(pickle, mesh, "_coordinate_on_dim");
  if (rank == nullptr || rank->kind != PickleKind::kInteger || coordinates == nullptr ||
      (coordinates->kind != PickleKind::kTuple && coordinates->kind != PickleKind::kList)) {
    return 0;
  }
  const std::span<const PickleValue> axes = pickle.Items(*coordinates);
  const std::optional<size_t> place = map.PlaceOf(pickle.Integer(*rank));
  if (axes.size() != layout.extents.size() || !place) return std::nullopt;
  auto begin = std::optional(static_cast<int64_t>(*place));
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

// Puts the ranks into the order of the mesh, whose places are some of those in `map`. Errors:
// kCorrupt if a stride leaves it.
Result<std::vector<int64_t>> RanksOfMap(const MeshLayout& layout, const std::vector<int64_t>& map) {
  const std::optional<uint64_t> places = PlacesOf(layout.parts);
  const uint64_t all = places && *places <= map.size() ? *places : 0;
  std::vector<int64_t> ranks;
  for (uint64_t place = 0; place < all; ++place) {
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
  if (all > 0 && ranks.size() == all) return ranks;
  return CorruptError(fmt::format("a mesh {} with strides {} in a list of {} ranks",
                                  ToString(layout.extents), ToString(layout.strides), map.size()));
}

}  // namespace

const PickleValue* DTensorReader::LocalTensorOf(const PickleValue& value) {
  const std::span<const PickleValue> parts = NodeParts(pickle_, value);
  if (parts.empty()) return nullptr;
  return Attribute(pickle_, parts[3], "_local_tensor");
}

Status DTensorReader::CountPlaces(uint64_t places) {
  if (places > places_left_) {
    return ResourceExhaustedError("its meshes have far more places than its lists of ranks");
  }
  places_left_ -= places;
  return {};
}

Result<DTensorReader::TensorOfRanks> DTensorReader::ReadRanks(const PickleValue& tensor) {
  RESHARD_ASSIGN_OR_RETURN(TorchTensor read, ReadTorchTensor(pickle_, tensor));
  if (read.dtype != DType::kInt32 && read.dtype != DType::kInt64) {
    return CorruptError(fmt::format("a mesh of {}, expected integers", DTypeName(read.dtype)));
  }
  const size_t item = ItemBytes(read.dtype);
  if (read.storage_bytes > kMostRanks * item) {
    return UnsupportedError(fmt::format("a mesh of more than {} ranks", kMostRanks));
  }
  RESHARD_ASSIGN_OR_RETURN(const ZipMember* const member, archive_.StorageOf(read));
  if (member == nullptr || read.place.length == 0) {
    return CorruptError("a mesh without ranks");
  }
  std::shared_ptr<const MeshRanks>& list = lists_[{member, read.place.offset, read.place.length}];
  if (list == nullptr) {
    const auto [known, is_new] = members_.try_emplace(member);
    if (is_new) {
      RESHARD_ASSIGN_OR_RETURN(known->second, archive_.directory().ReadChecked(*member, memory_));
      places_left_ += kPlacesPerRank * (read.storage_bytes / item);
    }
    const std::string& bytes = known->second;
    RESHARD_RETURN_IF_ERROR(CountPlaces(read.place.length / item));
    std::vector<int64_t> ranks;
    ranks.reserve(read.place.length / item);
    for (uint64_t at = read.place.offset; at < read.place.end(); at += item) {
      uint64_t number = 0;
      for (size_t i = item; i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[at + i]);
      ranks.push_back(static_cast<int64_t>(number));
    }
    list = std::make_shared<const MeshRanks>(std::move(ranks));
  }
  return TensorOfRanks{std::move(read.shape), list};
}

Result<std::shared_ptr<const DeviceMesh>> DTensorReader::MeshOf(const PickleValue& mesh) {
  if (mesh.kind != PickleKind::kNode) {
    return CorruptError(fmt::format("expected a mesh, found {}", pickle_.Shown(mesh)));
  }
  const auto known = meshes_.find(mesh.data);
  if (known != meshes_.end()) return known->second;
  RESHARD_ASSIGN_OR_RETURN(std::shared_ptr<const DeviceMesh> read, ReadMesh(mesh));
  meshes_.emplace(mesh.data, read);
  return read;
}

Result<std::shared_ptr<const DeviceMesh>> DTensorReader::ReadMesh(const PickleValue& mesh) {
  const PickleValue* const layout = AttributeOf(pickle_, mesh, "_layout");
  const PickleValue* const map = AttributeOf(pickle_, mesh, "_rank_map");
  const PickleValue* whole = AttributeOf(pickle_, mesh, "mesh");
  if (whole == nullptr) whole = AttributeOf(pickle_, mesh, "_mesh");
  MeshLayout form;
  TensorOfRanks ranks;
  const bool is_part = layout != nullptr && map != nullptr;
  if (is_part) {
    std::optional<MeshLayout> read = MeshLayoutOf(pickle_, *layout);
    if (!read) return UnsupportedError("a mesh whose _layout has a form that is not known");
    form = *std::move(read);
    RESHARD_ASSIGN_OR_RETURN(ranks, ReadRanks(*map));
    const std::optional<int64_t> begin = BeginOf(pickle_, mesh, form, *ranks.ranks);
    if (!begin) return CorruptError("a mesh whose place in its list of ranks contradicts its rank");
    form.begin = *begin;
  } else if (whole != nullptr) {
    RESHARD_ASSIGN_OR_RETURN(ranks, ReadRanks(*whole));
    form.extents = ranks.shape.empty() ? Shape{1} : ranks.shape;
  } else {
    return UnsupportedError("a mesh that does not say its ranks");
  }
  std::shared_ptr<const DeviceMesh>& made =
      distinct_[{ranks.ranks.get(), form.extents, form.parts, form.strides, form.begin}];
  if (made == nullptr) {
    DeviceMesh read;
    if (is_part) {
      RESHARD_ASSIGN_OR_RETURN(std::vector<int64_t> all, RanksOfMap(form, ranks.ranks->all()));
      RESHARD_RETURN_IF_ERROR(CountPlaces(all.size()));
      read.ranks = MeshRanks(std::move(all));
    } else {
      RESHARD_RETURN_IF_ERROR(CountPlaces(ranks.ranks->size()));
      read.ranks = *ranks.ranks;
    }
    read.extents = std::move(form.extents);
    made = std::make_shared<const DeviceMesh>(std::move(read));
  }
  return made;
}

Result<MeshPlacement> DTensorReader::PlacementOf(const PickleValue& value) {
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
  const std::span<const PickleValue> parts = NodeParts(pickle_, value);
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
  RESHARD_RETURN_IF_ERROR(CheckOrder(*spec, read));
  return read;
}

Status DTensorReader::CheckOrder(const PickleValue& spec, const MeshTensor& tensor) {
  const PickleValue* const order = AttributeOf(pickle_, spec, "shard_order");
  if (order == nullptr || order->kind == PickleKind::kNone) return {};
  // Strided placements say in which order the axes cut.
  for (const MeshPlacement& placement : tensor.placements) {
    if (placement.split != 1) return {};
  }
  Status unknown = UnsupportedError("a shard_order of a form that is not known");
  if (order->kind != PickleKind::kTuple || pickle_.Items(*order).size() > kMaxDims) return unknown;
  for (const PickleValue& entry : pickle_.Items(*order)) {
    // A named tuple of a dimension, and of the axes that cut it.
    const PickleValue& pair = entry.kind == PickleKind::kNode ? pickle_.Arguments(entry) : entry;
    if (pair.kind != PickleKind::kTuple || pickle_.Items(pair).size() != 2) return unknown;
    const PickleValue& dim = pickle_.Items(pair)[0];
    Shape axes;
    if (dim.kind != PickleKind::kInteger ||
        !AppendIntegers(pickle_, pickle_.Items(pair)[1], axes)) {
      return unknown;
    }
    Shape expected;
    for (size_t axis = 0; axis < tensor.placements.size(); ++axis) {
      if (tensor.placements[axis].dim == pickle_.Integer(dim)) {
        expected.push_back(static_cast<int64_t>(axis));
      }
    }
    if (axes == expected) continue;
    return UnsupportedError(
        fmt::format("the axes {} of its mesh cut dimension {} in this order (shard_order), "
                    "expected {}; redistribute it to the default order",
                    ToString(axes), pickle_.Integer(dim), ToString(expected)));
  }
  return {};
}

}  // namespace reshard
