// Counters of training: steps, epochs, learning rates. All ranks of a checkpoint have the same
// value.
//
// Pure; any thread.
#ifndef RESHARD_SRC_MINDSPORE_TRAINING_COUNTER_H_
#define RESHARD_SRC_MINDSPORE_TRAINING_COUNTER_H_

#include <algorithm>
#include <string_view>

#include "format/container/file_table.h"
#include "reshard/tensor.h"
#include "src/mindspore/optimizer_copy.h"

namespace reshard {

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

// Whether it is a counter: a tensor with a single element and a counter's name or an integer type.
// A rank's own number or seed is not a counter.
inline bool IsTrainingCounter(const StoredArray& array) {
  constexpr std::string_view kOwn[] = {"rank",   "ranks",  "id",    "seed",  "rng",
                                       "random", "device", "stage", "shard", "offset"};
  constexpr std::string_view kCounters[] = {
      "step",      "steps",      "epoch",    "epochs", "iter",    "iters",   "lr",    "learning",
      "iteration", "iterations", "iterator", "power",  "updates", "samples", "tokens"};
  if (array.kind != ArrayKind::kTensor || ElementCount(array.shape).value_or(0) != 1 ||
      IsAccumulatedGradient(array.name) || HasWord(array.name, kOwn)) {
    return false;
  }
  switch (array.dtype) {
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
      return true;
    default:
      return HasWord(array.name, kCounters);
  }
}

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_TRAINING_COUNTER_H_
