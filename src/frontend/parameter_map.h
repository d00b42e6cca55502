// ParameterMap: which rank holds which box of a parameter, by strategies alone. Plain values; the
// functions are pure.
#ifndef RESHARD_SRC_FRONTEND_PARAMETER_MAP_H_
#define RESHARD_SRC_FRONTEND_PARAMETER_MAP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"

namespace reshard {

struct MappedBox {
  std::vector<int64_t> parts = {};  // which part along each dimension
  std::vector<int64_t> ranks = {};  // global ones that hold it, ascending
};

// A stage that has the parameter.
struct MappedStage {
  int64_t stage = 0;
  int64_t first_rank = 0;
  int64_t ranks = 1;
  std::vector<int64_t> cuts = {};        // parts along each dimension
  std::optional<Shape> full_shape = {};  // if the strategy states it
  std::vector<MappedBox> boxes = {};     // in row-major order of the parts
};

struct MappedStrategy {
  std::string path = {};
  std::vector<MappedStage> stages = {};  // empty: the strategy has no layout of the parameter
};

struct ParameterMap {
  std::string name = {};
  MappedStrategy before = {};
  std::optional<MappedStrategy> after = {};
};

// Returns the boxes of the parameter `name`. Errors: kMismatch if its layout cuts no tensor.
Result<MappedStrategy> MapOf(const Strategy& strategy, const std::string& name);

}  // namespace reshard

#endif  // RESHARD_SRC_FRONTEND_PARAMETER_MAP_H_
