// FuzzModel: a small conversion made of any bytes: full tensors, layouts on both sides, and the
// files of the source ranks, in most of which something may be wrong.
#ifndef RESHARD_TESTS_FUZZ_FUZZ_MODEL_H_
#define RESHARD_TESTS_FUZZ_FUZZ_MODEL_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/options.h"
#include "src/mindspore/strategy_tables.h"
#include "tests/support/test_tensor.h"

namespace reshard {

// How one side of a conversion holds the tensors.
struct FuzzSide {
  bool has_strategy = false;
  StrategyFile strategy;  // as a codec would yield it; no layouts without a strategy
};

struct FuzzModel {
  std::vector<TestTensor> tensors;  // full ones
  FuzzSide source;
  FuzzSide target;
  Selection::Unmatched unmatched = Selection::Unmatched::kCopy;
  // True while every file holds what the source strategy says, of `tensors`, whichever stage it is.
  bool is_sound = true;
  std::map<int64_t, std::string> files;  // checkpoint bytes by rank
};

// The same bytes make the same model. Ranks and content are few, whatever the bytes.
FuzzModel MakeFuzzModel(std::string_view bytes);

}  // namespace reshard

#endif  // RESHARD_TESTS_FUZZ_FUZZ_MODEL_H_
