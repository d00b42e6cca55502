// A conversion in which nothing is wrong, for tests to spoil.
#ifndef RESHARD_TESTS_MALFORMED_GOOD_FOLDER_H_
#define RESHARD_TESTS_MALFORMED_GOOD_FOLDER_H_

#include <filesystem>
#include <string>

#include "tests/support/conversion_folder.h"
#include "tests/support/strategy_bytes.h"

namespace reshard {

inline const ParameterLayout kRowsOf2 = MakeLayout({2}, {{0, -1}});
inline const ParameterLayout kRowsOf4 = MakeLayout({4}, {{0, -1}});
inline const TestTensor kWeight = MakeTensor("w", DType::kFloat32, {8, 3});

// Two ranks into four.
class GoodFolder : public ConversionFolder {
 public:
  GoodFolder() : ConversionFolder({{"w", kRowsOf2}}, {{"w", kRowsOf4}}) {
    WriteStage({kWeight}, {{"w", kRowsOf2}}, 2);
  }

  std::filesystem::path path() const { return folder().path(); }
  void SourceStrategy(const std::string& bytes) { folder().Write("src.ckpt", bytes); }
  void TargetStrategy(const std::string& bytes) { folder().Write("dst.ckpt", bytes); }
  void SourceLayout(const ParameterLayout& layout) {
    SourceStrategy(ProtobufStrategy(0, {{"w", layout}}));
  }
  void TargetLayout(const ParameterLayout& layout) {
    TargetStrategy(ProtobufStrategy(0, {{"w", layout}}));
  }
};

}  // namespace reshard

#endif  // RESHARD_TESTS_MALFORMED_GOOD_FOLDER_H_
