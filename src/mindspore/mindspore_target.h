// MindSporeTarget: rank files under a strategy, as MindSpore's transform_checkpoints writes them.
//
// It decides which parameters a rank gets, in which order and as which boxes, and makes the
// findings about them. The number of a file is its rank. Opens files only to read their tables.
// Thread-safe; the source and the rule must outlive it.
#ifndef RESHARD_SRC_MINDSPORE_MINDSPORE_TARGET_H_
#define RESHARD_SRC_MINDSPORE_MINDSPORE_TARGET_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "format/container/container.h"
#include "format/container_table/container_table.h"
#include "reshard/byte_range.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/base/name_arena.h"
#include "src/mindspore/conversion_rule.h"
#include "src/mindspore/layout_grid.h"
#include "src/mindspore/rank_list.h"
#include "src/mindspore/single_holders.h"
#include "src/plan/parameter_choice.h"
#include "src/plan/plan_findings.h"
#include "src/plan/target.h"
#include "src/plan/target_file.h"
#include "src/source/source.h"

namespace reshard {

// The parameters that the ranks of a target stage cut anew, in little memory. Very many parameters
// have few shapes and layouts, and common data is held once. Not thread-safe while it is filled.
class CutParameters {
 public:
  // `grid` and `shard_shape` belong to the target; a text or a MapTensor has no grid and no shape.
  void Add(const SourceTensor& tensor, const SharedGrid& grid, const Shape& shard_shape);

  size_t size() const { return entries_.size(); }
  // Fills in the tensor of a parameter.
  void GetTensor(size_t place, SourceTensor& tensor) const;
  const ShardGrid& grid(size_t place) const { return *entries_[place].form->target_grid; }
  const Shape& shard_shape(size_t place) const { return entries_[place].form->target_shape; }
  // About the bytes of memory that they take, and the bytes that were used to add them.
  uint64_t MakingBytes() const;
  // Equal for parameters that differ only in names and places.
  const void* form(size_t place) const { return entries_[place].form; }

 private:
  // The common facts of parameters. Grids are compared by address, as caches hold each grid once.
  struct Form {
    ArrayKind kind;
    DType dtype;
    Shape full_shape;
    Shape shard_shape;
    int64_t stage;
    uint64_t table;
    SharedGrid grid;
    std::optional<int64_t> rank;
    SharedGrid target_grid;
    Shape target_shape;

    friend auto operator<=>(const Form&, const Form&) = default;
  };
  struct Entry {
    std::string_view name;
    const Form* form;
    FileId file;
    uint32_t ranges;     // so many of ranges_
    size_t first_range;  // and the first
  };

  std::vector<Entry> entries_;
  std::vector<ByteRange> ranges_;
  std::set<Form> forms_;  // node-based: a form stays at its address
  NameArena names_;
};

// The names of files without a pattern. {prefix} and {ext} stand for the given texts, {rank} for
// the number of the rank.
inline constexpr std::string_view kDefaultNames = "rank_{rank}/{prefix}{rank}.{ext}";

// Errors: kInvalidArgument for a pattern that gives two ranks one name, or a path outside the
// target folder.
Status CheckNamePattern(const std::string& pattern);

class MindSporeTarget final : public Target {
 public:
  MindSporeTarget(const Source& source, const ConversionRule& rule, std::string prefix,
                  Selection::Unmatched unmatched, ParameterChoice choice = {},
                  const Container& container = DefaultContainer(), std::string names = {})
      : Target(source, std::move(choice)),
        rule_(rule),
        prefix_(std::move(prefix)),
        unmatched_(unmatched),
        container_(container),
        names_(std::move(names)) {}

  // Whether one rank of those that hold the same shard writes it; said before any file is made.
  void set_removes_redundancy(bool removes) { removes_redundancy_ = removes; }

  int64_t files() const override { return rule_.target_ranks(); }
  std::string PathOf(int64_t file) const override;
  int64_t StageOf(int64_t file) const override { return rule_.TargetStage(file); }
  void IndexSources(std::span<const int64_t> ranks, const Indexers& indexers,
                    const std::stop_token& stop) const override;
  Result<TargetFile> MakeFile(int64_t rank, PlanFindings& findings) const override;

  // Returns the names of the parameters in the files that a target rank needs, in the order in
  // which MindSpore first sees them: files in descending order of rank (for a stage alone:
  // ascending). A few files tell it, unless they show that the files of a stage differ. Errors:
  // those of opening files.
  Result<std::vector<std::string>> NamesInOrder(int64_t rank) const;

  // The parameters of a target rank's file: first the parameters that are cut anew, then the
  // parameters that are taken as they are, each in the order of the file. Names are the source's.
  struct Selected {
    std::vector<std::string> converted;
    std::vector<std::string> copied;
    std::vector<int64_t> stages;  // the source stages that they come from, ascending
  };
  // Selects the parameters and adds to `findings`. Errors: as MakeFile.
  Result<Selected> Select(int64_t rank, PlanFindings& findings) const;

 private:
  // The common plan of a target stage's ranks whose source files hold the same.
  struct Recipe {
    uint64_t number = 0;      // unique among all recipes, past ones included
    Selected selection;       // without the converted parameters
    FileMetadata metadata;    // of the files
    CutParameters converted;  // in their order
    // Their numbers in the stage's SingleHolders, if that exists; kEachRank: each rank writes it.
    std::vector<size_t> numbers;
    PlanFindings findings;
  };
  struct Stage {
    RankLists needed;
    std::optional<SingleHolders> holders;  // if redundancy is removed
    std::shared_ptr<const Recipe> recipe;  // for ranks with these tables; once set, it stays
    std::vector<uint64_t> tables;
  };

  static constexpr size_t kEachRank = SIZE_MAX;

  // The box of the last parameter. A parameter with the same form has the same box.
  struct LastBox {
    const void* form = nullptr;
    Box box;
  };

  // Returns the target stage of a rank. Errors: as RankLists::Make.
  Result<Stage*> FindStage(int64_t rank) const;
  // Returns the unopened files that the first of `ranks` needs. If they are fewer than `enough`,
  // adds those of the next ranks, up to as many ranks.
  std::vector<RankLists::Source> NewSources(std::span<const int64_t> ranks, size_t enough) const;
  // Returns the common table (Source::TableIdOf) of all files that the rank needs of each source
  // stage. Returns no value if these differ or a file is missing.
  Result<std::vector<uint64_t>> CommonTables(const Stage& stage, int64_t rank) const;
  // Returns the places in Recipe::converted of the parameters that the rank writes; no value: all.
  Result<std::optional<std::vector<size_t>>> PlacesOf(const Recipe& recipe, int64_t rank) const;
  // Returns the rank's recipe: the common one of its stage, or its own.
  Result<std::shared_ptr<const Recipe>> RecipeOf(int64_t rank, PlanFindings& findings) const;
  Result<Recipe> MakeRecipe(int64_t rank, PlanFindings& findings) const;
  // Takes over the metadata that the source files of a rank agree on. Other metadata is added to
  // the findings of `recipe`.
  Status TakeMetadata(int64_t rank, Recipe& recipe) const;
  // Says how the target cuts a tensor: `grid` and `shard_shape`; `where` begins messages.
  Status Cut(const ParameterLayout* layout, const SourceTensor& tensor, std::string_view where,
             SharedGrid& grid, Shape& shard_shape) const;

  // Returns the names in the files of local ranks of source stage `stage`, in the order of
  // appearance. Returns no value if a file is missing, or if the files differ.
  Result<std::optional<std::vector<std::string>>> NamesInFiles(const std::vector<int64_t>& locals,
                                                               int64_t stage,
                                                               int64_t target_stage) const;
  // Fails if the target stage gets parameters from a source stage without files.
  Status CheckStages(int64_t target_stage) const;
  // Notes the parameters of the strategies that are in no file; the files have `names`. Fails if a
  // missing file has a wanted parameter.
  Status FindAbsent(const std::vector<std::string>& names, int64_t target_stage,
                    PlanFindings& findings) const;
  Status CheckMissingRanks(int64_t target_stage,
                           const std::unordered_set<std::string_view>& seen) const;
  // Without a source strategy, of the ranks that by a list hold the same full tensors.
  Status CheckMissingReplicas() const;
  // Returns the facts about a parameter, and adds them to `findings` if they are new. Fails if
  // another parameter is written under its name.
  Result<const PlanFindings::Parameter*> Note(const SourceTensor& tensor,
                                              PlanFindings& findings) const;
  // As Note; also fails if earlier target ranks have another dtype or full shape.
  Status NoteConverted(const SourceTensor& tensor, PlanFindings& findings) const;
  // Returns the dtype in which a parameter is written.
  Result<DType> TargetDTypeOf(const SourceTensor& tensor) const;
  // Fill in an array of a rank's file.
  Status MakeConverted(const Recipe& recipe, size_t place, int64_t rank, PlanFindings& findings,
                       LastBox& box, TargetArray& array) const;
  Status MakeCopied(const Recipe& recipe, const std::string& name, int64_t rank,
                    PlanFindings& findings, TargetArray& array) const;
  // Whether the choice takes the parameter. Errors: as Source::Describe and FindWhole.
  Result<bool> Takes(const std::string& name, ConversionRule::Fate fate,
                     const std::vector<int64_t>& stages, int64_t rank) const;
  // Whether an array is a text that files of the target's container cannot hold.
  Result<bool> IsTextLeftOut(const std::string& name, const std::vector<int64_t>& stages,
                             int64_t rank) const;
  // Notes a tensor that is copied although a strategy might have been expected to cut it.
  Status CheckCopied(const SourceTensor& tensor, PlanFindings& findings) const;

  const ConversionRule& rule_;
  const std::string prefix_;
  const Selection::Unmatched unmatched_;
  const Container& container_;
  const std::string
      names_;  // the pattern of file names, which CheckNamePattern has passed, or none
  bool removes_redundancy_ = false;
  mutable GridCache grids_;  // of the target
  mutable std::mutex mutex_;
  mutable std::map<int64_t, Stage> stages_;  // by number; guarded by mutex_, entries stay
};

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_MINDSPORE_TARGET_H_
