// The library as a store: a file's views, a sharded checkpoint's boxes, many readers at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/strategy.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_tensor.h"

namespace reshard::checkpoint_store_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(CheckpointTest, ViewsAreSpansOfTheFileOneForEachValue) {
  const TemporaryFolder folder;
  const std::string path = folder.Write(
      "n\net.ckpt",
      TensorValue("cut", "Int8", {5}, "abc") + TensorValue("cut", "Int8", {5}, "de") +
          TensorValue("scalar", "Int16", {}, "xy") +
          MapValue("map", {TensorMessage("int32", {1}, "keys"), TensorMessage("int32", {1}, "vals"),
                           TensorMessage("int32", {1}, "stat")}));
  auto opened = Checkpoint::Open(path);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const Checkpoint checkpoint = *std::move(opened);  // moving keeps everything in place
  ASSERT_EQ(checkpoint.parameters().size(), 3u);
  EXPECT_EQ(checkpoint.parameters()[0].name, "cut");
  EXPECT_EQ(checkpoint.Find("scalar")->shape, Shape());
  EXPECT_EQ(checkpoint.Find("none"), nullptr);

  const auto cut = checkpoint.View("cut");
  ASSERT_TRUE(cut.ok());
  ASSERT_EQ(cut->size(), 2u);
  EXPECT_EQ(Text((*cut)[0]), "abc");
  EXPECT_EQ(Text((*cut)[1]), "de");
  EXPECT_EQ((*cut)[0].data(), (*checkpoint.View("cut"))[0].data()) << "a view copies nothing";
  EXPECT_EQ(checkpoint.View("map")->size(), 3u);
  EXPECT_EQ(Text((*checkpoint.View("map"))[1]), "vals");
  for (const Status& none :
       {checkpoint.View("no\nne").status(), checkpoint.IsAligned("no\nne").status()}) {
    EXPECT_EQ(none.code(), StatusCode::kNotFound);
    EXPECT_THAT(none.message(), HasSubstr("n\\net.ckpt: has no parameter \"no\\nne\""));
  }
}

TEST(CheckpointTest, SaysWhetherAViewIsAligned) {
  const TemporaryFolder folder;
  // Contents begin at byte 144.
  std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                       R"("b":{"dtype":"I64","shape":[1],"data_offsets":[4,12]}})";
  header.resize(136, ' ');
  const std::string bytes = std::string("\x88\0\0\0\0\0\0\0", 8) + header + std::string(12, 'c');
  const auto tensors = Checkpoint::Open(folder.Write("t.safetensors", bytes));
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  EXPECT_TRUE(*tensors->IsAligned("a"));
  EXPECT_FALSE(*tensors->IsAligned("b"));
  EXPECT_EQ(reinterpret_cast<uintptr_t>((*tensors->View("b"))[0].data()) % 8, 4u);
  EXPECT_EQ(tensors->IsAligned("c").status().code(), StatusCode::kNotFound);

  const std::string first = TensorValue("one", "Int8", {5}, "abc");
  const auto values = Checkpoint::Open(folder.Write(
      "net.ckpt",
      first + TensorValue("one", "Int8", {5}, "de") +
          MapValue("map", {TensorMessage("int32", {1}, "keys"), TensorMessage("int32", {1}, "vals"),
                           TensorMessage("int32", {1}, "stat")})));
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_TRUE(*values->IsAligned("one"));
  EXPECT_FALSE(*values->IsAligned("map"));
}

TEST(CheckpointTest, OpenSaysWhatIsWrong) {
  const TemporaryFolder folder;
  EXPECT_EQ(Checkpoint::Open((folder.path() / "none").string()).status().code(),
            StatusCode::kNotFound);
  EXPECT_EQ(Checkpoint::Open(folder.Write("empty", "")).status().code(), StatusCode::kCorrupt);
}

// Four ranks that hold `weight` in quarters by rows, `bias` in halves with replicas, and a scalar
// of their own each.
class ShardedCheckpointTest : public testing::Test {
 protected:
  ShardedCheckpointTest() {
    for (int64_t rank = 0; rank < 4; ++rank) {
      folder_.Write(
          "src/rank_" + std::to_string(rank) + "/net-1_1.ckpt",
          EncodeCheckpoint({NaiveShard(weight_, quarters_, rank), NaiveShard(bias_, halves_, rank),
                            MakeTensor("step", DType::kInt32, {}, static_cast<uint64_t>(rank))}));
    }
    strategy_ = folder_.Write("strategy.ckpt",
                              ProtobufStrategy(0, {{"weight", quarters_}, {"bias", halves_}}));
  }

  Result<ShardedCheckpoint> Open() const {
    return ShardedCheckpoint::Open((folder_.path() / "src").string(), strategy_);
  }

  const ParameterLayout quarters_ = MakeLayout({4}, {{0, -1}});
  const ParameterLayout halves_ = MakeLayout({2, 2}, {{1}});
  const TestTensor weight_ = MakeTensor("weight", DType::kFloat32, {8, 6});
  const TestTensor bias_ = MakeTensor("bias", DType::kBFloat16, {4});
  TemporaryFolder folder_;
  std::string strategy_;
};

TEST_F(ShardedCheckpointTest, KnowsTheLogicalTensorsAndWhoHoldsThem) {
  const auto checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_THAT(checkpoint->warnings(), IsEmpty());
  ASSERT_EQ(checkpoint->tensors().size(), 3u);
  const ShardedCheckpoint::Tensor* weight = checkpoint->Find("weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->shape, Shape({8, 6}));
  EXPECT_EQ(weight->dtype, DType::kFloat32);
  EXPECT_TRUE(weight->in_strategy);
  EXPECT_FALSE(checkpoint->Find("step")->in_strategy);

  const auto shards = checkpoint->Shards("bias");
  ASSERT_TRUE(shards.ok()) << shards.status().message();
  ASSERT_EQ(shards->size(), 2u);
  EXPECT_EQ(ToString((*shards)[0].box), "[0:2]");
  EXPECT_THAT((*shards)[0].ranks, ElementsAre(0, 1));
  EXPECT_THAT((*shards)[1].ranks, ElementsAre(2, 3));
  EXPECT_THAT((*checkpoint->Shards("step"))[0].ranks, ElementsAre(0));

  ASSERT_EQ(checkpoint->files().size(), 4u);
  for (size_t rank = 0; rank < 4; ++rank) {
    const RankFiles::File& file = checkpoint->files()[rank];
    EXPECT_EQ(file.rank, static_cast<int64_t>(rank));
    EXPECT_EQ(file.path,
              (folder_.path() / "src/rank_").string() + std::to_string(rank) + "/net-1_1.ckpt");
  }
}

Strategy QuartersAndHalves() {
  return Strategy::Make(
             {{"weight", MakeLayout({4}, {{0, -1}})}, {"bias", MakeLayout({2, 2}, {{1}})}})
      .value();
}

TEST_F(ShardedCheckpointTest, TakesAStrategyOfMemory) {
  const std::string source = (folder_.path() / "src").string();
  const auto checkpoint = ShardedCheckpoint::Open(source, QuartersAndHalves());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ(checkpoint->Find("weight")->shape, Shape({8, 6}));
  std::vector<std::byte> bytes(weight_.content.size());
  ASSERT_TRUE(checkpoint->Read("weight", Box::Whole({8, 6}), bytes).ok());
  EXPECT_EQ(Text(bytes), weight_.content);

  const auto read = ReadStrategy(strategy_);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(ShardedCheckpoint::Open(source, *read).ok());

  const auto file = ShardedCheckpoint::Open(source + "/rank_0/net-1_1.ckpt", QuartersAndHalves());
  EXPECT_EQ(file.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(file.status().message(), Naming("(the strategy)"));
}

TEST_F(ShardedCheckpointTest, ReadsManyBoxesAtATime) {
  const auto checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  std::vector<std::byte> weight(weight_.content.size());
  std::vector<std::byte> row(6 * 4);
  std::vector<std::byte> bias(bias_.content.size());
  std::vector<ShardedCheckpoint::BoxRead> boxes = {{"weight", Box::Whole({8, 6}), weight},
                                                   {"weight", {{5, 0}, {1, 6}}, row},
                                                   {"weight", {{8, 0}, {0, 6}}, {}},
                                                   {"bias", Box::Whole({4}), bias}};
  std::vector<Progress> told;
  const Status read = checkpoint->Read(
      boxes, {.jobs = 2, .progress = [&](const Progress& progress) { told.push_back(progress); }});
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(Text(weight), weight_.content);
  EXPECT_EQ(Text(row), weight_.content.substr(5 * 24, 24));
  EXPECT_EQ(Text(bias), bias_.content);
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().done_bytes, told.back().total_bytes);
  EXPECT_EQ(told.back().total_bytes, weight.size() + row.size() + bias.size());

  // Nothing is read unless all is right.
  std::fill(weight.begin(), weight.end(), std::byte{7});
  const std::vector<std::byte> before = weight;
  boxes.push_back({"bias", Box::Whole({3}), bias});
  EXPECT_EQ(checkpoint->Read(boxes, {}).code(), StatusCode::kInvalidArgument);
  boxes.back() = {"none", Box::Whole({4}), bias};
  EXPECT_EQ(checkpoint->Read(boxes, {}).code(), StatusCode::kNotFound);
  EXPECT_EQ(weight, before);
  boxes.pop_back();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(checkpoint->Read(boxes, {.stop = stop.get_token()}).code(), StatusCode::kCancelled);
}

TEST_F(ShardedCheckpointTest, LocatesWhatItMaps) {
  const auto checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const auto parts = checkpoint->Locate("weight", {{1, 0}, {2, 6}});
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  ASSERT_EQ(parts->size(), 2u);
  std::string found;
  for (const ShardedCheckpoint::Part& part : *parts) {
    EXPECT_EQ(part.path, checkpoint->files()[static_cast<size_t>(part.rank)].path);
    const auto file = checkpoint->Map(part.rank);
    ASSERT_TRUE(file.ok()) << file.status().message();
    for (const ByteRange& range : part.content) {
      ASSERT_LE(range.end(), file->size);
      found += Text({file->data.get() + range.offset, range.length});
    }
  }
  EXPECT_EQ(found, weight_.content.substr(0, 4 * 24));
  EXPECT_EQ(checkpoint->Locate("weight", {{0, 0}, {9, 6}}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(checkpoint->Map(4).status().code(), StatusCode::kNotFound);
}

TEST_F(ShardedCheckpointTest, PrivateMapsAreWrittenToByOneAlone) {
  const auto checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const auto one = checkpoint->Map(0, /*is_private=*/true);
  const auto two = checkpoint->Map(0, /*is_private=*/true);
  ASSERT_TRUE(one.ok() && two.ok()) << one.status().message();
  const std::string before = Text({two->data.get(), two->size});
  std::fill_n(one->data.get(), one->size, std::byte{1});
  EXPECT_EQ(Text({two->data.get(), two->size}), before);
  EXPECT_EQ(Text({checkpoint->Map(0)->data.get(), one->size}), before);
}

TEST_F(ShardedCheckpointTest, MapsNoOtherFileThanTheOneThatWasOpened) {
  const auto checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  ASSERT_TRUE(checkpoint->Map(0).ok());
  const std::string path = checkpoint->files()[0].path;
  std::filesystem::copy_file(path, path + ".new");
  std::filesystem::rename(path + ".new", path);
  EXPECT_EQ(checkpoint->Map(0).status().code(), StatusCode::kChanged);
}

TEST(CheckpointOthersTest, TextsAndMapTensorsAreReadAsTheyAre) {
  const TemporaryFolder folder;
  const std::string path = folder.Write(
      "net.ckpt",
      TensorValue("w", "Int8", {2}, "ab") +
          TensorValue("note", "str", {0}, std::string("x\0\0\0", 4)) +
          MapValue("map", {TensorMessage("int32", {1}, "keys"), TensorMessage("int32", {1}, "vals"),
                           TensorMessage("int32", {1}, "stat")}));
  const auto checkpoint =
      ShardedCheckpoint::Open(SourceSpec{.path = path}, IoChoice::Source::kPread);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  ASSERT_EQ(checkpoint->others().size(), 2u);
  EXPECT_EQ(checkpoint->others()[0].name, "note");
  const auto note = checkpoint->ReadOther("note");
  ASSERT_TRUE(note.ok()) << note.status().message();
  ASSERT_EQ(note->size(), 1u);
  EXPECT_EQ((*note)[0].type, "str");
  EXPECT_EQ((*note)[0].shape, Shape({1}));
  const auto map = checkpoint->ReadOther("map");
  ASSERT_TRUE(map.ok()) << map.status().message();
  ASSERT_EQ(map->size(), 3u);
  EXPECT_EQ(Text((*map)[1].bytes), "vals");
  EXPECT_EQ((*map)[1].type, "int32");
  EXPECT_EQ(checkpoint->ReadOther("w").status().code(), StatusCode::kNotFound);
}

// What a rank of another layout holds is what it reads.
TEST_F(ShardedCheckpointTest, ReadsTheShardOfALayoutMadeInMemory) {
  const auto checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const ParameterLayout columns = MakeLayout({2}, {{-1, 0}});
  for (int64_t rank = 0; rank < 2; ++rank) {
    const Result<Box> box = ShardBox({"weight", columns}, {8, 6}, rank);
    ASSERT_TRUE(box.ok()) << box.status().message();
    std::vector<std::byte> bytes(8 * 3 * 4);
    ASSERT_TRUE(checkpoint->Read("weight", *box, bytes).ok());
    EXPECT_EQ(Text(bytes), NaiveShard(weight_, columns, rank).content);
  }
}

TEST_F(ShardedCheckpointTest, ReadsAnyBoxFromWhicheverFilesHoldIt) {
  std::filesystem::remove_all(folder_.path() / "src" / "rank_3");  // bias is in rank 2 too
  const auto checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_THAT(checkpoint->warnings(), ElementsAre(Says(WarningCode::kMissingRanks, Naming(": 3"))));

  std::vector<std::byte> bytes(24);
  Status status = checkpoint->Read("weight", {{1, 2}, {3, 2}}, bytes);
  ASSERT_TRUE(status.ok()) << status.message();
  std::string expected;
  for (size_t row = 1; row < 4; ++row) expected += weight_.content.substr((row * 6 + 2) * 4, 8);
  EXPECT_EQ(Text(bytes), expected);

  bytes.resize(8);
  ASSERT_TRUE(checkpoint->Read("bias", Box::Whole({4}), bytes).ok());
  EXPECT_EQ(Text(bytes), bias_.content);
  bytes.resize(4);
  ASSERT_TRUE(checkpoint->Read("step", Box(), bytes).ok());
  EXPECT_EQ(Text(bytes), MakeTensor("step", DType::kInt32, {}, 0).content);
  ASSERT_TRUE(checkpoint->Read("weight", {{0, 0}, {0, 6}}, {}).ok()) << "an empty box";

  bytes.resize(48);
  status = checkpoint->Read("weight", {{6, 0}, {2, 6}}, bytes);
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), HasSubstr("rank 3"));
}

TEST_F(ShardedCheckpointTest, RefusesBoxesAndDestinationsThatDoNotFit) {
  const auto checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok());
  std::vector<std::byte> bytes(4);
  EXPECT_EQ(checkpoint->Read("none", Box(), bytes).code(), StatusCode::kNotFound);
  for (const Box& box : {Box{{0}, {1}}, Box{{0, 0}, {9, 1}}, Box{{-1, 0}, {1, 1}},
                         Box{{8, 0}, {1, 1}}, Box{{0, 0}, {1, -1}}, Box{{0, 0}, {INT64_MAX, 1}}}) {
    EXPECT_EQ(checkpoint->Read("weight", box, bytes).code(), StatusCode::kInvalidArgument)
        << ToString(box);
  }
  const Status status = checkpoint->Read("weight", {{0, 0}, {1, 2}}, bytes);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), Naming("8 bytes", " 4"));
}

TEST_F(ShardedCheckpointTest, TellsWhenAFileChanged) {
  const auto checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok());
  const auto path = folder_.path() / "src" / "rank_1" / "net-1_1.ckpt";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  std::vector<std::byte> bytes(weight_.content.size());
  const Status status = checkpoint->Read("weight", Box::Whole({8, 6}), bytes);
  EXPECT_EQ(status.code(), StatusCode::kChanged);
  EXPECT_THAT(status.message(), HasSubstr("rank_1"));
}

TEST_F(ShardedCheckpointTest, ManyThreadsRead) {
  const auto checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  readers.reserve(4);
  for (int reader = 0; reader < 4; ++reader) {
    readers.emplace_back([&, reader] {
      std::vector<std::byte> row(24);
      for (int64_t i = 0; i < 40; ++i) {
        const int64_t at = (i + reader) % 8;
        const Status status = checkpoint->Read("weight", {{at, 0}, {1, 6}}, row);
        if (!status.ok() || Text(row) != weight_.content.substr(static_cast<size_t>(at) * 24, 24)) {
          ++wrong;
        }
        if (!checkpoint->Shards("bias").ok()) ++wrong;
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace reshard::checkpoint_store_test
