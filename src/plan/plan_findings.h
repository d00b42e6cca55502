// PlanFindings: facts from planning that the user has to know, collected over the target ranks.
//
// A plain value, except for a reference to the findings of earlier ranks. Not thread-safe.
#ifndef RESHARD_SRC_PLAN_PLAN_FINDINGS_H_
#define RESHARD_SRC_PLAN_PLAN_FINDINGS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/container/container.h"
#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/io/source_files.h"
#include "src/source/placement.h"

namespace reshard {

struct PlanFindings {
  struct Parameter {
    std::string source_name;
    ArrayKind kind = ArrayKind::kTensor;
    DType dtype = DType::kFloat32;
    Shape full_shape;
    uint64_t bytes = 0;   // of the full tensor, as it is written
    FileId file = 0;      // the file whose shard gives dtype and shape
    bool copied = false;  // as it stands; ranks may copy different ones, and the last one counts
    DType target_dtype = DType::kFloat32;  // as which it is written

    friend bool operator==(const Parameter&, const Parameter&) = default;
  };
  std::map<std::string, Parameter> parameters;  // everything written, by its name in the target
  // The number of a list that several target ranks share. If it is set, `parameters` has all
  // entries of the list, so no rank has to note them again. 0: no list.
  uint64_t noted_list = 0;

  // Findings of earlier target ranks, or null; not owned. Findings and parameters that it has are
  // not added again. It must not change while findings are added here.
  const PlanFindings* earlier = nullptr;

  bool silent = false;  // findings are ignored, because a first pass has them all

  std::set<std::string> left_out;  // by the ParameterChoice; names as they are

  // Names between quotes, made safe to print.
  std::set<std::string> texts_left_out;     // that the target's container cannot hold
  std::set<std::string> not_in_first_rank;  // in no strategy, and not in the file of rank 0
  // That have the name of metadata which the target's container then has not.
  std::set<std::string> named_as_metadata;
  std::set<std::string> not_loadable;       // of dtypes that MindSpore loads from no .ckpt file
  std::set<std::string> read_as_scalar;     // by MindSpore: of shape [0] in a .ckpt file
  std::set<std::string> metadata_left_out;  // keys of the source files' metadata
  std::set<std::string> unmatched_copied;   // in one strategy only
  std::set<std::string> unmatched_dropped;
  // Tensors of several elements that one strategy, or both, might have been expected to cut.
  std::set<std::string> not_in_source_strategy;
  std::set<std::string> not_in_target_strategy;
  // In the strategies, but in no source file; sorted, each once. There may be very many: they are
  // the strategies' own, which have to live as long.
  std::vector<std::string_view> absent;
  // A JSON strategy states another full shape, such as: "w" [4, 3] (dst.json: [2, 3]).
  std::set<std::string> other_shapes;
  std::set<std::string> empty_files;  // paths of target files without a parameter

  // Returns the facts about a parameter, from here or earlier; null if there are none.
  const Parameter* Find(const std::string& target_name) const;
  // Whether all of a list is noted, here or earlier.
  bool HasNoted(uint64_t list) const {
    return noted_list == list || (earlier != nullptr && earlier->HasNoted(list));
  }
  // Returns the facts about a parameter. If there are none, notes the result of `make`, or returns
  // its error.
  template <typename Make>
  Result<const Parameter*> FindOrNote(const std::string& target_name, const Make& make) {
    const auto place = parameters.lower_bound(target_name);
    if (place != parameters.end() && place->first == target_name) return &place->second;
    const Parameter* const known = earlier == nullptr ? nullptr : earlier->Find(target_name);
    if (known != nullptr) return known;
    Result<Parameter> made = make();
    if (!made.ok()) return made.status();
    return &parameters.emplace_hint(place, target_name, *std::move(made))->second;
  }
  // Notes the copied parameter, in place of earlier facts about it.
  void NoteCopied(const std::string& target_name, Parameter parameter);

  // Notes an array in a file of `container` that MindSpore does not read as it is written.
  void NoteForMindSpore(const Container& container, std::string_view name, ArrayKind kind,
                        DType dtype, const Shape& shape);

  // Adds a tensor that is only read, in full and under its own name.
  void Add(const SourceTensor& tensor);

  // Adds names to `absent`.
  void AddAbsent(std::vector<std::string_view> names);

  // Adds the findings of `other` that are not among the earlier ones, not its parameters.
  void AddFindings(const PlanFindings& other);

  // Adds the findings of the next target rank. Returns false if they contradict earlier ones. Then
  // the rank has to be planned again with these findings, to describe the contradiction.
  bool Append(const PlanFindings& next);

  // Returns one sentence a finding: counts, and the first names.
  std::vector<Warning> Warnings() const;
  // As above, for findings that need no action.
  std::vector<std::string> Notes() const;
};

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_PLAN_FINDINGS_H_
