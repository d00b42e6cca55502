// safetensors files with one thing wrong: a row for every rule of what is read
// (format/safetensors/SPEC.md).

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "format/safetensors/safetensors_reader.h"

namespace reshard::safetensors_malformed_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A header of these parts in place of the ones that a valid one has, with 12 bytes behind it.
struct Parts {
  std::string before = "";
  std::string metadata = R"("__metadata__":{"format":"ms"},)";
  std::string first = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)";
  std::string name = R"("b")";
  std::string dtype = R"("dtype":"I16",)";
  std::string shape = R"("shape":[2,1],)";
  std::string offsets = R"("data_offsets":[8,12])";
  std::string last = "";
  std::string after = "";
  size_t content = 12;
};

// ",1" so many times.
std::string Ones(size_t count) {
  std::string ones;
  for (size_t i = 0; i < count; ++i) ones += ",1";
  return ones;
}

std::string WithLength(uint64_t length, std::string_view rest) {
  std::string bytes;
  for (size_t i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xFF);
  return bytes.append(rest);
}

std::string Build(const Parts& parts) {
  const std::string header = parts.before + "{" + parts.metadata + parts.first + parts.name + ":{" +
                             parts.dtype + parts.shape + parts.offsets + "}" + parts.last + "}" +
                             parts.after;
  return WithLength(header.size(), header + std::string(parts.content, 'c'));
}

// `more` bytes of the file come behind `bytes`, and are not read.
Status StatusOf(std::string_view bytes, uint64_t more = 0, const MemoryCheck& memory = {}) {
  const FileBytes file = {"a.safetensors", bytes.size() + more,
                          [bytes](uint64_t offset, std::span<std::byte> out) -> Status {
                            std::memcpy(out.data(), bytes.data() + offset, out.size());
                            return {};
                          },
                          [](ByteRange /*range*/) { return Status(); }, false};
  return ReadSafetensorsTable(file, std::as_bytes(std::span(bytes.substr(0, kHeaderPage))), memory)
      .status();
}

struct MalformedFile {
  const char* name;
  std::string bytes;
  std::string message;  // part of it, behind "a.safetensors: "
};

class SafetensorsMalformedTest : public testing::TestWithParam<MalformedFile> {};

TEST_P(SafetensorsMalformedTest, IsRefusedWithAReason) {
  const MalformedFile& row = GetParam();
  const Status status = StatusOf(row.bytes);
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
  EXPECT_THAT(status.message(), StartsWith("a.safetensors: "));
  EXPECT_THAT(status.message(), HasSubstr(row.message));
  for (const char c : status.message()) EXPECT_GE(static_cast<unsigned char>(c), ' ');
}

// Each row breaks what these leave whole.
TEST(SafetensorsMalformedBaseTest, TheBuildersMakeValidFiles) {
  for (const Parts& parts : {
           Parts{},
           Parts{.before = " \n", .after = "\t\r\n "},
           Parts{.metadata = ""},
           Parts{.metadata = R"("__metadata__":null,)"},
           Parts{.metadata = R"("__metadata__":{},)"},
           // The order of names is free, and bytes stay bytes.
           Parts{.first = R"("a":{"dtype":"BOOL","shape":[8],"data_offsets":[4,12]},)",
           .offsets = R"("data_offsets":[0,4])"},
           Parts{.name = R"("")"},
           Parts{.name = R"("\u00e9\ud83d\ude00")"},
           Parts{.offsets = R"("data_offsets":[8,12],"more":[1,{"x":8.0}])"},
           Parts{.last = R"(,"none":{"dtype":"F64","shape":[3,0],"data_offsets":[8,8]})"},
           Parts{.shape = R"("shape":[2,1],)",
           .last = R"(,"c":{"dtype":"U8","shape":[],"data_offsets":[12,13]})",
           .content = 13},
       }) {
    const Status status = StatusOf(Build(parts));
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_TRUE(StatusOf(WithLength(2, "{}")).ok());
  EXPECT_TRUE(StatusOf(WithLength(19, R"({"__metadata__":{}})")).ok());
}

// The longest header is refused for want of memory only, as this one is before it is read.
TEST(SafetensorsMalformedBaseTest, AHeaderOf100MillionBytesIsNotTooLong) {
  constexpr uint64_t kMost = 100'000'000;
  const auto none = [](uint64_t /*more*/) { return ResourceExhaustedError("no memory"); };
  EXPECT_EQ(StatusOf(WithLength(kMost, ""), kMost, none).code(), StatusCode::kResourceExhausted);
  const Status longer = StatusOf(WithLength(kMost + 1, ""), kMost + 1, none);
  EXPECT_EQ(longer.code(), StatusCode::kCorrupt);
  EXPECT_THAT(longer.message(), HasSubstr("a header of 100000001 bytes"));
}

std::string CaseName(const testing::TestParamInfo<MalformedFile>& row) { return row.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Length, SafetensorsMalformedTest,
    testing::Values(
        MalformedFile{"seven_bytes", std::string(7, '\0'), "7 bytes; expected the length"},
        MalformedFile{"header_beyond_the_file", WithLength(3, "{}"),
                      "a header of 3 bytes by its first 8; expected at most 100000000, and no more "
                      "than the 2 behind these"},
        MalformedFile{"header_of_2_to_the_64_less_1", WithLength(UINT64_MAX, "{}"),
                      "a header of 18446744073709551615 bytes"},
        MalformedFile{"no_header", WithLength(0, ""), "the header is not JSON"}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    Json, SafetensorsMalformedTest,
    testing::Values(
        MalformedFile{"array", WithLength(2, "[]"), "expected an object as header"},
        MalformedFile{"byte_order_mark", Build({.before = "\xEF\xBB\xBF"}), "byte order mark"},
        MalformedFile{"zero_bytes_behind", Build({.after = std::string(3, '\0')}), "a zero byte"},
        MalformedFile{"text_behind", Build({.after = "x"}), "the header is not JSON"},
        MalformedFile{"second_object_behind", Build({.after = "{}"}), "the header is not JSON"},
        MalformedFile{"cut", WithLength(10, R"({"w":{"dty)"), "the header is not JSON"},
        MalformedFile{"no_utf8", Build({.name = "\"\xFF\""}), "the header is not JSON"},
        MalformedFile{"lone_surrogate", Build({.name = R"("\ud800")"}), "the header is not JSON"},
        MalformedFile{"low_surrogate", Build({.name = R"("\udc00")"}), "the header is not JSON"},
        MalformedFile{"not_a_number", Build({.last = R"(,"c":NaN)"}), "the header is not JSON"},
        MalformedFile{
            "nested",
            Build({.offsets = R"("data_offsets":[8,12],"more":)" + std::string(1000, '[')}),
            "the header is not JSON"}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    Metadata, SafetensorsMalformedTest,
    testing::Values(
        MalformedFile{"number_as_value", Build({.metadata = R"("__metadata__":{"a":1},)"}),
                      "expected a string as metadata \"a\", found 1"},
        MalformedFile{"object_as_value", Build({.metadata = R"("__metadata__":{"a":{}},)"}),
                      "expected a string as metadata \"a\", found an object"},
        MalformedFile{"null_as_value", Build({.metadata = R"("__metadata__":{"a":null},)"}),
                      "expected a string as metadata \"a\", found null"},
        MalformedFile{"string", Build({.metadata = R"("__metadata__":"ms",)"}),
                      "expected an object as __metadata__, found a string"},
        MalformedFile{"array_as_metadata", Build({.metadata = R"("__metadata__":[],)"}),
                      "expected an object as __metadata__, found an array"},
        MalformedFile{"metadata_twice",
                      Build({.metadata = R"("__metadata__":{},"__metadata__":null,)"}),
                      "__metadata__ occurs twice"},
        MalformedFile{"key_twice", Build({.metadata = R"("__metadata__":{"a":"1","a":"1"},)"}),
                      "metadata \"a\" occurs twice"},
        MalformedFile{"mark_of_another_dtype",
                      Build({.metadata = R"("__metadata__":{"b":"Int4"},)"}),
                      "tensor \"b\": metadata says Int4, which I8 may be, but it is I16"},
        MalformedFile{"crc_that_is_no_number",
                      Build({.metadata = R"("__metadata__":{"crc_num":"12x"},)"}),
                      "expected a CRC-32, decimal, as metadata crc_num, found \"12x\""},
        MalformedFile{"crc_of_33_bits",
                      Build({.metadata = R"("__metadata__":{"crc_num":"4294967296"},)"}),
                      "expected a CRC-32"}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    Members, SafetensorsMalformedTest,
    testing::Values(
        MalformedFile{
            "number_for_a_tensor", Build({.last = R"(,"c":1)"}),
            "tensor \"c\": expected an object with dtype, shape and data_offsets, found 1"},
        MalformedFile{"no_dtype", Build({.dtype = ""}), "tensor \"b\": it has no dtype"},
        MalformedFile{"no_shape", Build({.shape = ""}), "tensor \"b\": it has no shape"},
        MalformedFile{"no_offsets", Build({.shape = R"("shape":[2,1])", .offsets = ""}),
                      "tensor \"b\": it has no data_offsets"},
        MalformedFile{"dtype_twice", Build({.dtype = R"("dtype":"I16","dtype":"I16",)"}),
                      "tensor \"b\": dtype occurs twice"},
        MalformedFile{"shape_twice", Build({.shape = R"("shape":[2,1],"shape":[2,1],)"}),
                      "tensor \"b\": shape occurs twice"},
        MalformedFile{"offsets_twice",
                      Build({.offsets = R"("data_offsets":[8,12],"data_offsets":[8,12])"}),
                      "tensor \"b\": data_offsets occurs twice"},
        MalformedFile{"name_twice",
                      Build({.last = R"(,"a":{"dtype":"U8","shape":[0],"data_offsets":[12,12]})"}),
                      "tensor \"a\": its name occurs twice"},
        MalformedFile{"number_as_dtype", Build({.dtype = R"("dtype":3,)"}),
                      "tensor \"b\": expected a string as dtype, found 3"},
        MalformedFile{"unknown_dtype", Build({.dtype = R"("dtype":"I4",)"}),
                      "tensor \"b\": unknown dtype \"I4\""},
        MalformedFile{"lower_case_dtype", Build({.dtype = R"("dtype":"i16",)"}),
                      "tensor \"b\": unknown dtype \"i16\""},
        MalformedFile{"number_as_shape", Build({.shape = R"("shape":2,)"}),
                      "tensor \"b\": expected an array of integers as shape, found 2"},
        MalformedFile{"null_as_shape", Build({.shape = R"("shape":null,)"}),
                      "tensor \"b\": expected an array of integers as shape, found null"},
        MalformedFile{"negative_size", Build({.shape = R"("shape":[-2,1],)"}),
                      "tensor \"b\": expected sizes, which are integers from 0 on, in its shape, "
                      "found -2"},
        MalformedFile{"size_with_a_point", Build({.shape = R"("shape":[2.0,1],)"}), "found 2.0"},
        MalformedFile{"size_with_an_exponent", Build({.shape = R"("shape":[2e0,1],)"}),
                      "found 2e0"},
        MalformedFile{"size_of_64_bits", Build({.shape = R"("shape":[9223372036854775808,0],)"}),
                      "a size of 9223372036854775808 in its shape is more than 63 bits can count"},
        MalformedFile{"65_dimensions", Build({.shape = fmt::format("\"shape\":[2{}],", Ones(64))}),
                      "more than 64 dimensions"},
        MalformedFile{"one_offset", Build({.offsets = R"("data_offsets":[8])"}),
                      "tensor \"b\": expected two integers as data_offsets, found 1"},
        MalformedFile{"three_offsets", Build({.offsets = R"("data_offsets":[8,12,12])"}),
                      "tensor \"b\": expected two integers as data_offsets, found more"},
        MalformedFile{"offset_with_a_point", Build({.offsets = R"("data_offsets":[8,12.0])"}),
                      "found 12.0"},
        MalformedFile{"offset_with_an_exponent", Build({.offsets = R"("data_offsets":[8,1e1])"}),
                      "found 1e1"},
        MalformedFile{"negative_offset", Build({.offsets = R"("data_offsets":[-8,12])"}),
                      "found -8"},
        MalformedFile{"offset_of_65_bits",
                      Build({.offsets = R"("data_offsets":[8,18446744073709551616])"}),
                      "found 18446744073709551616"}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    Places, SafetensorsMalformedTest,
    testing::Values(
        MalformedFile{"begins_behind_0",
                      Build({.first = "", .offsets = R"("data_offsets":[8,12])"}),
                      "tensor \"b\": data_offsets [8, 12], but the tensor before it ends at 0"},
        MalformedFile{"gap", Build({.offsets = R"("data_offsets":[9,13])", .content = 13}),
                      "tensor \"b\": data_offsets [9, 13], but the tensor before it ends at 8"},
        MalformedFile{"overlap", Build({.offsets = R"("data_offsets":[7,11])", .content = 11}),
                      "tensor \"b\": data_offsets [7, 11], but the tensor before it ends at 8"},
        MalformedFile{"same_bytes_twice",
                      Build({.last = R"(,"c":{"dtype":"I16","shape":[2],"data_offsets":[8,12]})"}),
                      "data_offsets [8, 12], but the tensor before it ends at 12"},
        MalformedFile{"empty_within_another",
                      Build({.last = R"(,"c":{"dtype":"U8","shape":[0],"data_offsets":[10,10]})"}),
                      "tensor \"c\": data_offsets [10, 10], but the tensor before it ends at 12"},
        MalformedFile{"end_before_begin", Build({.offsets = R"("data_offsets":[12,8])"}),
                      "tensor \"b\": data_offsets [12, 8], but the file has 12 bytes"},
        MalformedFile{"beyond_the_file", Build({.content = 11}),
                      "tensor \"b\": data_offsets [8, 12], but the file has 11 bytes"},
        MalformedFile{"bytes_behind", Build({.content = 13}), "its tensors end at 12 of 13 bytes"},
        MalformedFile{"no_tensors_but_bytes", WithLength(2, "{}c"), "its tensors end at 0 of 1"}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    Sizes, SafetensorsMalformedTest,
    testing::Values(
        MalformedFile{
            "larger_than_its_shape", Build({.shape = R"("shape":[1],)"}),
            "tensor \"b\": 4 bytes by its data_offsets [8, 12], but shape [1] of I16 needs "
            "2"},
        MalformedFile{"smaller_than_its_shape", Build({.shape = R"("shape":[2,2],)"}),
                      "shape [2, 2] of I16 needs 8"},
        MalformedFile{"scalar_of_two", Build({.shape = R"("shape":[],)"}),
                      "shape [] of I16 needs 2"},
        MalformedFile{"empty_with_bytes", Build({.shape = R"("shape":[0,2],)"}),
                      "shape [0, 2] of I16 needs 0"},
        MalformedFile{"half_a_byte",
                      Build({.dtype = R"("dtype":"F4",)", .shape = R"("shape":[7],)"}),
                      "tensor \"b\": shape [7] of F4 does not fill whole bytes"},
        MalformedFile{
            "overflow", Build({.shape = R"("shape":[4611686018427387904,4],)"}),
            "shape [4611686018427387904, 4] of I16 makes more bytes than 63 bits can count"},
        MalformedFile{"overflow_before_0",
                      Build({.shape = R"("shape":[4611686018427387904,4,0],)"}),
                      "makes more bytes than 63 bits can count"},
        MalformedFile{"overflow_behind_0", Build({.shape = R"("shape":[0,4611686018427387904],)"}),
                      "makes more bytes than 63 bits can count"},
        MalformedFile{"overflow_around_0",
                      Build({.shape = R"("shape":[2147483648,0,2147483648],)"}),
                      "makes more bytes than 63 bits can count"}),
    CaseName);

}  // namespace
}  // namespace reshard::safetensors_malformed_test
