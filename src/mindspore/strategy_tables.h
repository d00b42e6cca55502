// The data of a Strategy: the layouts of its stages in little memory. Also joins strategy files.
//
// Values without I/O: a codec makes StrategyFiles, and the functions here join them. Immutable once
// made, so any number of threads may read them.
#ifndef RESHARD_SRC_MINDSPORE_STRATEGY_TABLES_H_
#define RESHARD_SRC_MINDSPORE_STRATEGY_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reshard/status.h"
#include "reshard/strategy.h"
#include "src/base/name_arena.h"

namespace reshard {

// The most ranks (devices of a stage times stages) that a strategy may have. The largest clusters
// have far fewer, and a loop over all ranks is fast enough.
inline constexpr int64_t kMaxRanks = int64_t{1} << 20;

// How messages name a strategy that was made in memory.
inline constexpr std::string_view kMadeStrategy = "the strategy";

inline namespace v0_1 {

// The layouts of a file or of a stage, in order, in little memory.
//
// Models repeat few layouts in very many parameters: equal ones are held once, and names lie side
// by side. Copies share both. Not thread-safe while it is filled; then any number of threads may
// read it.
class LayoutTable {
 public:
  using value_type = Strategy::Entry;
  using const_iterator = Strategy::Stage::Iterator;

  void push_back(const Strategy::Entry& entry);
  void push_back(const NamedLayout& named) { push_back(Strategy::Entry{named.name, named.layout}); }
  void clear() { *this = LayoutTable(); }
  // Ends the filling. If a name has several layouts, the last counts, at the place of the first.
  // `path` is the file of the layouts.
  void Finish(std::string path);

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  Strategy::Entry operator[](size_t place) const {
    const Entry& entry = entries_[place];
    return {{entry.name, entry.size}, *layouts_[entry.layout]};
  }
  const_iterator begin() const { return {*this, 0}; }
  const_iterator end() const { return {*this, size()}; }

  // After Finish:
  const std::string& path() const { return path_; }
  const ParameterLayout* Find(std::string_view name) const;

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
  // Returns the slot that `name` has, or would have.
  size_t SlotOf(std::string_view name) const;

  std::deque<Entry> entries_;  // a vector that grows takes twice as much for a moment
  std::vector<std::shared_ptr<const ParameterLayout>> layouts_;
  std::map<const ParameterLayout*, uint32_t, ByValue> by_value_;  // places in layouts_
  NameArena names_;
  std::string path_;
  std::vector<uint32_t> by_name_;  // a hash table: the places in entries_, from 1 on; 0: free
};

// One strategy file, parsed.
struct StrategyFile {
  std::string path;  // for messages
  // The stage of the first strategy item: the file's stage number. Not negative.
  std::optional<int64_t> first_item_stage;
  // In file order, never empty; names as in the file. If a name has several layouts, the last
  // counts.
  LayoutTable layouts;
  // Other files of the same folder that have the same bytes.
  std::vector<std::string> copies;
};

// The data that copies of a Strategy share, and the ways to make it.
class StrategyTables {
 public:
  // Makes the strategy of a file: a pipeline's if IsMerged(file), else a single stage's.
  // Errors:
  //   kMismatch: stages are missing; or device counts differ within a stage (both parameters are
  //   named) or between stages kCorrupt: an impossible device matrix
  static Result<Strategy> FromFile(StrategyFile file);

  // Joins the stage files of `folder`, in any order, to a pipeline's strategy. Files that repeat
  // another file's stage, and merged files, are skipped with a note.
  // Errors: as FromFile
  //   kMismatch: two files of a stage differ, a file does not state its stage, or all files are
  //   merged ones
  static Result<Strategy> FromStageFiles(std::string folder, std::vector<StrategyFile> files);

  // Makes a strategy from layouts in memory: for the stages 0, 1 and so on of a pipeline, or for a
  // single stage with the number `own_stage`.
  // Errors: as FromFile
  //   kInvalidArgument: a stage without layouts
  //   kMismatch: a single stage whose names all look like those of a pipeline's stages
  static Result<Strategy> FromLayouts(std::vector<LayoutTable> stages, bool is_pipeline,
                                      int64_t own_stage,
                                      const std::string& path = std::string(kMadeStrategy));

  // Returns `strategy` with a new name for each parameter. Errors: as FromLayouts
  //   kInvalidArgument: two parameters of a stage would have one name
  using NewName = std::function<Result<std::string>(const std::string& name)>;
  static Result<Strategy> Renamed(const Strategy& strategy, const NewName& new_name);

 private:
  friend class Strategy;

  StrategyTables(std::string path, bool is_pipeline, int64_t own_stage)
      : path_(std::move(path)), is_pipeline_(is_pipeline), own_stage_(own_stage) {}

  // Takes stages 0, 1 and so on, finished, and counts their devices. Errors: as FromFile.
  Status SetStages(std::vector<LayoutTable> stages);

  std::string path_;
  bool is_pipeline_ = false;
  int64_t devices_per_stage_ = 1;
  int64_t own_stage_ = 0;
  size_t layouts_ = 0;
  std::vector<LayoutTable> tables_;
  std::vector<Strategy::Stage> stages_;  // views of tables_
  // The lowest stage of each name, if there are several stages.
  std::unordered_map<std::string_view, int64_t> lowest_stages_;
  std::vector<std::string> notes_;
};

}  // namespace v0_1

// A strategy that was made, and what its user is told about it.
struct MadeStrategy {
  Strategy strategy;
  std::vector<Warning> warnings;
  std::vector<std::string> notes;
};

// Splits "3-dense.weight" into 3 and "dense.weight"; no value if `name` does not match ^[0-9]+-. A
// number beyond 63 bits becomes the largest.
std::optional<std::pair<int64_t, std::string_view>> SplitStagePrefix(std::string_view name);

// True if every name of a file's layouts begins with a stage number and a dash (only the first dash
// counts). Such a file is the strategy of a whole pipeline, written by merge_pipeline_strategys.
// False if there are no layouts.
bool IsMerged(const LayoutTable& layouts);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_STRATEGY_TABLES_H_
