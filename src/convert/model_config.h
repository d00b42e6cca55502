// ModelConfig: facts from a model's config.json, as transformers writes it. Only its outermost
// level is read.
//
// A plain value.
#ifndef RESHARD_SRC_CONVERT_MODEL_CONFIG_H_
#define RESHARD_SRC_CONVERT_MODEL_CONFIG_H_

#include <optional>
#include <string>
#include <string_view>

#include "src/mindspore/cluster_layouts.h"

namespace reshard {

inline constexpr std::string_view kModelConfig = "config.json";

struct ModelConfig {
  ModelFacts facts;
  std::string dtype_key;  // "dtype", or "torch_dtype" as of older versions; empty: neither is there
  std::string dtype;      // as it stands there, such as "bfloat16"
};

// Returns the facts in the config.json of a folder; no value if there is none that can be read.
std::optional<ModelConfig> ReadModelConfig(const std::string& folder);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_MODEL_CONFIG_H_
