// TestTensor: a tensor with its content, whole or one rank's shard, and checkpoints made of such.
#ifndef RESHARD_TESTS_SUPPORT_TEST_TENSOR_H_
#define RESHARD_TESTS_SUPPORT_TEST_TENSOR_H_

#include <ostream>
#include <string>
#include <vector>

#include "reshard/tensor.h"

namespace reshard {

struct TestTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::string content;  // row-major

  friend bool operator==(const TestTensor&, const TestTensor&) = default;
};

std::ostream& operator<<(std::ostream& out, const TestTensor& tensor);

// Returns a tensor whose bytes follow from its name, `salt` and their place, so that no two
// elements of a test are likely to be alike.
TestTensor MakeTensor(std::string name, DType dtype, Shape shape, uint64_t salt = 0);

// Returns the bytes of a checkpoint that holds these tensors, as MindSpore writes it.
std::string EncodeCheckpoint(const std::vector<TestTensor>& tensors);

// Returns the tensors of a checkpoint file, in file order. Throws where there is no valid one.
std::vector<TestTensor> ReadTensors(const std::string& path);

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_TEST_TENSOR_H_
