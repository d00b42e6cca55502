// Training states that a checkpoint holds beside the weights: counters of steps and epochs,
// learning rates, loss scales, and accumulated gradients. OptimizerGroup names the states of
// optimizers.
//
// Pure; any thread.
#ifndef RESHARD_SRC_PLAN_TRAINING_COUNTER_H_
#define RESHARD_SRC_PLAN_TRAINING_COUNTER_H_

#include <algorithm>
#include <iterator>
#include <string_view>

#include "format/container/file_table.h"
#include "reshard/tensor.h"
#include "src/tensor/byte_box.h"

namespace reshard {

// Whether it is a gradient that a rank has added up since the last update of the weights. Each rank
// has its own.
inline bool IsAccumulatedGradient(std::string_view name) { return name.starts_with("accu_grads"); }

// Whether a word of `name` is one of `words`.
template <typename Words>
bool HasWord(std::string_view name, const Words& words) {
  while (!name.empty()) {
    const std::string_view word = name.substr(0, name.find_first_of("._/-"));
    if (std::find(std::begin(words), std::end(words), word) != std::end(words)) return true;
    name.remove_prefix(std::min(word.size() + 1, name.size()));
  }
  return false;
}

// Whether a word of the name is a counter's.
inline bool HasCounterName(std::string_view name) {
  constexpr std::string_view kCounters[] = {
      "step",      "steps",      "epoch",    "epochs", "iter",    "iters",   "lr",    "learning",
      "iteration", "iterations", "iterator", "power",  "updates", "samples", "tokens"};
  return HasWord(name, kCounters);
}

// Whether it is a counter that has the same value in all ranks of a checkpoint: a tensor with a
// single element and a counter's name or an integer type. A rank's own number or seed is not one.
inline bool IsTrainingCounter(const StoredArray& array) {
  constexpr std::string_view kOwn[] = {"rank",   "ranks",  "id",    "seed",  "rng",
                                       "random", "device", "stage", "shard", "offset"};
  if (array.kind != ArrayKind::kTensor || ElementCount(array.shape).value_or(0) != 1 ||
      IsAccumulatedGradient(array.name) || HasWord(array.name, kOwn)) {
    return false;
  }
  return IsInteger(array.dtype) || HasCounterName(array.name);
}

// Whether a tensor with this name might be a number of the training beside the weights, if it has a
// single element. Weights have the names of modules, with dots; these numbers have names of their
// own, or end in PyTorch's `.step`.
inline bool MayBeTrainingNumber(std::string_view name) {
  return name.find('.') == std::string_view::npos || name.ends_with(".step");
}

// Whether it is such a number: global_step, learning_rate, loss_scale, a seed. A float with another
// name, such as `logit_scale`, may be a weight and is none.
inline bool IsTrainingNumber(std::string_view name, DType dtype, const Shape& shape) {
  constexpr std::string_view kOfOptimizers[] = {"loss_scale", "momentum", "scale_sense",
                                                "scale_value"};
  if (!MayBeTrainingNumber(name) || ElementCount(shape).value_or(0) != 1) return false;
  return IsInteger(dtype) || HasCounterName(name) ||
         std::find(std::begin(kOfOptimizers), std::end(kOfOptimizers), name) !=
             std::end(kOfOptimizers);
}

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_TRAINING_COUNTER_H_
