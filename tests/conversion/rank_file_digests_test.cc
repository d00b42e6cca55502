#include "src/verify/rank_file_digests.h"

#include <gmock/gmock.h>

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "src/convert/opened_source.h"
#include "src/digest/logical_digest.h"
#include "src/tensor/block_copy.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/torch_bytes.h"

namespace reshard::rank_file_digests_test {
namespace {

using testing::UnorderedElementsAre;

class RankFileDigestsTest : public testing::Test {
 protected:
  // Two ranks, each with a tensor in several Values, one without bytes, and small ones.
  RankFileDigestsTest() {
    for (const int64_t rank : {0, 1}) {
      const std::string content =
          MakeTensor("t", DType::kInt8, {500}, static_cast<uint64_t>(rank)).content;
      std::string bytes = TensorValue("t", "Int8", {500}, content.substr(0, 70));
      bytes += TensorValue("t", "Int8", {500}, content.substr(70));
      folder_.WriteRank(rank, bytes + EncodeCheckpoint({MakeTensor("empty", DType::kInt8, {0}),
                                                        MakeTensor("left_out", DType::kInt8, {30}),
                                                        MakeTensor("last", DType::kInt8, {3})}));
    }
    Open();
  }

  void Open() {
    auto source = OpenSource(folder_.options().source);
    EXPECT_TRUE(source.ok()) << source.status().message();
    source_ = *std::move(source);
  }

  // The digests by rank and name, each once.
  std::map<std::string, std::string> Digests(uint64_t piece_bytes, size_t workers) {
    std::mutex mutex;
    std::map<std::string, std::string> digests;
    const auto number = [](const RankFileOfStage& rank, const StoredArray& parameter) {
      return static_cast<size_t>(rank.local) * 100 + parameter.name.size();
    };
    const auto places = [&](const RankFileOfStage& rank, const StoredArray& parameter,
                            std::vector<BlockCopy>& copies) -> Result<std::optional<size_t>> {
      if (parameter.name == "left_out") return std::optional<size_t>();
      copies = LayOut(rank.file, parameter.content);
      return std::optional(number(rank, parameter));
    };
    const auto take = [&](const RankFileOfStage& rank, const StoredArray& parameter, size_t known,
                          const Digest128& digest) {
      const std::scoped_lock lock(mutex);
      EXPECT_EQ(known, number(rank, parameter));
      const std::string key = std::to_string(rank.local) + std::string(parameter.name);
      EXPECT_TRUE(digests.emplace(key, ToHex(digest)).second) << key;
      return Status();
    };
    uint64_t done = 0;
    const SharedWork work = {.workers = workers, .stop = {}, .progress = [&](uint64_t bytes) {
                               const std::scoped_lock lock(mutex);
                               done += bytes;
                             }};
    const std::vector<int64_t> stages = {0, 0};
    const auto ranks = FilesOfStages(source_->tensors(), stages);
    EXPECT_EQ(ranks.size(), 2U);
    const Status status =
        DigestRankFiles(source_->tensors(), ranks, {places, take}, work, piece_bytes);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(done, source_->chosen()[0].identity.size() + source_->chosen()[1].identity.size());
    return digests;
  }

  ConversionFolder folder_{{{"t", MakeLayout({2}, {{0}})}}, {}};
  std::unique_ptr<OpenedSource> source_;
};

TEST_F(RankFileDigestsTest, PiecesOfAnySizeGiveTheSame) {
  const auto whole = Digests(uint64_t{1} << 20, 1);
  std::vector<std::string> names;
  for (const auto& [name, digest] : whole) names.push_back(name);
  EXPECT_THAT(names, UnorderedElementsAre("0t", "0empty", "0last", "1t", "1empty", "1last"));
  EXPECT_NE(whole.at("0t"), whole.at("1t"));
  for (const uint64_t piece : {1U, 2U, 7U, 64U, 100U, 333U}) {
    for (const size_t workers : {1U, 3U}) EXPECT_EQ(Digests(piece, workers), whole) << piece;
  }
}

// More than are read together, in three windows, some of them with a part in each of two.
TEST_F(RankFileDigestsTest, SmallParametersThatLieTogether) {
  std::map<std::string, std::string> expected;
  for (const int64_t rank : {0, 1}) {
    std::vector<TestTensor> tensors = {MakeTensor("t", DType::kInt8, {500})};
    for (int i = 0; i < 600; ++i) {
      tensors.push_back(MakeTensor(std::to_string(i), DType::kInt8, {20000 + i},
                                   static_cast<uint64_t>(rank * 1000 + i)));
    }
    for (const TestTensor& tensor : tensors) {
      LogicalHasher hasher;
      Digest128 sum;
      const auto bytes = std::as_bytes(std::span(tensor.content));
      hasher.Add(sum, bytes.data(), bytes.size(), 0);
      expected.emplace(std::to_string(rank) + tensor.name, ToHex(sum));
    }
    folder_.WriteRank(rank, tensors);
  }
  Open();
  EXPECT_EQ(Digests(uint64_t{256} << 20, 2), expected);
  EXPECT_EQ(Digests((uint64_t{5} << 20) + 1, 2), expected);
}

// Tied weights lie in the same bytes, in each piece of them.
TEST_F(RankFileDigestsTest, ParametersMayShareBytes) {
  const std::string pickle =
      PickleOf(PickledDict({{PickledText("t"), PickledWhole("0", {4})},
                            {PickledText("tied"), PickledWhole("0", {4})},
                            {PickledText("other"), PickledWhole("1", {2})}}));
  for (const int64_t rank : {0, 1}) {
    folder_.WriteRank(rank, TorchFile(pickle, {"0123456789ABCDEF", "abcdefgh"}));
  }
  Open();
  const auto whole = Digests(uint64_t{1} << 20, 1);
  EXPECT_EQ(whole.size(), 6U);
  EXPECT_EQ(whole.at("0t"), whole.at("0tied"));
  EXPECT_NE(whole.at("0t"), whole.at("0other"));
  for (const uint64_t piece : {1U, 7U, 64U}) {
    for (const size_t workers : {1U, 3U}) EXPECT_EQ(Digests(piece, workers), whole) << piece;
  }
}

TEST_F(RankFileDigestsTest, EachByteIsReadOnce) {
  for (const int64_t rank : {0, 1}) {
    folder_.WriteRank(rank, {MakeTensor("t", DType::kInt8, {3 << 20}),
                             MakeTensor("last", DType::kInt8, {3 << 19})});
  }
  Open();
  EXPECT_EQ(Digests(uint64_t{1} << 20, 2).size(), 4U);
  uint64_t bytes = 0;
  for (const ChosenFile& file : source_->chosen()) {
    bytes += file.identity.size() + (64 << 10);  // granules are filled as a whole
  }
  EXPECT_LE(source_->files().FilledBytes(), bytes);
}

}  // namespace
}  // namespace reshard::rank_file_digests_test
