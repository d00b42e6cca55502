// The tensors of a dict that torch.save wrote, by their paths (SPEC.md, "State dicts").
//
// Pure functions. Errors name no file.
#ifndef RESHARD_FORMAT_TORCH_ZIP_STATE_DICT_H_
#define RESHARD_FORMAT_TORCH_ZIP_STATE_DICT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "format/pickle/pickle_expansion.h"
#include "format/pickle/pickle_reader.h"
#include "reshard/status.h"

namespace reshard {

// Gets a tensor (IsTorchTensor) and its path: keys and list indexes, joined with ".".
using TakeTorchTensor = std::function<Status(const std::string& path, const PickleValue& tensor)>;
// Gets another value that holds storages, by their keys, and its path.
using TakeTorchObject = std::function<Status(const std::string& path, const PickleValue& object,
                                             const std::vector<std::string_view>& storages)>;

struct StateDictTakers {
  TakeTorchTensor tensor;
  TakeTorchObject object;
};

// Finds the storages inside of values. Each object is looked into once: storages count for the
// first value that holds them.
class TorchStorageFinder {
 public:
  // `pickle` outlives it.
  explicit TorchStorageFinder(const Pickle& pickle) : pickle_(pickle) {}

  // Returns the keys of the storages that are new. They refer to the pickle.
  std::vector<std::string_view> Find(const PickleValue& value);

 private:
  // Whether an object was not looked into before.
  bool IsNew(const PickleValue& object);

  const Pickle& pickle_;
  std::vector<bool> seen_;  // by the place of an object
};

// Calls a taker for each tensor in the dict, or list, at the top, in the order of the pickle, and
// for other values that hold storages of their own. Returns the number of other values: numbers,
// texts, objects of other classes, whose insides are not read.
// Errors:
//   kUnsupported: not a dict or list
//   kCorrupt: more values than a pickle of its size can have without repeats
//   kResourceExhausted: longer paths than that
//   as the takers
Result<uint64_t> ForEachTorchTensor(const Pickle& pickle, uint64_t pickle_bytes,
                                    PickleExpansion& expansion, const StateDictTakers& take);

}  // namespace reshard

#endif  // RESHARD_FORMAT_TORCH_ZIP_STATE_DICT_H_
