#include "src/verify/crc_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "src/io/source_files.h"
#include "src/source/indexed_file.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/torch_bytes.h"

namespace reshard::crc_check_test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

// CRC-32 from its definition: the remainder modulo the reflected polynomial, bit by bit.
uint32_t NaiveCrc(std::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

Status Check(const std::string& bytes, std::vector<uint64_t>* read = nullptr,
             const std::stop_token& stop = {}) {
  const TemporaryFolder folder;
  SourceFiles files(1);
  const FileId file = files.Add(folder.Write("a.ckpt", bytes));
  const auto index = ReadFileTable(files, file);
  if (!index.ok()) return index.status();
  if (!index->crc()) return InternalError("the file states no CRC");
  std::function<void(uint64_t)> progress;
  if (read != nullptr) progress = [read](uint64_t length) { read->push_back(length); };
  return CheckCrc(files, *index, progress, stop);
}

std::string Tensor(const std::string& name, size_t bytes = 12) {
  std::string content(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) content[i] = static_cast<char>(i * i >> 2);
  return TensorValue(name, "UInt8", {static_cast<int64_t>(bytes)}, content);
}

std::string Map(const std::string& name) {
  return MapValue(
      name, {TensorMessage("int32", {2}, "12345678"), TensorMessage("float32", {2, 1}, "abcdefgh"),
             TensorMessage("int32", {2}, "........")});
}

// A safetensors file of an integer that is no array, and of a tensor.
std::string Safetensors(uint32_t crc) {
  const std::string header =
      R"({"__metadata__":{"crc_num":")" + std::to_string(crc) +
      R"("},"n":{"dtype":"I16","shape":[],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[3],)"
      R"("data_offsets":[2,5]}})";
  return static_cast<char>(header.size()) + std::string(7, '\0') + header +
         std::string("\5\0xyz", 5);
}

TEST(CrcCheckTest, OfSafetensorsTakesMindSporesNumberAndThePlainOne) {
  const uint32_t mindspores = NaiveCrc(std::string("axyzn") + std::string(5, '\0'));
  const uint32_t plain = NaiveCrc(std::string("axyzn\5\0", 7));
  EXPECT_TRUE(Check(Safetensors(mindspores)).ok());
  EXPECT_TRUE(Check(Safetensors(plain)).ok());
  const Status other = Check(Safetensors(plain ^ 1));
  EXPECT_EQ(other.code(), StatusCode::kCorrupt);
  EXPECT_THAT(other.message(),
              testing::HasSubstr("crc_num states CRC-32 " + std::to_string(plain ^ 1) +
                                 ", its tensors have " + std::to_string(mindspores)));
}

TEST(CrcCheckTest, TakesTheRightNumber) {
  const std::string bytes = Tensor("w") + Tensor("b");
  EXPECT_TRUE(Check(bytes + CrcTrailer(NaiveCrc(bytes))).ok());
}

TEST(CrcCheckTest, EveryFlippedBitIsFound) {
  const std::string good = Tensor("w");
  const uint64_t crc = NaiveCrc(good);
  const size_t content = good.size() - 12;  // a flip before that may not be a checkpoint any more
  for (size_t i = content; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 1 << bit);
      EXPECT_EQ(Check(bad + CrcTrailer(crc)).code(), StatusCode::kCorrupt) << i << ", bit " << bit;
    }
  }
  for (int bit = 0; bit < 32; ++bit) {
    EXPECT_EQ(Check(good + CrcTrailer(crc ^ uint64_t{1} << bit)).code(), StatusCode::kCorrupt);
  }
}

TEST(CrcCheckTest, SaysWhatIsThereAndWhatToDo) {
  const std::string bytes = TensorValue("w", "UInt8", {4}, "abcd");
  EXPECT_EQ(NaiveCrc(bytes), 0xceb659b5U);
  EXPECT_THAT(Check(bytes + CrcTrailer(0xabc)).message(),
              EndsWith("/a.ckpt: the trailer states CRC-32 00000abc, the 22 bytes before it have "
                       "ceb659b5; the file is damaged: take another copy"));
}

// MindSpore leaves these out. A number of all bytes is right too.
TEST(CrcCheckTest, ValuesOfMapTensorsMayBeLeftOut) {
  const struct {
    const char* name;
    std::vector<std::string> values;
    std::vector<size_t> maps;  // which of them are
  } rows[] = {
      {"a MapTensor alone, then a tensor", {Map("m"), Tensor("w")}, {0}},
      {"a MapTensor at the end", {Tensor("w"), Map("m")}, {1}},
      {"one map in several Values",
       {Tensor("v"), Map("m"), Map("m"), Map("m"), Tensor("w")},
       {1, 2, 3}},
      {"maps apart",
       {Map("k"), Tensor("v"), Map("l"), Map("m"), Tensor("w"), Map("n")},
       {0, 2, 3, 5}},
      {"a MapTensor across two windows",
       {Tensor("v", kWindowBytes - 40), Map("m"), Tensor("w")},
       {1}},
      {"only a MapTensor", {Map("m")}, {0}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    std::string all;
    std::string tensors;
    for (size_t i = 0; i < row.values.size(); ++i) {
      all += row.values[i];
      if (std::find(row.maps.begin(), row.maps.end(), i) == row.maps.end()) {
        tensors += row.values[i];
      }
    }
    EXPECT_TRUE(Check(all + CrcTrailer(NaiveCrc(all))).ok());
    EXPECT_TRUE(Check(all + CrcTrailer(NaiveCrc(tensors))).ok());
    EXPECT_EQ(Check(all + CrcTrailer(NaiveCrc(tensors) ^ 1)).code(), StatusCode::kCorrupt);
    // Neither all bytes nor those without maps.
    std::string others = tensors;
    others += row.values[0];
    if (row.values.size() > 1) {
      EXPECT_EQ(Check(all + CrcTrailer(NaiveCrc(others))).code(), StatusCode::kCorrupt);
    }
  }
}

TEST(CrcCheckTest, EachContentOfATorchFileIsChecked) {
  const TemporaryFolder folder;
  const std::string good =
      TorchFile(PickleOf(PickledDict({{PickledText("a"), PickledWhole("0", {2})},
                                      {PickledText("tied"), PickledWhole("0", {2})},
                                      {PickledText("b"), PickledWhole("1", {1})}})),
                {"01234567", "abcd"});
  const auto check = [&](const std::string& bytes) -> Status {
    SourceFiles files(1);
    const auto index = ReadFileTable(files, files.Add(folder.Write("a.pt", bytes)));
    if (!index.ok()) return index.status();
    EXPECT_TRUE(index->states_crc());
    uint64_t read = 0;
    const Status status = CheckCrc(files, *index, [&read](uint64_t length) { read += length; }, {});
    EXPECT_TRUE(!status.ok() || read == 12U) << read;
    return status;
  };
  EXPECT_TRUE(check(good).ok());
  const struct {
    const char* content;
    const char* names;
  } rows[] = {{"01234567", "(\"a\", \"tied\")"}, {"abcd", "(\"b\")"}};
  for (const auto& row : rows) {
    std::string bad = good;
    bad[bad.find(row.content) + 3] = '!';
    const Status status = check(bad);
    EXPECT_EQ(status.code(), StatusCode::kCorrupt);
    EXPECT_THAT(status.message(), testing::HasSubstr(row.names));
  }
}

TEST(CrcCheckTest, ReadsByWindowsAndTellsHowFarItIs) {
  const std::string bytes = Tensor("w", 2 * kWindowBytes);
  std::vector<uint64_t> read;
  EXPECT_TRUE(Check(bytes + CrcTrailer(NaiveCrc(bytes)), &read).ok());
  EXPECT_THAT(read, ElementsAre(kWindowBytes, kWindowBytes, bytes.size() - 2 * kWindowBytes));
}

TEST(CrcCheckTest, StopsOnRequest) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(Check(Tensor("w") + CrcTrailer(0), nullptr, stop.get_token()).code(),
            StatusCode::kCancelled);
}

}  // namespace
}  // namespace reshard::crc_check_test
