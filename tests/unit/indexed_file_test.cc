#include "src/source/indexed_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "format/mindspore_checkpoint/value_parser.h"
#include "tests/support/bytes_read.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/index_bytes.h"
#include "tests/support/temporary_folder.h"

namespace reshard::indexed_file_test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

TEST(IndexedFileTest, FindsParametersInFileOrderAndByName) {
  const std::string w = TensorValue("w", "Float32", {2, 3}, std::string(24, 'w'));
  const std::string b = TensorValue("b", "Float16", {3}, std::string(6, 'b'));
  const auto index = IndexBytes(w + b);
  ASSERT_TRUE(index.ok()) << index.status().message();
  EXPECT_EQ(index->file_size(), w.size() + b.size());
  EXPECT_FALSE(index->crc().has_value());
  ASSERT_EQ(index->arrays().size(), 2U);
  const StoredArray& first = index->arrays()[0];
  EXPECT_EQ(first.name, "w");
  EXPECT_EQ(first.kind, ArrayKind::kTensor);
  EXPECT_EQ(first.dtype, DType::kFloat32);
  EXPECT_THAT(first.shape, ElementsAre(2, 3));
  EXPECT_EQ(first.bytes, 24U);
  EXPECT_THAT(first.framed, ElementsAre(ByteRange{0, w.size()}));
  EXPECT_THAT(first.content, ElementsAre(ByteRange{w.size() - 24, 24}));
  EXPECT_THAT(first.map_tensor, IsEmpty());
  EXPECT_EQ(index->Find("w"), &index->arrays()[0]);
  EXPECT_EQ(index->Find("b"), &index->arrays()[1]);
  EXPECT_EQ(index->Find("a"), nullptr);
  EXPECT_EQ(index->Find("bb"), nullptr);
  EXPECT_EQ(index->Find("x"), nullptr);
  EXPECT_GT(index->memory(), 2 * sizeof(StoredArray));
}

TEST(IndexedFileTest, AdjacentValuesAreOneTensorHoweverItIsCut) {
  const std::vector<std::vector<uint64_t>> cuts = {
      {12}, {6, 6}, {1, 11}, {12, 0, 0}, {0, 12}, {5, 0, 0, 7}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2}};
  for (const auto& cut : cuts) {
    SCOPED_TRACE(testing::PrintToString(cut));
    std::string bytes = TensorValue("before", "Int8", {1}, "x");
    std::vector<ByteRange> framed;
    std::vector<ByteRange> content;
    for (const uint64_t length : cut) {
      const std::string value = TensorValue("w", "UInt16", {3, 2}, std::string(length, 'w'));
      framed.push_back({bytes.size(), value.size()});
      bytes += value;
      content.push_back({bytes.size() - length, length});
    }
    bytes += TensorValue("after", "Int8", {1}, "x");
    const auto index = IndexBytes(bytes);
    ASSERT_TRUE(index.ok()) << index.status().message();
    ASSERT_EQ(index->arrays().size(), 3U);
    EXPECT_EQ(index->arrays()[1].bytes, 12U);
    EXPECT_THAT(index->arrays()[1].framed, ElementsAreArray(framed));
    EXPECT_THAT(index->arrays()[1].content, ElementsAreArray(content));
  }
}

struct ShapeCase {
  const char* name;
  const char* type;
  std::vector<int64_t> dims;
  size_t content_bytes;
  Shape shape;
};

class CheckpointShapeTest : public testing::TestWithParam<ShapeCase> {};

TEST_P(CheckpointShapeTest, IsAsTheFileMeansIt) {
  const ShapeCase& row = GetParam();
  const auto index =
      IndexBytes(TensorValue("w", row.type, row.dims, std::string(row.content_bytes, 'x')));
  ASSERT_TRUE(index.ok()) << index.status().message();
  EXPECT_EQ(index->arrays()[0].shape, row.shape);
  EXPECT_EQ(index->arrays()[0].bytes, row.content_bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, CheckpointShapeTest,
    testing::Values(
        ShapeCase{"scalar", "Float32", {}, 4, {}},
        ShapeCase{"scalar_with_dims_0", "Float64", {0}, 8, {}},
        ShapeCase{"empty_tensor", "Float64", {0}, 0, {0}},
        ShapeCase{"empty_tensor_of_three_dims", "Int8", {3, 0, 2}, 0, {3, 0, 2}},
        ShapeCase{"largest_beside_a_zero", "Int8", {int64_t{1} << 62, 0}, 0, {int64_t{1} << 62, 0}},
        ShapeCase{"one_element", "Int64", {1}, 8, {1}},
        ShapeCase{"int4_counts_bytes", "Int4", {2, 3}, 6, {2, 3}},
        ShapeCase{"complex", "Complex128", {2}, 32, {2}},
        ShapeCase{"float8", "Float8E4M3FN", {5}, 5, {5}}, ShapeCase{"string", "str", {0}, 20, {0}},
        ShapeCase{"string_of_one_code_point", "str", {0}, 4, {0}},
        ShapeCase{"string_without_any", "str", {0}, 0, {0}}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(IndexedFileTest, StringsAreTextsNotTensors) {
  const auto index = IndexBytes(TensorValue("note", "str", {0}, std::string(4, '\0')));
  ASSERT_TRUE(index.ok()) << index.status().message();
  EXPECT_EQ(index->arrays()[0].kind, ArrayKind::kText);
  EXPECT_EQ(index->arrays()[0].dtype, DType::kString);
}

TEST(IndexedFileTest, MapTensorsKeepTheirPartsInOrder) {
  const std::string first = MapValue(
      "m", {TensorMessage("int32", {2}, "kkkkkkkk"), TensorMessage("float32", {2, 1}, "vvvvvvvv"),
            TensorMessage("int8", {2}, "ss")});
  const std::string second =
      MapValue("m", {TensorMessage("int32", {1}, "kkkk"), TensorMessage("float32", {1, 1}, "vvvv"),
                     TensorMessage("int8", {1}, "s")});
  const auto index = IndexBytes(first + second + TensorValue("w", "Int8", {1}, "x"));
  ASSERT_TRUE(index.ok()) << index.status().message();
  ASSERT_EQ(index->arrays().size(), 2U);
  const StoredArray& map = index->arrays()[0];
  EXPECT_EQ(map.kind, ArrayKind::kMapTensor);
  EXPECT_EQ(map.bytes, 27U);
  EXPECT_THAT(map.content, IsEmpty());
  EXPECT_THAT(map.framed,
              ElementsAre(ByteRange{0, first.size()}, ByteRange{first.size(), second.size()}));
  ASSERT_EQ(map.map_tensor.size(), 6U);
  EXPECT_EQ(map.map_tensor[1],
            (StoredArray::MapTensorPart{"float32", {2, 1}, {first.find('v'), 8}}));
  EXPECT_EQ(map.map_tensor[5],
            (StoredArray::MapTensorPart{"int8", {1}, {first.size() + second.find('s'), 1}}));
}

TEST(IndexedFileTest, TrailerIsNoValue) {
  const std::string value = TensorValue("w", "Int8", {1}, "x");
  const auto index = IndexBytes(value + CrcTrailer(0x37ce13aa));
  ASSERT_TRUE(index.ok()) << index.status().message();
  ASSERT_TRUE(index->crc().has_value());
  EXPECT_EQ(index->crc()->value, 0x37ce13aaU);
  EXPECT_EQ(index->arrays().size(), 1U);
  EXPECT_EQ(index->file_size(), value.size() + 17);
}

Result<std::optional<uint64_t>> Covered(std::string_view bytes) {
  const TemporaryFolder folder;
  SourceFiles files(1);
  return CoveredByCrc(files, files.Add(folder.Write("a", bytes)));
}

TEST(CoveredByCrcTest, IsWhatTheTrailerIsOf) {
  const std::string value = TensorValue("w", "Int8", {1}, "x");
  const auto with = Covered(value + CrcTrailer(0x37ce13aa));
  ASSERT_TRUE(with.ok()) << with.status().message();
  EXPECT_EQ(*with, value.size());
  for (const std::string_view without : {std::string_view(value), std::string_view()}) {
    const auto covered = Covered(without);
    ASSERT_TRUE(covered.ok()) << covered.status().message();
    EXPECT_EQ(*covered, std::nullopt);
  }
  EXPECT_EQ(Covered(value + CrcTrailer(uint64_t{1} << 32)).status().code(), StatusCode::kCorrupt);
}

// What looks like a trailer there is content.
TEST(CoveredByCrcTest, OtherContainersHaveNoTrailer) {
  const std::string safetensors = std::string("\x7f\0\0\0\0\0\0\0{", 9) + std::string(200, ' ');
  const std::string encrypted = "\xd8\x5e\x3a\x7f" + std::string(200, 'x');
  for (const std::string& file : {safetensors, encrypted}) {
    for (const uint64_t number : {uint64_t{0}, uint64_t{1} << 32}) {
      const auto covered = Covered(file + CrcTrailer(number));
      ASSERT_TRUE(covered.ok()) << covered.status().message();
      EXPECT_EQ(*covered, std::nullopt);
    }
  }
}

TEST(CoveredByCrcTest, OfSafetensorsAreTheContents) {
  const auto file = [](std::string_view metadata) {
    std::string header = R"({"__metadata__":{)" + std::string(metadata) +
                         R"(},"w":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})";
    std::string bytes(1, static_cast<char>(header.size()));
    return bytes + std::string(7, '\0') + header + "xyz";
  };
  for (const std::string_view with : {R"("crc_num":"7")", R"("crc\u005fnum":"7")"}) {
    const auto covered = Covered(file(with));
    ASSERT_TRUE(covered.ok()) << covered.status().message();
    EXPECT_EQ(*covered, 3U) << with;
  }
  for (const std::string_view without : {R"("a":"crc_num")", R"("a":"b")", R"("a\u005f":"b")"}) {
    EXPECT_EQ(*Covered(file(without)), std::nullopt) << without;
  }
  for (const std::string_view wrong : {"-1", "4294967296", "7 ", "", "x"}) {
    const auto refused = Covered(file(R"("crc_num":")" + std::string(wrong) + '"'));
    EXPECT_EQ(refused.status().code(), StatusCode::kCorrupt) << wrong;
  }
}

// So that it costs little of thousands of files, wherever they lie.
TEST(CoveredByCrcTest, ReadsTheSignatureAndTheLastBytesOnly) {
  const TemporaryFolder folder;
  SourceFiles files(1);
  const FileId file = files.Add(folder.Write(
      "a", TensorValue("w", "Int8", {2 * kSignatureBytes}, std::string(2 * kSignatureBytes, 'a'))));
  constexpr uint64_t kTimes = 1000;  // so that what BytesRead itself reads does not count
  const uint64_t before = BytesRead();
  for (uint64_t i = 0; i < kTimes; ++i) ASSERT_TRUE(CoveredByCrc(files, file).ok());
  EXPECT_EQ((BytesRead() - before) / kTimes, kSignatureBytes + 17U);
}

// As the files of ranks without parameters are written.
TEST(IndexedFileTest, AFileWithoutParametersIsOneOfASet) {
  const TemporaryFolder folder;
  SourceFiles files(1);
  const FileId empty = files.Add(folder.Write("empty.ckpt", ""));
  EXPECT_EQ(ReadFileTable(files, empty).status().code(), StatusCode::kCorrupt);
  const auto in_set = ReadTableInSet(files, empty);
  ASSERT_TRUE(in_set.ok()) << in_set.status().message();
  EXPECT_TRUE(in_set->arrays().empty());
  const auto trailer = IndexBytes(CrcTrailer(0));
  ASSERT_TRUE(trailer.ok()) << trailer.status().message();
  EXPECT_TRUE(trailer->arrays().empty());
  EXPECT_EQ(trailer->crc()->value, 0U);
  // What is no parameter is no such file.
  const FileId other = files.Add(folder.Write("other.ckpt", NumberField(2, 5)));
  EXPECT_EQ(ReadTableInSet(files, other).status().code(), StatusCode::kCorrupt);
}

TEST(IndexedFileTest, UnknownFieldsAreHoppedOver) {
  const std::string unknown = NumberField(2, 5) + BlockField(15, std::string(9000, 'u')) +
                              Key(7, 3) + NumberField(1, 1) + Key(7, 4) + Key(9, 5) + "abcd";
  const auto index = IndexBytes(unknown + TensorValue("w", "Int8", {1}, "x") + unknown +
                                TensorValue("v", "Int8", {1}, "x") + unknown);
  ASSERT_TRUE(index.ok()) << index.status().message();
  EXPECT_EQ(index->arrays().size(), 2U);
}

// Everything stands behind the content, and the tag is longer than a page.
TEST(IndexedFileTest, LongTagsAndLateHeadersAreRead) {
  const std::string tag(kMaxTagBytes, 't');
  const std::string content(20000, 'x');
  const std::string late = BlockField(
      1, BlockField(2, BlockField(3, content) + NumberField(1, 20000) + BlockField(2, "Int8")) +
             BlockField(1, tag));
  const auto index = IndexBytes(late + TensorValue("w", "Int8", {1}, "x"));
  ASSERT_TRUE(index.ok()) << index.status().message();
  EXPECT_EQ(index->arrays()[0].name, tag);
  EXPECT_EQ(index->arrays()[0].content[0].offset, late.find('x'));
  EXPECT_EQ(index->arrays()[1].name, "w");
}

// A sparse file whose contents lie beyond what 31 and 32 bits can count.
TEST(IndexedFileTest, FilesMayExceed2And4GiB) {
  const TemporaryFolder folder;
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  const std::vector<uint64_t> lengths = {kGiB * 5 / 2, 5 * kGiB, 1};
  std::vector<std::string> headers;
  uint64_t size = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    headers.push_back(TensorValueHeader("p" + std::to_string(i), "UInt8",
                                        {static_cast<int64_t>(lengths[i])}, lengths[i]));
    size += headers[i].size() + lengths[i];
  }
  std::string path;
  std::vector<ByteRange> content;
  uint64_t offset = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    path = folder.WriteSparse("big.ckpt", size, offset, headers[i]);
    content.push_back({offset + headers[i].size(), lengths[i]});
    offset = content[i].end();
  }
  SourceFiles files(1);
  const auto index = ReadFileTable(files, files.Add(path));
  ASSERT_TRUE(index.ok()) << index.status().message();
  ASSERT_EQ(index->arrays().size(), 3U);
  for (size_t i = 0; i < lengths.size(); ++i) {
    EXPECT_THAT(index->arrays()[i].content, ElementsAre(content[i]));
    EXPECT_THAT(index->arrays()[i].shape, ElementsAre(lengths[i]));
  }
}

}  // namespace
}  // namespace reshard::indexed_file_test
