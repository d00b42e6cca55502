// The tensors of a dict that torch.save wrote, by their paths (SPEC.md, "State dicts").
//
// Pure functions. Errors name no file.
#ifndef RESHARD_FORMAT_TORCH_ZIP_STATE_DICT_H_
#define RESHARD_FORMAT_TORCH_ZIP_STATE_DICT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "format/pickle/pickle_reader.h"
#include "reshard/status.h"

namespace reshard {

// Gets a tensor (IsTorchTensor) and its path: keys and list indexes, joined with ".".
using TakeTorchTensor = std::function<Status(const std::string& path, const PickleValue& tensor)>;

// Calls `take` for each tensor in the dict, or list, `top`, in the order of the pickle, and returns
// the number of other values: numbers, texts, objects of other classes, whose insides are not
// looked at.
// Errors:
//   kUnsupported: not a dict or list
//   kCorrupt: more values than a pickle of its size can have without repeats
//   as `take`
Result<uint64_t> ForEachTorchTensor(const Pickle& pickle, uint64_t pickle_bytes,
                                    const TakeTorchTensor& take);

}  // namespace reshard

#endif  // RESHARD_FORMAT_TORCH_ZIP_STATE_DICT_H_
