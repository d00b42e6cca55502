// Tensors that cannot be read, such as transposed ones in a file of torch.save: the rest of their
// checkpoint can be looked at and read, and nothing that needs them succeeds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/convert.h"
#include "tests/support/dcp_bytes.h"
#include "tests/support/says.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/torch_bytes.h"

namespace reshard::unread_tensors_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::pair<std::string, std::string> Entry(std::string_view key, const std::string& value) {
  return {PickledText(key), value};
}

std::string Transposed(std::string_view key) {
  return Pickled({.key = std::string(key), .elements = 6, .shape = {3, 2}, .strides = {1, 3}});
}

// A file with the tensors "w" and "t", of which "t" is transposed.
std::string MixedFile() {
  return TorchFile(
      PickleOf(PickledDict({Entry("w", PickledWhole("0", {2})), Entry("t", Transposed("1"))})),
      {"01234567", "0123456789ABCDEFGHIJKLMN"});
}

class UnreadTensorsTest : public testing::Test {
 protected:
  // What each call says that needs the tensor "t" of the source.
  void ExpectNeeded(const std::string& source) {
    ContentOptions digest;
    digest.source.path = source;
    ExpectNamed(DigestCheckpoint(digest).status());
    digest.exclude = {"t"};
    const auto rest = DigestCheckpoint(digest);
    ASSERT_TRUE(rest.ok()) << rest.status().message();
    EXPECT_THAT(rest->parameters, SizeIs(1));
    DiffOptions diff;
    diff.source.path = source;
    diff.b.path = source;
    ExpectNamed(Diff(diff).status());
    diff.exclude = {"t"};
    EXPECT_TRUE(Diff(diff).ok());
    ContentOptions values;
    values.source.path = source;
    ExpectNamed(MeasureValues(values).status());
    ConvertOptions convert;
    convert.source.path = source;
    convert.target.folder = work_.path() / "target";
    convert.target.format = TargetFormat::kHuggingFace;
    ExpectNamed(Convert(convert).status());
    convert.selection.exclude = {"t"};
    const auto report = Convert(convert);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_THAT(report->warnings, Not(Contains(Says(WarningCode::kUnusedPatterns))));
  }

  // Opens the source, whose tensor "w" has the bytes "01234567".
  static void ExpectRestIsRead(const std::string& source) {
    const auto opened = ShardedCheckpoint::Open(SourceSpec{.path = source});
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    ASSERT_THAT(opened->unread(), SizeIs(1));
    EXPECT_EQ(opened->unread().front().name, "t");
    EXPECT_THAT(opened->warnings(), Contains(Says(WarningCode::kLeftOut, Naming("\"t\""))));
    ASSERT_THAT(opened->tensors(), SizeIs(1));
    std::string content(8, '.');
    const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(content.data()), content.size());
    const Status read = opened->Read("w", Box::Whole(opened->tensors().front().shape), bytes);
    EXPECT_TRUE(read.ok()) << read.message();
    EXPECT_EQ(content, "01234567");
    EXPECT_EQ(opened->Find("t"), nullptr);
    ExpectNamed(opened->Read("t", Box::Whole({3, 2}), bytes));
    ExpectNamed(opened->Locate("t", Box::Whole({3, 2})).status());
    ExpectNamed(opened->Shards("t").status());
    EXPECT_EQ(opened->Read("x", Box::Whole({2}), bytes).code(), StatusCode::kNotFound);
  }

  static void ExpectNamed(const Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.message();
    EXPECT_THAT(status.message(), Naming("\"t\""));
  }

  const TemporaryFolder work_{MemoryFolder()};
};

TEST_F(UnreadTensorsTest, OfAFile) {
  const std::string path = work_.Write("model.pt", MixedFile());
  const auto file = Checkpoint::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_THAT(file->unread(), SizeIs(1));
  EXPECT_EQ(file->unread().front().name, "t");
  EXPECT_THAT(file->unread().front().why, Naming("[3, 2]", "[1, 3]"));
  EXPECT_THAT(file->warnings(),
              ElementsAre(Says(WarningCode::kLeftOut, Naming("model.pt", "\"t\""))));
  EXPECT_THAT(file->parameters(), SizeIs(1));
  EXPECT_EQ(std::memcmp(file->View("w")->front().data(), "01234567", 8), 0);
  ExpectNamed(file->View("t").status());
  EXPECT_EQ(file->View("x").status().code(), StatusCode::kNotFound);
  ExpectRestIsRead(path);
  ExpectNeeded(path);
}

// As PyTorch Lightning names its files of torch.save.
TEST_F(UnreadTensorsTest, OfAFileOfAnotherName) {
  const std::string path = work_.Write("model.ckpt", MixedFile());
  ExpectRestIsRead(path);
  ExpectNeeded(path);
}

TEST_F(UnreadTensorsTest, OfAnIndexedFolder) {
  work_.Write("in/pytorch_model-00001-of-00001.bin", MixedFile());
  work_.Write("in/pytorch_model.bin.index.json",
              R"({"weight_map":{"w":"pytorch_model-00001-of-00001.bin",)"
              R"("t":"pytorch_model-00001-of-00001.bin"}})");
  const std::string path = work_.path() / "in";
  const auto listed = ListRankFiles({.path = path});
  ASSERT_TRUE(listed.ok()) << listed.status().message();
  EXPECT_THAT(listed->warnings, Contains(Says(WarningCode::kLeftOut, Naming("\"t\""))));
  const auto file = Checkpoint::Open(*listed, 0);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_THAT(file->unread(), SizeIs(1));
  EXPECT_THAT(file->warnings(), IsEmpty());  // the folder's are the list's
  ExpectNamed(file->View("t").status());
  ExpectRestIsRead(path);
  ExpectNeeded(path);
}

TEST_F(UnreadTensorsTest, OfOneRank) {
  const auto good = [](std::string_view key) {
    return Pickled({.key = std::string(key), .elements = 6, .shape = {3, 2}, .strides = {2, 1}});
  };
  const auto file = [](const std::string& tensor) {
    return TorchFile(
        PickleOf(PickledDict({Entry("w", PickledWhole("0", {2})), Entry("t", tensor)})),
        {"01234567", "0123456789ABCDEFGHIJKLMN"});
  };
  work_.Write("in/model_world_size_2_rank_0.pt", file(good("1")));
  work_.Write("in/model_world_size_2_rank_1.pt", file(Transposed("1")));
  ExpectRestIsRead(work_.path() / "in");
  ExpectNeeded(work_.path() / "in");
}

// Two tensors of a DCP checkpoint, whose items stand one behind the other.
DcpBytes DcpOf(const std::string& w, const std::string& t) {
  DcpBytes dcp;
  const auto length = [](const std::string& item) { return static_cast<int64_t>(item.size()); };
  dcp.tensors.push_back(
      {.name = "w", .size = {2}, .chunks = {{.offsets = {0}, .sizes = {2}, .length = length(w)}}});
  dcp.tensors.push_back(
      {.name = "t",
       .size = {3, 2},
       .chunks = {{.offsets = {0, 0}, .sizes = {3, 2}, .offset = length(w), .length = length(t)}}});
  return dcp;
}

TEST_F(UnreadTensorsTest, OfTheMetadataOfDcp) {
  const std::string w = DcpItemOf({2}, "01234567");
  const std::string t = DcpItemOf({3, 2}, "0123456789ABCDEFGHIJKLMN");
  DcpBytes dcp = DcpOf(w, t);
  dcp.tensors.back().layout = "torch.sparse_coo";
  work_.Write("in/.metadata", DcpMetadataOf(dcp));
  work_.Write("in/__0_0.distcp", w + t);
  ExpectRestIsRead(work_.path() / "in");
  ExpectNeeded(work_.path() / "in");
}

// Its metadata does not tell the strides, so only reading finds them.
TEST_F(UnreadTensorsTest, OfAnItemOfDcp) {
  const std::string w = DcpItemOf({2}, "01234567");
  const std::string t = TorchFile(PickleOf(Transposed("0")), {"0123456789ABCDEFGHIJKLMN"});
  work_.Write("in/.metadata", DcpMetadataOf(DcpOf(w, t)));
  work_.Write("in/__0_0.distcp", w + t);
  const std::string path = work_.path() / "in";
  const auto opened = ShardedCheckpoint::Open(SourceSpec{.path = path});
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_THAT(opened->tensors(), SizeIs(2));
  std::string content(24, '.');
  const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(content.data()), content.size());
  ExpectNamed(opened->Read("t", Box::Whole({3, 2}), bytes));
  ExpectNamed(opened->Locate("t", Box::Whole({3, 2})).status());
  const Status read = opened->Read("w", Box::Whole({2}), bytes.first(8));
  EXPECT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(content.substr(0, 8), "01234567");
  ExpectNeeded(path);
}

}  // namespace
}  // namespace reshard::unread_tensors_test
