// What ranks hold, told apart by digests, and the parts of a reference that are the same.
#include "src/verify/shard_evidence.h"

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/io/source_files.h"
#include "src/source/listed_placement.h"
#include "src/source/source.h"
#include "src/source/table_cache.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/temporary_folder.h"

namespace reshard::shard_evidence_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Ranks with a shard [2, 2] of "w" each, and a reference that holds "w" [2, 4] whole.
class ShardEvidenceTest : public testing::Test {
 protected:
  static std::string W(std::string_view content, std::string_view type = "Int8") {
    return TensorValue("w", type, {2, 2}, content);
  }

  Status Collect(const std::vector<std::string>& ranks, RankRange stage,
                 const SharedWork& work = {}) {
    std::vector<FileId> ids;
    for (size_t i = 0; i < ranks.size(); ++i) {
      ids.push_back(files_.Add(folder_.Write(std::to_string(i) + ".ckpt", ranks[i])));
    }
    const ListedPlacement alone(ids);
    const Source source(files_, tables_, alone);

    SourceFiles full_files{1};
    const FileId full =
        full_files.Add(folder_.Write("full.ckpt", TensorValue("w", "Int8", {2, 4}, "abcdefgh")));
    TableCache full_tables(full_files, size_t{1} << 20);
    const ListedPlacement whole(std::span(&full, 1));
    const Source reference(full_files, full_tables, whole);
    constexpr std::array<int64_t, 1> kStages = {0};
    auto tensor = reference.FindWhole("w", kStages, 0);
    EXPECT_TRUE(tensor.ok()) << tensor.status().message();
    parameters_ = {{"w", {2, 4}, {2, 2}, has_reference_ ? &*tensor : nullptr, {{1, 2}, {}, {}}}};
    Status status = CollectEvidence(source, stage, reference, parameters_, work);
    parameters_.front().reference = nullptr;
    return status;
  }
  const ShardEvidence& evidence() const { return parameters_.front().evidence; }

  const TemporaryFolder folder_;
  SourceFiles files_{2};
  TableCache tables_{files_, size_t{1} << 20};
  std::vector<StageParameter> parameters_;
  bool has_reference_ = true;
};

TEST_F(ShardEvidenceTest, EqualBytesHaveEqualNumbers) {
  ASSERT_TRUE(Collect({W("abef"), W("cdgh"), W("abef"), W("cdgX")}, {0, 4}).ok());
  ASSERT_EQ(evidence().ranks.size(), 4U);
  EXPECT_EQ(evidence().ranks[0], evidence().ranks[2]);
  EXPECT_NE(evidence().ranks[1], evidence().ranks[3]);
  EXPECT_THAT(evidence().parts, ElementsAre(evidence().ranks[0], evidence().ranks[1]));
}

TEST_F(ShardEvidenceTest, TheReferenceMayHoldOtherValues) {
  ASSERT_TRUE(Collect({W("1122"), W("3344")}, {0, 2}).ok());
  for (const ContentClass part : evidence().parts) {
    EXPECT_THAT(evidence().ranks, testing::Not(testing::Contains(part)));
  }
}

TEST_F(ShardEvidenceTest, WithoutAReferenceThereAreNoParts) {
  has_reference_ = false;
  ASSERT_TRUE(Collect({W("abef"), W("cdgh")}, {0, 2}).ok());
  EXPECT_THAT(evidence().parts, IsEmpty());
}

TEST_F(ShardEvidenceTest, OnlyRanksOfTheStageAreRead) {
  const std::string other = TensorValue("v", "Int8", {1}, "v");
  std::atomic<uint64_t> bytes = 0;
  SharedWork work;
  work.workers = 3;
  work.progress = [&](uint64_t more) { bytes += more; };
  ASSERT_TRUE(Collect({other, other, W("abef"), W("cdgh")}, {2, 4}, work).ok());
  EXPECT_THAT(evidence().parts, ElementsAre(evidence().ranks[0], evidence().ranks[1]));
  EXPECT_EQ(bytes, 2 * 4 + 8U);  // each shard once, and the reference
}

TEST_F(ShardEvidenceTest, RanksThatDoNotFitAreRefused) {
  const std::string rows[] = {
      TensorValue("v", "Int8", {2, 2}, "cdgh"),                 // another name
      TensorValue("w", "Int8", {4, 1}, "cdgh"),                 // shape
      TensorValue("w", "UInt8", {2, 2}, "cdgh"),                // dtype
      TensorValue("w", "str", {0}, std::string("h\0\0\0", 4)),  // a text
  };
  for (const std::string& other : rows) {
    EXPECT_EQ(Collect({W("abef"), other}, {0, 2}).code(), StatusCode::kMismatch);
  }
  // All ranks agree, but not with the reference.
  EXPECT_EQ(Collect({W("abef", "UInt8"), W("cdgh", "UInt8")}, {0, 2}).code(),
            StatusCode::kMismatch);
}

TEST_F(ShardEvidenceTest, ARequestToStopEndsIt) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(
      Collect({W("abef"), W("cdgh")}, {0, 2}, {.workers = 1, .stop = stop.get_token()}).code(),
      StatusCode::kCancelled);
}

}  // namespace
}  // namespace reshard::shard_evidence_test
