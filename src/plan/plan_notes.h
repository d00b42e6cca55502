// PlanNotes: what planning found that the user has to know, gathered over the target ranks.
//
// A plain value; not thread-safe.
#ifndef RESHARD_SRC_PLAN_PLAN_NOTES_H_
#define RESHARD_SRC_PLAN_PLAN_NOTES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "reshard/box.h"
#include "reshard/dtype.h"
#include "reshard/parameter.h"
#include "src/source/source_files.h"

namespace reshard {

struct PlanNotes {
  struct Parameter {
    std::string source_name;
    ParameterKind kind = ParameterKind::kTensor;
    DType dtype = DType::kFloat32;
    Shape full_shape;
    uint64_t bytes = 0;
    FileId file = 0;  // whose shard tells dtype and shape
  };
  std::map<std::string, Parameter> parameters;  // everything written, by its name in the target

  std::set<std::string> left_out;  // by the ParameterChoice; names as they are

  // Names between quotes, made safe to print.
  std::set<std::string> unmatched_copied;  // in one strategy only
  std::set<std::string> unmatched_dropped;
  // Tensors of several elements that one strategy, or both, might have been expected to cut.
  std::set<std::string> not_in_source_strategy;
  std::set<std::string> not_in_target_strategy;
  std::set<std::string> absent;  // in the strategies, but in no source file
  // Where a JSON strategy states another full shape: "w" [4, 3] (dst.json: [2, 3]).
  std::set<std::string> other_shapes;
  std::set<std::string> empty_files;  // paths of target files without a parameter

  // Adds the findings of `other`, not its parameters.
  void AddFindings(const PlanNotes& other);

  // Returns one sentence a finding: counts, and the first 20 names.
  std::vector<std::string> Warnings() const;
};

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_PLAN_NOTES_H_
