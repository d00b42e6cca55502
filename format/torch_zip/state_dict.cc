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
struct Level {
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

std::optional<Level> LevelOf(const Pickle& pickle, const PickleValue& value) {
  switch (value.kind) {
    case PickleKind::kDict:
      return Level{.items = pickle.Items(value), .has_pairs = true};
    case PickleKind::kList:
    case PickleKind::kTuple:
      return Level{.items = pickle.Items(value), .has_pairs = false};
    case PickleKind::kNode:
      // One with pairs is of a class of dicts.
      if (!pickle.HasPairs(value) &&
          (!IsDictClass(pickle.Global(value)) || !pickle.Entries(value).empty())) {
        return std::nullopt;
      }
      return Level{.items = pickle.Entries(value), .has_pairs = true};
    default:
      return std::nullopt;
  }
}

// Appends the key of a dict. Returns false for one that is no text and no number.
bool AppendKey(const Pickle& pickle, const PickleValue& key, std::string& path) {
  if (key.kind == PickleKind::kText) {
    path += pickle.Text(key);
    return true;
  }
  if (key.kind != PickleKind::kInteger) return false;
  fmt::format_to(std::back_inserter(path), "{}", pickle.Integer(key));
  return true;
}

}  // namespace

Result<uint64_t> ForEachTorchTensor(const Pickle& pickle, uint64_t pickle_bytes,
                                    const TakeTorchTensor& take) {
  std::optional<Level> top = LevelOf(pickle, pickle.top());
  if (!top) {
    return UnsupportedError(fmt::format("expected a dict of tensors, found {}; save a state_dict()",
                                        IsTorchTensor(pickle, pickle.top())
                                            ? "a tensor without a name"
                                            : pickle.Shown(pickle.top())));
  }
  uint64_t visits = std::max(kLeastVisits, kVisitsPerByte * pickle_bytes);
  uint64_t others = 0;
  std::string path;
  std::vector<Level> levels = {*top};  // at most kMostPickleLevels
  while (!levels.empty()) {
    Level& level = levels.back();
    if (level.next >= level.items.size()) {
      levels.pop_back();
      continue;
    }
    if (visits-- == 0) {
      return CorruptError(
          "its dicts and lists are in so many places that their tensors are "
          "countless");
    }
    path.resize(level.path_bytes);
    if (levels.size() > 1) path += '.';
    bool has_name = true;
    if (level.has_pairs) {
      has_name = AppendKey(pickle, level.items[level.next++], path);
    } else {
      fmt::format_to(std::back_inserter(path), "{}", level.next);
    }
    const PickleValue& value = level.items[level.next++];
    if (has_name && IsTorchTensor(pickle, value)) {
      RESHARD_RETURN_IF_ERROR(take(path, value));
    } else if (std::optional<Level> inner = LevelOf(pickle, value); has_name && inner) {
      inner->path_bytes = path.size();
      levels.push_back(*inner);
    } else {
      ++others;
    }
  }
  return others;
}

}  // namespace reshard
