// Random models with the specifications of their strategies.
//
// Every choice is RapidCheck's; what ranks hold is worked out from docs/guide/strategies.md.
#ifndef RESHARD_TESTS_PROPERTY_ANY_SPEC_H_
#define RESHARD_TESTS_PROPERTY_ANY_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/naive_reshard.h"
#include "tests/support/test_tensor.h"

namespace reshard {

struct SpecParameter {
  TestTensor full;
  std::vector<int64_t> cuts;  // one a dimension
  int64_t optimizer_shards = 1;
  bool is_own = false;  // a copy that is not cut as its parameter is

  // Returns which part the local rank `rank` of its stage holds, and that part.
  NaiveParts Parts(int64_t rank) const;
  TestTensor Shard(int64_t rank) const;
};

struct SpecModel {
  int64_t devices = 1;  // of a stage
  bool is_pipeline = false;
  std::vector<std::vector<SpecParameter>> stages;  // no parameter in two
  std::vector<TestTensor> uncut;                   // that no entry matches

  int64_t ranks() const { return devices * static_cast<int64_t>(stages.size()); }
  // Whether it is an optimizer's copy.
  static bool IsCopy(const std::string& name);
  std::vector<TestTensor> FullTensors() const;
  // Returns what the file of `rank`, of all stages, holds.
  std::vector<TestTensor> TensorsOf(int64_t rank) const;
};

// Elements have 4 bytes at least, so that no two are likely to be alike; in some tensors all or
// many are.
SpecModel AnySpecModel();

// Returns the specification, in JSON; most copies are left to the entries of their parameters.
std::string SpecText(const SpecModel& model);

}  // namespace reshard

#endif  // RESHARD_TESTS_PROPERTY_ANY_SPEC_H_
