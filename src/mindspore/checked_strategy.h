// Strategy: the layouts of all parameters of a model, stage by stage.
//
// A value without I/O: a codec yields StrategyFiles, the factories here join them.
// Immutable once made, so any number of threads may read it.
#ifndef RESHARD_SRC_MINDSPORE_CHECKED_STRATEGY_H_
#define RESHARD_SRC_MINDSPORE_CHECKED_STRATEGY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reshard/status.h"
#include "src/base/name_arena.h"
#include "src/mindspore/parameter_layout.h"

namespace reshard {

// A layout that stands by itself, to be written.
struct NamedLayout {
  std::string name;
  ParameterLayout layout;

  friend bool operator==(const NamedLayout&, const NamedLayout&) = default;
};

// One of a table, which has to outlive it.
struct LayoutEntry {
  std::string_view name;
  const ParameterLayout& layout;

  // NOLINTNEXTLINE(google-explicit-constructor): both say the same
  operator NamedLayout() const { return {std::string(name), layout}; }
  friend bool operator==(const LayoutEntry& a, const LayoutEntry& b) {
    return a.name == b.name && (&a.layout == &b.layout || a.layout == b.layout);
  }
  friend bool operator==(const LayoutEntry& a, const NamedLayout& b) {
    return a.name == b.name && a.layout == b.layout;
  }
};

// Names and their layouts, in order, in little memory.
//
// Models repeat few layouts in very many parameters: equal ones are held once, and names lie side
// by side. Copies share both. Not thread-safe while it is filled; then any number of threads may
// read it.
class LayoutTable {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = LayoutEntry;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = LayoutEntry;

    Iterator(const LayoutTable& table, size_t place) : table_(&table), place_(place) {}
    LayoutEntry operator*() const { return (*table_)[place_]; }
    Iterator& operator++() {
      ++place_;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++place_;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const LayoutTable* table_;
    size_t place_;
  };
  using value_type = LayoutEntry;
  using iterator = Iterator;
  using const_iterator = Iterator;

  void push_back(const LayoutEntry& entry);
  void push_back(const NamedLayout& named) { push_back(LayoutEntry{named.name, named.layout}); }
  // Gives the entry at `place` the layout `layout`.
  void Replace(size_t place, const ParameterLayout& layout);
  void clear() { *this = LayoutTable(); }

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  LayoutEntry operator[](size_t place) const {
    const Entry& entry = entries_[place];
    return {{entry.name, entry.size}, *layouts_[entry.layout]};
  }
  LayoutEntry front() const { return (*this)[0]; }
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  struct Entry {
    const char* name;  // in names_
    uint32_t size;
    uint32_t layout;  // in layouts_
  };
  struct ByValue {
    bool operator()(const ParameterLayout* a, const ParameterLayout* b) const { return *a < *b; }
  };

  uint32_t Intern(const ParameterLayout& layout);

  std::deque<Entry> entries_;  // a vector that grows takes twice as much for a moment
  std::vector<std::shared_ptr<const ParameterLayout>> layouts_;
  std::map<const ParameterLayout*, uint32_t, ByValue> by_value_;  // places in layouts_
  NameArena names_;
};

// The most ranks (devices of a stage times stages) that a strategy may have: many times those
// of the largest clusters, and few enough to count through.
inline constexpr int64_t kMaxRanks = int64_t{1} << 20;

// The layouts of one stage, to be written.
struct StageLayouts {
  int64_t stage = 0;
  std::vector<NamedLayout> layouts;
};

// One strategy file, parsed.
struct StrategyFile {
  std::string path;  // for messages
  // The stage of the first strategy item: the file's stage number. Not negative.
  std::optional<int64_t> first_item_stage;
  // In file order, never empty; names as they stand in the file. Of several layouts of one name the
  // last counts.
  LayoutTable layouts;
  // Other files of the same folder that have the same bytes.
  std::vector<std::string> copies;
};

// The layouts of one stage. Local rank r of stage s is the global rank s * devices + r.
class StrategyStage {
 public:
  // Takes the layouts of one stage; of several of one name the last counts, at the place of the
  // first. `path` is the file that they are from.
  StrategyStage(std::string path, LayoutTable layouts);

  const std::string& path() const { return path_; }
  // Returns the layout of `name`, or null.
  const ParameterLayout* Find(std::string_view name) const;
  // In file order, each name once, without the stage prefix of a merged file.
  const LayoutTable& layouts() const { return layouts_; }

 private:
  // Returns the slot that `name` has, or would have.
  size_t SlotOf(std::string_view name) const;

  std::string path_;
  LayoutTable layouts_;
  std::vector<uint32_t>
      by_name_;  // a hash table: the places in layouts_, from 1 on; 0: a free slot
};

class CheckedStrategy {
 public:
  // Makes the strategy of one file: a pipeline's when IsMerged(file), else one stage.
  // Errors: kMismatch when stages are missing, when device counts differ within a stage (both
  // parameters are named) or between stages; kCorrupt when a device matrix makes no sense.
  static Result<CheckedStrategy> FromFile(StrategyFile file);

  // Joins the stage files of `folder`, in any order, to a pipeline's strategy. Files that say the
  // same of their stage as another, and files that are merged already, are skipped with a note.
  // Errors: as FromFile; kMismatch when two files of one stage differ, when a file does not tell
  // its stage, when there is none but merged ones.
  static Result<CheckedStrategy> FromStageFiles(std::string folder,
                                                std::vector<StrategyFile> files);

  // The file or the folder.
  const std::string& path() const { return path_; }
  bool is_pipeline() const { return is_pipeline_; }
  int64_t devices_per_stage() const { return devices_per_stage_; }
  int64_t ranks() const { return devices_per_stage_ * static_cast<int64_t>(stages_.size()); }
  // At least one.
  const std::vector<StrategyStage>& stages() const { return stages_; }
  // The stage number that a file of one stage gives for itself, 0 where it has none.
  int64_t own_stage() const { return own_stage_; }
  // Returns the lowest stage that has a layout for `name`, if one has. Costs the same for one stage
  // and for a million.
  std::optional<int64_t> LowestStage(std::string_view name) const;
  // True when some stage has a layout for `name`.
  bool Contains(std::string_view name) const { return LowestStage(name).has_value(); }
  // What was skipped, for the user.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  CheckedStrategy(std::string path, bool is_pipeline)
      : path_(std::move(path)), is_pipeline_(is_pipeline) {}

  // Takes stages 0, 1, ... and counts their devices.
  Status SetStages(std::vector<StrategyStage> stages);

  std::string path_;
  bool is_pipeline_ = false;
  int64_t devices_per_stage_ = 1;
  int64_t own_stage_ = 0;
  std::vector<StrategyStage> stages_;
  // The lowest stage of each name, where there are several stages.
  std::unordered_map<std::string_view, int64_t> lowest_stages_;
  std::vector<std::string> notes_;
};

// Splits "3-dense.weight" into 3 and "dense.weight"; nothing when `name` does not match ^[0-9]+-.
// A number beyond 63 bits becomes the largest.
std::optional<std::pair<int64_t, std::string_view>> SplitStagePrefix(std::string_view name);

// True when every name of a file's layouts, a LayoutTable or a list of NamedLayouts, begins with a
// stage number and a dash (only the first dash counts): the strategy of a whole pipeline, as
// merge_pipeline_strategys writes it. False where there are none.
template <typename Layouts>
bool IsMerged(const Layouts& layouts) {
  return !layouts.empty() && std::all_of(layouts.begin(), layouts.end(), [](const auto& named) {
    return SplitStagePrefix(named.name).has_value();
  });
}

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_CHECKED_STRATEGY_H_
