// ConversionFolder: a source checkpoint and strategies in a temporary folder, and a place for what
// is converted from them.
#ifndef RESHARD_TESTS_SUPPORT_CONVERSION_FOLDER_H_
#define RESHARD_TESTS_SUPPORT_CONVERSION_FOLDER_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/convert.h"
#include "reshard/strategy.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_tensor.h"

namespace reshard {

class ConversionFolder {
 public:
  ConversionFolder();
  // Both strategies in protobuf. No layouts: no strategy on that side.
  ConversionFolder(const std::vector<NamedLayout>& source, const std::vector<NamedLayout>& target);

  // The folder "source" into the folder "target", with the strategies set so far.
  ConvertOptions& options() { return options_; }
  const ConvertOptions& options() const { return options_; }
  const TemporaryFolder& folder() const { return folder_; }

  // Writes the file of a source rank.
  void WriteRank(int64_t rank, std::string_view bytes) const;
  void WriteRank(int64_t rank, const std::vector<TestTensor>& tensors) const;
  // Writes the files of a stage's `devices` ranks, from `first_rank` on: of each full tensor that
  // `layouts` name a shard, of the others all.
  void WriteStage(const std::vector<TestTensor>& tensors, const std::vector<NamedLayout>& layouts,
                  int64_t devices, int64_t first_rank = 0) const;
  void RemoveRank(int64_t rank) const;

  // Returns the tensors of a target rank, in file order. Throws where there is no valid file.
  std::vector<TestTensor> Target(int64_t rank) const;

 private:
  const TemporaryFolder folder_;
  ConvertOptions options_;
};

// The path of a rank's file, relative to its checkpoint's folder.
std::string RankPath(int64_t rank);

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_CONVERSION_FOLDER_H_
