// Checkpoints that MindSpore saved: every parameter as it was saved, every header encoded again.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "format/mindspore_checkpoint/checkpoint.pb.h"
#include "format/mindspore_checkpoint/checkpoint_encoder.h"
#include "src/source/indexed_file.h"
#include "src/verify/crc_check.h"
#include "tests/support/temporary_folder.h"

namespace reshard::checkpoint_golden_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const fs::path kData = fs::path(RESHARD_TESTS_DIR) / "golden" / "data";

Result<IndexedFile> IndexFile(const fs::path& path) {
  SourceFiles files(1);
  return ReadFileTable(files, files.Add(path));
}

// The little-endian bytes of `count` equal items.
template <typename T>
std::string Items(T item, size_t count) {
  std::string bytes(sizeof(item), '\0');
  std::memcpy(bytes.data(), &item, sizeof(item));
  std::string all;
  for (; count > 0; --count) all += bytes;
  return all;
}

std::string Utf32(std::u32string_view text) {
  std::string bytes;
  for (const char32_t c : text) bytes += Items(static_cast<uint32_t>(c), 1);
  return bytes;
}

// dtypes.ckpt: ones of shape (2, 3) in each dtype, then scalars and a string of append_dict.
TEST(CheckpointGoldenTest, EveryDtypeIsReadAsSaved) {
  struct Saved {
    const char* name;
    DType dtype;
    Shape shape;
    std::string content;
  };
  const Saved saved[] = {
      {"int8", DType::kInt8, {2, 3}, Items<int8_t>(1, 6)},
      {"uint8", DType::kUInt8, {2, 3}, Items<uint8_t>(1, 6)},
      {"int16", DType::kInt16, {2, 3}, Items<int16_t>(1, 6)},
      {"uint16", DType::kUInt16, {2, 3}, Items<uint16_t>(1, 6)},
      {"int32", DType::kInt32, {2, 3}, Items<int32_t>(1, 6)},
      {"uint32", DType::kUInt32, {2, 3}, Items<uint32_t>(1, 6)},
      {"int64", DType::kInt64, {2, 3}, Items<int64_t>(1, 6)},
      {"uint64", DType::kUInt64, {2, 3}, Items<uint64_t>(1, 6)},
      {"float16", DType::kFloat16, {2, 3}, Items<uint16_t>(0x3c00, 6)},
      {"float32", DType::kFloat32, {2, 3}, Items(1.0F, 6)},
      {"float64", DType::kFloat64, {2, 3}, Items(1.0, 6)},
      {"bool", DType::kBool, {2, 3}, Items(true, 6)},
      {"complex64", DType::kComplex64, {2, 3}, Items(uint64_t{0x3f800000}, 6)},
      {"bfloat16", DType::kBFloat16, {2, 3}, Items<uint16_t>(0x3f80, 6)},
      {"scalar", DType::kFloat32, {}, Items(3.5F, 1)},
      {"epoch", DType::kInt64, {}, Items<int64_t>(3, 1)},
      {"note", DType::kString, {0}, Utf32(U"h\u00e9llo")},
      {"lr", DType::kFloat32, {}, Items(0.1F, 1)},
      {"flag", DType::kBool, {}, Items(true, 1)},
  };
  const fs::path path = kData / "apis" / "files" / "dtypes.ckpt";
  const std::string bytes = ReadFile(path);
  const auto index = IndexFile(path);
  ASSERT_TRUE(index.ok()) << index.status().message();
  ASSERT_EQ(index->arrays().size(), std::size(saved));
  for (size_t i = 0; i < std::size(saved); ++i) {
    const StoredArray& found = index->arrays()[i];
    SCOPED_TRACE(saved[i].name);
    EXPECT_EQ(found.name, saved[i].name);
    EXPECT_EQ(found.dtype, saved[i].dtype);
    EXPECT_EQ(found.kind, found.dtype == DType::kString ? ArrayKind::kText : ArrayKind::kTensor);
    EXPECT_EQ(found.shape, saved[i].shape);
    ASSERT_EQ(found.content.size(), 1U);
    EXPECT_EQ(bytes.substr(found.content[0].offset, found.content[0].length), saved[i].content);
  }
}

TEST(CheckpointGoldenTest, TrailerHoldsTheCrcOfThePlainFile) {
  const auto plain = IndexFile(kData / "apis" / "files" / "plain.ckpt");
  const auto with_crc = IndexFile(kData / "apis" / "files" / "crc.ckpt");
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  ASSERT_TRUE(with_crc.ok()) << with_crc.status().message();
  EXPECT_EQ(plain->arrays(), with_crc->arrays());
  EXPECT_FALSE(plain->crc().has_value());
  ASSERT_TRUE(with_crc->crc().has_value());
  EXPECT_EQ(with_crc->crc()->value, 0x37ce13aaU);
  EXPECT_EQ(with_crc->file_size(), plain->file_size() + 17);
}

TEST(CheckpointGoldenTest, MindSporesOwnCrcIsRight) {
  SourceFiles files(1);
  const FileId file = files.Add((kData / "apis" / "files" / "crc.ckpt").string());
  const auto index = ReadFileTable(files, file);
  ASSERT_TRUE(index.ok()) << index.status().message();
  const Status status = CheckCrc(files, *index, {}, {});
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(CheckpointGoldenTest, EncryptedFilesAreNamedAsSuch) {
  for (const std::string mode : {"AES-GCM", "AES-CBC", "SM4-CBC"}) {
    const auto index = IndexFile(kData / "apis" / "files" / ("encrypted_" + mode + ".ckpt"));
    EXPECT_EQ(index.status().code(), StatusCode::kUnsupported);
    EXPECT_THAT(index.status().message(), HasSubstr("encrypted_" + mode + ".ckpt: "));
    EXPECT_THAT(index.status().message(), HasSubstr("the checkpoint is encrypted (" + mode + ")"));
  }
}

// All sources and results of the conversions.
TEST(CheckpointGoldenTest, IndexesEqualLibprotobufsAnswerAndHeadersEncodeAgain) {
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kData / "convert")) {
    if (!entry.path().parent_path().filename().string().starts_with("rank_")) continue;
    if (entry.path().extension() != ".ckpt") continue;
    SCOPED_TRACE(entry.path());
    ++files;
    const std::string bytes = ReadFile(entry.path());
    Checkpoint checkpoint;
    ASSERT_TRUE(checkpoint.ParseFromString(bytes));
    const auto index = IndexFile(entry.path());
    ASSERT_TRUE(index.ok()) << index.status().message();
    ASSERT_EQ(index->arrays().size(), static_cast<size_t>(checkpoint.value_size()));
    std::string encoded;
    for (int i = 0; i < checkpoint.value_size(); ++i) {
      const Checkpoint::Value& expected = checkpoint.value(i);
      const std::string& content = expected.tensor().tensor_content();
      const StoredArray& found = index->arrays()[static_cast<size_t>(i)];
      const Shape dims(expected.tensor().dims().begin(), expected.tensor().dims().end());
      EXPECT_EQ(found.name, expected.tag());
      EXPECT_EQ(DTypeName(found.dtype), expected.tensor().tensor_type());
      EXPECT_EQ(found.shape, dims);
      ASSERT_EQ(found.content.size(), 1U);
      EXPECT_EQ(bytes.substr(found.content[0].offset, found.content[0].length), content);
      encoded += EncodeValueHeader(found.name, found.dtype, dims, content.size()) + content;
    }
    EXPECT_EQ(encoded, bytes);
  }
  EXPECT_GE(files, 400U);
}

}  // namespace
}  // namespace reshard::checkpoint_golden_test
