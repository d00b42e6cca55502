// Strategies of MindSpore: the value Strategy, and functions that
// - read and write a strategy
// - merge strategy files, or convert one to the other encoding
// - make a strategy from a specification, or infer one from a checkpoint
// - tell the box of a rank, and the source ranks that a target rank needs.
//
// Every path of a strategy may be a file or a folder of stage files. The content tells protobuf
// from JSON. The functions do not print. Any number of threads may call them; each call uses its
// own threads and state.
//
// Implemented in src/mindspore, but MakeStrategy and InferStrategy in src/api.
#ifndef RESHARD_STRATEGY_H_
#define RESHARD_STRATEGY_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/options.h"
#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {
inline namespace v0_1 {

// How one parameter is cut over the ranks of a stage, as a strategy file states it
// (docs/reference/layouts.md; src/mindspore/SPEC.md).
struct ParameterLayout {
  std::vector<int64_t> device_matrix = {};  // device axes, slowest first
  // For each dimension of the tensor the device axes that split it, or -1 if it is not split. Axes
  // are counted from the right, 0 being the last one. One inner list: an axis for each dimension.
  // Several inner lists: one for each dimension, its axes slowest first.
  std::vector<std::vector<int64_t>> tensor_map = {};
  int64_t opt_weight_shard_step = 0;
  // Parts of the first dimension by optimizer sharding; 0: none, -1: all replicas.
  int64_t opt_weight_shard_size = 0;
  // Only MindSpore's merge_sliced_parameter gives these a meaning; WriteStrategy leaves them out.
  int64_t field = 0;
  std::vector<std::vector<int64_t>> param_split_shape = {};
  std::vector<std::vector<int64_t>> indices_offset = {};
  std::optional<Shape> tensor_shape = {};  // of the full tensor; in some JSON files, of no effect

  friend auto operator<=>(const ParameterLayout&, const ParameterLayout&) = default;
};

// A layout that stands by itself, to make a strategy of.
struct NamedLayout {
  std::string name;  // of the parameter, without stage prefix
  ParameterLayout layout;

  friend bool operator==(const NamedLayout&, const NamedLayout&) = default;
};

class LayoutTable;     // of the library alone
class StrategyTables;  // of the library alone

// The layouts of all parameters of a model, stage by stage. Local rank r of stage s is the global
// rank s * devices_per_stage() + r.
//
// Always valid: made by ReadStrategy, Make or MakePipeline. Immutable, so any number of threads may
// read it. Copies share the layouts, and equal layouts are stored once. A move copies.
class Strategy {
 public:
  // One layout of a strategy. The strategy has to outlive it.
  struct Entry {
    std::string_view name;
    const ParameterLayout& layout;  // equal ones of a stage are one object

    // NOLINTNEXTLINE(google-explicit-constructor): both say the same
    operator NamedLayout() const { return {std::string(name), layout}; }
    friend bool operator==(const Entry& a, const Entry& b) {
      return a.name == b.name && (&a.layout == &b.layout || a.layout == b.layout);
    }
    friend bool operator==(const Entry& a, const NamedLayout& b) {
      return a.name == b.name && a.layout == b.layout;
    }
  };

  // The layouts of a stage: a view into a strategy, which has to live longer. Any number of threads
  // may read it.
  class Stage {
   public:
    class Iterator {
     public:
      using iterator_category = std::input_iterator_tag;
      using value_type = Entry;
      using difference_type = std::ptrdiff_t;
      using pointer = void;
      using reference = Entry;

      Iterator(const LayoutTable& table, size_t place) : table_(&table), place_(place) {}
      Entry operator*() const { return At(*table_, place_); }
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
    using value_type = Entry;
    using const_iterator = Iterator;

    Stage(const LayoutTable& table, int64_t number) : table_(&table), number_(number) {}

    // Its place in the strategy, from 0 on.
    int64_t number() const { return number_; }
    // The file that the stage is from.
    const std::string& path() const;
    // The layouts in file order, each name once. There is at least one.
    size_t size() const;
    Entry operator[](size_t place) const { return At(*table_, place); }
    Entry front() const { return (*this)[0]; }
    Iterator begin() const { return {*table_, 0}; }
    Iterator end() const { return {*table_, size()}; }
    // Returns the layout of `name`, or null. It costs the same for one layout and for a million.
    const ParameterLayout* Find(std::string_view name) const;

   private:
    static Entry At(const LayoutTable& table, size_t place);

    const LayoutTable* table_;
    int64_t number_;
  };

  // Makes the strategy of a single stage. `own_stage` is the stage number that its file states. If
  // a name has several layouts, the last counts.
  // Errors:
  //   kInvalidArgument: no layouts, a layout without a tensor map, a negative stage
  //   errors of ReadStrategy: a layout that no file can express
  static Result<Strategy> Make(const std::vector<NamedLayout>& layouts, int64_t own_stage = 0);
  // Makes the strategy of a pipeline from the layouts of stages 0, 1 and so on. Errors: as Make.
  static Result<Strategy> MakePipeline(const std::vector<std::vector<NamedLayout>>& stages);

  Strategy(const Strategy&) = default;
  Strategy& operator=(const Strategy&) = default;
  ~Strategy() = default;

  // The file or the folder that it was read from; "the strategy" for one that was made.
  const std::string& path() const;
  bool is_pipeline() const;
  // At least one.
  const std::vector<Stage>& stages() const;
  int64_t devices_per_stage() const;
  int64_t ranks() const;  // of all stages
  // The number that a file of a single stage states, or 0. The stage's first rank is own_stage *
  // devices_per_stage.
  int64_t own_stage() const;
  // The number of layouts of all stages.
  size_t layouts() const;
  // Returns the lowest stage that has a layout for `name`, if one has. It costs the same for one
  // stage and for a million.
  std::optional<int64_t> LowestStage(std::string_view name) const;
  // Returns whether a stage has a layout for `name`.
  bool Contains(std::string_view name) const { return LowestStage(name).has_value(); }
  // The files of a folder that were skipped, and why.
  const std::vector<std::string>& notes() const;

 private:
  friend class StrategyTables;

  explicit Strategy(std::shared_ptr<const StrategyTables> tables) : tables_(std::move(tables)) {}

  std::shared_ptr<const StrategyTables> tables_;  // never null
};

// Reads a file, or merges a folder of stage files. Errors: kNotFound, kCorrupt, kMismatch, kIo.
Result<Strategy> ReadStrategy(const std::string& path);

// Writes `strategy` to the file `output`: in JSON if its name ends in .json, else in protobuf. The
// file has the layouts alone, without operators and shapes. `output` appears whole or not at all.
// Errors:
//   kMismatch: the strategy has values that no file can express
//   kAlreadyExists: `output` exists without `force`
//   kIo
Status WriteStrategy(const Strategy& strategy, const std::string& output, bool force);

// Returns the box of a full tensor of shape `full_shape` that a rank holds under a layout. `rank`
// counts from 0 within the stage. The rank's checkpoint has these elements, and
// ShardedCheckpoint::Read reads them. The name of `parameter` is for messages.
// Errors:
//   kInvalidArgument: no such rank
//   kMismatch: the layout cannot cut this shape
//   errors of Strategy::Make
Result<Box> ShardBox(const NamedLayout& parameter, const Shape& full_shape, int64_t rank);

// A strategy file that a call has written.
struct StrategyReport {
  // 0 if a file was converted that cannot be used as a strategy, since its layouts disagree.
  int64_t stages = 0;
  int64_t devices_per_stage = 0;
  uint64_t layouts = 0;  // in all stages; one that a converted file lists twice counts twice
  uint64_t bytes = 0;
  // Details that the file cannot hold, unused entries of a specification, matrices that stay whole,
  // or choices that inference left open.
  std::vector<Warning> warnings = {};
  // Files of a folder that were skipped, parameters without a layout, and why.
  std::vector<std::string> notes = {};
};

// Merges the stage files in `folder` into the file `output`. In protobuf, its bytes equal those of
// MindSpore's merge_pipeline_strategys for the files in stage order. `output` appears whole or not
// at all. Errors: as ReadStrategy; kAlreadyExists if `output` exists without `force`.
Result<StrategyReport> MergeStrategies(const std::string& folder, const std::string& output,
                                       bool force);

// Writes the strategy `input` to the file `output`: in JSON if its name ends in .json, else in
// protobuf, by MindSpore's rule for names. All details that both encodings can hold stay unchanged
// (src/mindspore/SPEC.md). If the encoding stays the same, so does every byte. With `renames` the
// file has the layouts alone, under their new names, as WriteStrategy writes them. `output` appears
// whole or not at all.
// Errors: as ReadStrategy, and
//   kInvalidArgument: renames give two parameters of a stage one name
//   kAlreadyExists: `output` exists without `force`
Result<StrategyReport> ConvertStrategyFile(const std::string& input, const std::string& output,
                                           const Renames& renames, bool force);

struct MakeStrategyOptions {
  std::string spec;       // a JSON file (docs/guide/strategies.md)
  std::string spec_text;  // the content of such a file, in place of `spec`
  std::string output;     // in JSON if the name ends in .json, else in protobuf
  // Full tensors that patterns match, a file or a folder; empty: the specification has names.
  std::string checkpoint;
  // In place of a specification: a source with the parameters of the new strategy. With `path`
  // alone it may also be a strategy.
  SourceSpec like;
  Cluster cluster;
  bool force = false;  // replace `output`
};

// Writes the strategy that a specification describes, or that a cluster needs for the parameters of
// a source. A pipeline's is merged as MergeStrategies does. `output` appears whole or not at all.
// Errors:
// - kNotFound
// - kInvalidArgument: the specification breaks its schema, or has patterns without a checkpoint
// - kMismatch: parameters cannot be cut so, or the names of a stage look like a pipeline's names
// - kAlreadyExists
// - those of opening a source
Result<StrategyReport> MakeStrategy(const MakeStrategyOptions& options);

// Returns the ranks that hold the same weights, by a group_info file, in its order. A training run
// writes the file if GROUP_INFO_FILE is set. Errors: kNotFound, kCorrupt, kIo.
Result<std::vector<int64_t>> ReadGroupInfo(const std::string& path);

// Returns the source ranks that target rank `rank` needs, ascending: one replica of each shard, and
// the rank of the parameters without a layout. A side without a strategy has full tensors in one
// rank. Errors: as ReadStrategy; kInvalidArgument if `rank` is no target rank, or if both sides
// lack a strategy.
Result<std::vector<int64_t>> SourceRanks(int64_t rank, const StrategyRef& source,
                                         const StrategyRef& target);

// Calls `visit` with each target rank, ascending, and the ranks that SourceRanks returns for it.
// The strategies are read once. Errors: as SourceRanks. `visit` may have been called for earlier
// stages before an error of a later stage.
Status ForEachSourceRanks(
    const StrategyRef& source, const StrategyRef& target,
    const std::function<void(int64_t rank, const std::vector<int64_t>& source_ranks)>& visit);

// Writes a strategy that explains the shards in `source`, a folder with rank_N/*.ckpt of all ranks.
// The file `output` is in JSON if its name ends in .json, else in protobuf. `reference` has the
// full tensors, a file or a folder. Shapes of shards and tensors give the cuts. Equal bytes tell
// which rank holds which part, and so does the reference if it holds the same values. The names in
// the files tell the stages of a pipeline. Reads every shard once; memory is bounded.
// Errors: from opening checkpoints, and
//   kMismatch: no layout fits, or several with different results; the message lists parameters
//   kAlreadyExists: `output` exists without `force`
//   kCancelled
Result<StrategyReport> InferStrategy(const std::string& source, const std::string& reference,
                                     const std::string& output, bool force,
                                     const RunOptions& run = {});

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_STRATEGY_H_
