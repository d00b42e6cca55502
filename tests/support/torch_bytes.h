// Pickles and files as torch.save writes them, value by value.
#ifndef RESHARD_TESTS_SUPPORT_TORCH_BYTES_H_
#define RESHARD_TESTS_SUPPORT_TORCH_BYTES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/tensor.h"

namespace reshard {

// The opcodes of a value.
std::string PickledNone();
std::string PickledBool(bool value);
std::string PickledInteger(int64_t value);
std::string PickledText(std::string_view text);
std::string PickledGlobal(std::string_view module, std::string_view name);
std::string PickledTuple(const std::vector<std::string>& items);
std::string PickledIntegers(const std::vector<int64_t>& numbers);  // a tuple
std::string PickledList(const std::vector<std::string>& items);
std::string PickledDict(const std::vector<std::pair<std::string, std::string>>& entries);
// The result of a function, or an instance of a class, for these arguments.
std::string PickledCall(std::string_view module, std::string_view name,
                        const std::vector<std::string>& arguments);

// A tensor as torch.save writes it; strides and offset count elements.
struct PickledTensor {
  std::string type = "FloatStorage";
  std::string key = "0";
  int64_t elements = 0;  // of the storage; for "UntypedStorage", bytes
  int64_t offset = 0;
  std::vector<int64_t> shape = {};
  std::vector<int64_t> strides = {};
  std::string dtype = {};  // not empty: written by _rebuild_tensor_v3
  std::string flags = {};  // opcodes of a dict
};
std::string Pickled(const PickledTensor& tensor);
// One with its own row-major storage.
std::string PickledWhole(std::string_view key, const std::vector<int64_t>& shape);

// A pickle of one value.
std::string PickleOf(std::string_view value);

// The file that torch.save makes of this pickle, with the storages data/0, data/1 and so on.
std::string TorchFile(std::string_view pickle, const std::vector<std::string>& storages,
                      std::string_view byte_order = "little");

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_TORCH_BYTES_H_
