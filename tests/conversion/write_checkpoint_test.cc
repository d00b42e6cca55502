// Files that are written from memory are what a checkpoint of these arrays is, whatever becomes of
// the bytes on the way.

#include <gmock/gmock.h>

#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "tests/support/folder_contents.h"
#include "tests/support/temporary_folder.h"

namespace reshard::write_checkpoint_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

class WriteCheckpointTest : public testing::Test {
 protected:
  WriteCheckpointTest() : large_(9 << 20, 'l') {
    for (size_t i = 0; i < large_.size(); i += 4093) large_[i] = static_cast<char>(i >> 12);
    arrays_ = {{"b", ArrayKind::kTensor, DType::kFloat32, {2, 1}, BytesOf("01234567")},
               {"large", ArrayKind::kTensor, DType::kUInt8, {9, 1 << 20}, BytesOf(large_)},
               {"a", ArrayKind::kTensor, DType::kBFloat16, {}, BytesOf("ab")},
               {"none", ArrayKind::kTensor, DType::kInt8, {0, 7}, {}}};
    options_.output = folder_.path() / "made.ckpt";
  }

  Status Write() const {
    const auto size = WriteCheckpoint(arrays_, options_);
    if (!size.ok()) return size.status();
    EXPECT_EQ(*size, ReadFile(options_.output).size());
    return {};
  }

  // Fails unless the file holds just the arrays.
  void ExpectArrays(const std::shared_ptr<const EncryptionKey>& key = nullptr) const {
    const auto file = Checkpoint::Open(options_.output, key);
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(file->parameters().size(), arrays_.size());
    const auto opened = ShardedCheckpoint::Open(options_.output, "", "", key);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    for (const ArrayToWrite& array : arrays_) {
      std::string bytes(array.bytes.size(), '\0');
      if (array.kind == ArrayKind::kText) {
        const auto parts = opened->ReadOther(array.name);
        ASSERT_TRUE(parts.ok()) << parts.status().message();
        ASSERT_EQ(parts->size(), 1U);
        EXPECT_EQ(parts->front().bytes,
                  std::vector<std::byte>(array.bytes.begin(), array.bytes.end()));
        continue;
      }
      const ShardedCheckpoint::Tensor* const tensor = opened->Find(array.name);
      ASSERT_NE(tensor, nullptr) << array.name;
      EXPECT_EQ(tensor->dtype, array.dtype) << array.name;
      EXPECT_EQ(tensor->shape, array.shape) << array.name;
      const Status read = opened->Read(array.name, Box::Whole(array.shape),
                                       std::as_writable_bytes(std::span(bytes)));
      ASSERT_TRUE(read.ok()) << read.message();
      EXPECT_TRUE(bytes == std::string_view(reinterpret_cast<const char*>(array.bytes.data()),
                                            array.bytes.size()))
          << array.name;
    }
  }

  const TemporaryFolder folder_;
  std::string large_;
  std::vector<ArrayToWrite> arrays_;
  WriteCheckpointOptions options_;
};

TEST_F(WriteCheckpointTest, HoldsTheArraysInTheirOrder) {
  arrays_.push_back(
      {"text", ArrayKind::kText, {}, {}, BytesOf(std::string_view("h\0\0\0i\0\0\0", 8))});
  ASSERT_TRUE(Write().ok());
  ExpectArrays();
  const auto file = Checkpoint::Open(options_.output);
  for (size_t i = 0; i < arrays_.size(); ++i) {
    EXPECT_EQ(file->parameters()[i].name, arrays_[i].name);
  }
}

TEST_F(WriteCheckpointTest, StatesACrcThatFits) {
  for (const TargetFormat format : {TargetFormat::kCkpt, TargetFormat::kSafetensors}) {
    options_.format = format;
    options_.states_crc = true;
    options_.force = true;
    ASSERT_TRUE(Write().ok());
    ExpectArrays();
    ContentOptions digest;
    digest.source.path = options_.output;
    EXPECT_TRUE(DigestCheckpoint(digest).ok());
    std::string content = ReadFile(options_.output);
    EXPECT_THAT(content, HasSubstr("crc_num"));
    const size_t place = content.find(large_.substr(1 << 20, 100));
    ASSERT_NE(place, std::string::npos);
    content[place] = static_cast<char>(content[place] ^ 1);
    folder_.Write("damaged", content);
    digest.source.path = folder_.path() / "damaged";
    EXPECT_EQ(DigestCheckpoint(digest).status().code(), StatusCode::kCorrupt);
  }
}

TEST_F(WriteCheckpointTest, StatesWhetherRedundancyIsRemoved) {
  options_.force = true;
  options_.removes_redundancy = true;
  ASSERT_TRUE(Write().ok());  // .ckpt
  EXPECT_THAT(ReadFile(options_.output), Not(HasSubstr("remove_redundancy")));
  options_.format = TargetFormat::kSafetensors;
  ASSERT_TRUE(Write().ok());
  ExpectArrays();
  EXPECT_THAT(ReadFile(options_.output),
              HasSubstr(R"("__metadata__":{"format":"ms","remove_redundancy":"True"})"));
  options_.removes_redundancy = false;
  ASSERT_TRUE(Write().ok());
  EXPECT_THAT(ReadFile(options_.output), HasSubstr(R"("remove_redundancy":"False"})"));
  // Readers take metadata of a tensor's name for its dtype.
  arrays_.push_back({"remove_redundancy", ArrayKind::kTensor, DType::kInt8, {1}, BytesOf("1")});
  ASSERT_TRUE(Write().ok());
  EXPECT_THAT(ReadFile(options_.output), HasSubstr(R"("__metadata__":{"format":"ms"})"));
}

TEST_F(WriteCheckpointTest, EncryptsAndLeavesNothingPlain) {
  const auto key = EncryptionKey::FromBytes(BytesOf("0123456789abcdef"));
  ASSERT_TRUE(key.ok());
  for (const TargetSpec::EncryptionMode mode :
       {TargetSpec::EncryptionMode::kAesGcm, TargetSpec::EncryptionMode::kAesCbc,
        TargetSpec::EncryptionMode::kSm4Cbc}) {
    options_.encryption = mode;
    options_.encryption_key = *key;
    options_.force = true;
    ASSERT_TRUE(Write().ok());
    ExpectArrays(*key);
    EXPECT_EQ(ReadFile(options_.output).find(large_.substr(1 << 20, 32)), std::string::npos);
  }
}

TEST_F(WriteCheckpointTest, IsThereWholeOrNotAtAll) {
  folder_.Write("made.ckpt", "old");
  EXPECT_EQ(Write().code(), StatusCode::kAlreadyExists);
  std::stop_source stop;
  stop.request_stop();
  options_.force = true;
  options_.run.stop = stop.get_token();
  EXPECT_EQ(Write().code(), StatusCode::kCancelled);
  EXPECT_EQ(ReadFile(options_.output), "old");
  EXPECT_EQ(ReadFolder(folder_.path()).size(), 1U);
}

TEST_F(WriteCheckpointTest, RefusesWhatNoFileCanHold) {
  const auto refused = [this](const ArrayToWrite& array, StatusCode code, std::string_view words) {
    const std::vector<ArrayToWrite> arrays = {arrays_.front(), array};
    const Status status = WriteCheckpoint(arrays, options_).status();
    EXPECT_EQ(status.code(), code);
    EXPECT_THAT(status.message(), HasSubstr(words));
  };
  constexpr StatusCode kInvalid = StatusCode::kInvalidArgument;
  refused(arrays_.front(), kInvalid, "\"b\": is there twice");
  refused({"", ArrayKind::kTensor, DType::kInt8, {1}, BytesOf("x")}, kInvalid, "no name");
  refused({"x", ArrayKind::kTensor, DType::kInt16, {3}, BytesOf("12345")}, kInvalid,
          "\"x\": Int16 [3]: expected 6 bytes, found 5");
  refused({"x", ArrayKind::kTensor, DType::kInt16, {-1}, {}}, kInvalid, "[-1]");
  refused({"x", ArrayKind::kText, {}, {}, BytesOf("abc")}, kInvalid, "found 3 bytes");
  refused({"x", ArrayKind::kMapTensor, {}, {}, {}}, StatusCode::kUnsupported, "\"x\"");
  options_.format = TargetFormat::kSafetensors;
  refused({"x", ArrayKind::kText, {}, {}, BytesOf("abcd")}, StatusCode::kUnsupported, "\"x\"");
  options_.encryption = TargetSpec::EncryptionMode::kAesGcm;
  refused(arrays_.back(), kInvalid, "`encryption`");
  options_.format = TargetFormat::kCkpt;
  refused(arrays_.back(), kInvalid, "`encryption_key`");
  options_.encryption = TargetSpec::EncryptionMode::kSm4Cbc;
  options_.encryption_key = *EncryptionKey::FromBytes(BytesOf("0123456789abcdef01234567"));
  refused(arrays_.back(), kInvalid, "key");
  options_.states_crc = true;
  refused(arrays_.back(), kInvalid, "`crc`");
  options_ = {.output = options_.output, .format = TargetFormat::kHuggingFace};
  refused(arrays_.back(), kInvalid, "`format=ckpt`");
  EXPECT_THAT(ReadFolder(folder_.path()), IsEmpty());
}

}  // namespace
}  // namespace reshard::write_checkpoint_test
