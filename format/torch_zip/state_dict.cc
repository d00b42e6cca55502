#include "format/torch_zip/state_dict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "format/torch_zip/torch_tensor.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

// Values may be in several places of a pickle, but not so often that their number explodes.
constexpr uint64_t kLeastVisits = uint64_t{1} << 20;
constexpr uint64_t kVisitsPerByte = 8;

// A dict or list that is being walked through.
struct Walked {
  std::span<const PickleValue> items;
  bool has_pairs = false;
  size_t next = 0;
  size_t path_bytes = 0;  // of the path to it
};

// Classes of dicts, whose entries the pickle sets one by one; they may have none.
bool IsDictClass(const PickleGlobal& global) {
  return global.module == "collections" &&
         (global.name == "OrderedDict" || global.name == "defaultdict");
}

std::optional<Walked> WalkedOf(const Pickle& pickle, const PickleValue& value) {
  switch (value.kind) {
    case PickleKind::kDict:
      return Walked{.items = pickle.Items(value), .has_pairs = true};
    case PickleKind::kList:
    case PickleKind::kTuple:
      return Walked{.items = pickle.Items(value), .has_pairs = false};
    case PickleKind::kNode:
      // One with pairs is of a class of dicts.
      if (!pickle.HasPairs(value) &&
          (!IsDictClass(pickle.Global(value)) || !pickle.Items(value).empty())) {
        return std::nullopt;
      }
      return Walked{.items = pickle.Items(value), .has_pairs = true};
    default:
      return std::nullopt;
  }
}

// Appends the key of a dict, or the place in a list. Keys that are no text and no number are shown
// as in messages.
Status AppendKey(const Pickle& pickle, const Walked& level, size_t place,
                 PickleExpansion& expansion, std::string& path) {
  const size_t before = path.size();
  if (!level.has_pairs) {
    fmt::format_to(std::back_inserter(path), "{}", place);
    return expansion.Take(path.size() - before);
  }
  const PickleValue& key = level.items[place];
  if (key.kind == PickleKind::kText) {
    RESHARD_RETURN_IF_ERROR(expansion.Take(key.length));
    path += pickle.Text(key);
    return {};
  }
  path += pickle.Shown(key);
  return expansion.Take(path.size() - before);
}

// Values side by side that are being looked into.
struct Values {
  std::span<const PickleValue> all;
  size_t next = 0;
};

}  // namespace

bool TorchStorageFinder::IsNew(const PickleValue& object) {
  if (object.data >= seen_.size()) seen_.resize(object.data + 1);
  if (seen_[object.data]) return false;
  seen_[object.data] = true;
  return true;
}

std::vector<std::string_view> TorchStorageFinder::Find(const PickleValue& value) {
  std::vector<std::string_view> keys;
  std::vector<Values> open = {{{&value, 1}}};
  while (!open.empty()) {
    Values& values = open.back();
    if (values.next == values.all.size()) {
      open.pop_back();
      continue;
    }
    const PickleValue& next = values.all[values.next++];
    if (!next.is_object() || !IsNew(next)) continue;
    if (next.kind == PickleKind::kPersistentId) {
      const PickleValue& id = pickle_.Id(next);
      if (id.kind != PickleKind::kTuple || pickle_.Items(id).size() < 3) continue;
      const PickleValue& key = pickle_.Items(id)[2];
      const bool is_key = key.kind == PickleKind::kText && key.length <= kLongestStorageKey;
      if (is_key) keys.push_back(pickle_.Text(key));
      continue;
    }
    open.push_back({pickle_.Items(next)});
    if (next.kind != PickleKind::kNode) continue;
    open.push_back({{&pickle_.Arguments(next), 1}});
    open.push_back({{&pickle_.State(next), 1}});
  }
  return keys;
}

Result<uint64_t> ForEachTorchTensor(const Pickle& pickle, uint64_t pickle_bytes,
                                    PickleExpansion& expansion, const StateDictTakers& take) {
  std::optional<Walked> top = WalkedOf(pickle, pickle.top());
  if (!top) {
    return UnsupportedError(fmt::format("expected a dict of tensors, found {}; save a state_dict()",
                                        IsTorchTensor(pickle, pickle.top())
                                            ? "a tensor without a name"
                                            : pickle.Shown(pickle.top())));
  }
  uint64_t visits = std::max(kLeastVisits, kVisitsPerByte * pickle_bytes);
  uint64_t others = 0;
  std::string path;
  TorchStorageFinder finder(pickle);
  std::vector<Walked> levels = {*top};  // at most kMostPickleLevels
  while (!levels.empty()) {
    Walked& level = levels.back();
    if (level.next >= level.items.size()) {
      levels.pop_back();
      continue;
    }
    if (visits-- == 0) {
      return CorruptError(
          "its dicts and lists are in so many places that their tensors are "
          "countless");
    }
    const size_t place = level.next;
    level.next += level.has_pairs ? 2 : 1;
    const PickleValue& value = level.items[level.next - 1];
    const PickleKind key = level.has_pairs ? level.items[place].kind : PickleKind::kInteger;
    const bool has_name = key == PickleKind::kText || key == PickleKind::kInteger;
    const bool is_tensor = has_name && IsTorchTensor(pickle, value);
    std::optional<Walked> inner = has_name && !is_tensor ? WalkedOf(pickle, value) : std::nullopt;
    std::vector<std::string_view> storages;
    if (!is_tensor && !inner) {
      ++others;
      if (value.is_object()) storages = finder.Find(value);
      if (storages.empty()) continue;
    }
    path.resize(level.path_bytes);
    if (levels.size() > 1) path += '.';
    RESHARD_RETURN_IF_ERROR(AppendKey(pickle, level, place, expansion, path));
    if (is_tensor) {
      RESHARD_RETURN_IF_ERROR(take.tensor(path, value));
    } else if (!inner) {
      RESHARD_RETURN_IF_ERROR(take.object(path, value, storages));
    } else {
      inner->path_bytes = path.size();
      levels.push_back(*inner);
    }
  }
  return others;
}

}  // namespace reshard
