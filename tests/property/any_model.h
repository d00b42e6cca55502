// Random models, cut over ranks in random ways on two sides of a conversion.
//
// Every choice is RapidCheck's; what the ranks hold is worked out by tests/support/naive_reshard.h.
#ifndef RESHARD_TESTS_PROPERTY_ANY_MODEL_H_
#define RESHARD_TESTS_PROPERTY_ANY_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reshard/strategy.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_tensor.h"

namespace reshard {

// How one side of a conversion holds a model.
struct ModelSide {
  bool has_strategy = true;  // false: rank 0 holds full tensors
  bool is_pipeline = false;
  int64_t devices = 1;                            // of a stage
  std::vector<std::vector<NamedLayout>> layouts;  // by stage; all that say of the parameters
  int64_t ranks() const { return devices * static_cast<int64_t>(layouts.size()); }
};

struct Model {
  std::vector<TestTensor> cut;     // full tensors that both sides have layouts for
  std::vector<std::string> uncut;  // names of scalars that no side has one for
  bool in_several_stages = false;  // some of `cut` are
  ModelSide source;
  ModelSide target;

  const TestTensor& Find(const std::string& name) const;
};

struct ModelOptions {
  bool share_between_stages = false;  // some parameters are in several stages of a side
  // A map of several axes for the one dimension of a tensor, which without the tensor looks like a
  // map of several dimensions.
  bool one_dimensional_nested_maps = true;
};

// At least one side has a strategy. Where no parameter is in several stages, the parameters of a
// later stage come before those of an earlier one in `cut`: the order that a conversion leaves.
Model AnyModel(const ModelOptions& options);

// The scalar `name` as rank `rank` has it.
TestTensor UncutTensor(const std::string& name, int64_t rank);

// What the file of `rank` holds, the uncut ones as rank `uncut_rank` has them. In a stage that is
// not the first to have a parameter, its values are others on the source side: those are not the
// model's.
std::vector<TestTensor> SourceTensors(const Model& model, int64_t rank, int64_t uncut_rank);
std::vector<TestTensor> TargetTensors(const Model& model, int64_t rank, int64_t uncut_rank);

// Returns the source rank from which `rank` of the target copies what no layout cuts.
int64_t UncutSourceRank(const Model& model, int64_t rank);

// As EncodeCheckpoint, each tensor in several Values, cut at random bytes.
std::string EncodeCut(const std::vector<TestTensor>& tensors);

// Writes the side's strategy in a random form. Returns its path: "" where there is none.
std::string WriteStrategy(const ModelSide& side, const TemporaryFolder& folder,
                          const std::string& name);

}  // namespace reshard

#endif  // RESHARD_TESTS_PROPERTY_ANY_MODEL_H_
