#include "format/torch_zip/tensor_item.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/says.h"
#include "tests/support/torch_bytes.h"
#include "tests/support/zip_bytes.h"

namespace reshard::tensor_item_test {
namespace {

constexpr std::string_view kFront = "in front";

// Reads the item that stands between other bytes.
Result<TorchTensorItem> ReadItem(const std::string& item) {
  const std::string bytes = std::string(kFront) + item + "behind";
  const FileBytes file = {"__0_0.distcp", bytes.size(),
                          [&bytes](uint64_t offset, std::span<std::byte> out) -> Status {
                            std::memcpy(out.data(), bytes.data() + offset, out.size());
                            return {};
                          },
                          [](ByteRange) { return Status(); }};
  return ReadTensorItem(file, {kFront.size(), item.size()}, {});
}

Result<TorchTensorItem> ReadTensor(const PickledTensor& tensor, const std::string& storage) {
  return ReadItem(TorchFile(PickleOf(Pickled(tensor)), {storage}));
}

// The content of the tensor, as the item says.
std::string ContentOf(const std::string& item, const TorchTensorItem& read) {
  return item.substr(read.content.offset - kFront.size(), read.content.length);
}

TEST(TensorItemTest, HasDTypeShapeAndContent) {
  const std::string storage = "0123456789ABCDEFGHIJKLMN";
  const std::string item =
      TorchFile(PickleOf(Pickled({.elements = 6, .shape = {2, 3}, .strides = {3, 1}})), {storage});
  const auto read = ReadItem(item);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->dtype, DType::kFloat32);
  EXPECT_EQ(read->shape, (Shape{2, 3}));
  EXPECT_EQ(ContentOf(item, *read), storage);
  EXPECT_EQ(read->crc.covered, read->content);
  EXPECT_EQ(read->crc.value, NaiveCrc32(storage));
}

TEST(TensorItemTest, APartOfAStorageHasTheCrcOfAll) {
  const std::string storage = "0123456789ABCDEF";
  const std::string item = TorchFile(
      PickleOf(Pickled({.elements = 4, .offset = 1, .shape = {1, 2}, .strides = {99, 1}})),
      {storage});
  const auto read = ReadItem(item);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(ContentOf(item, *read), "456789AB");
  EXPECT_EQ(read->crc.covered, (ByteRange{read->content.offset - 4, 16}));
}

TEST(TensorItemTest, HasEveryDType) {
  const struct {
    const char* storage;
    const char* dtype;
    DType expected;
  } rows[] = {{"DoubleStorage", "", DType::kFloat64},
              {"HalfStorage", "", DType::kFloat16},
              {"BFloat16Storage", "", DType::kBFloat16},
              {"LongStorage", "", DType::kInt64},
              {"IntStorage", "", DType::kInt32},
              {"ShortStorage", "", DType::kInt16},
              {"CharStorage", "", DType::kInt8},
              {"ByteStorage", "", DType::kUInt8},
              {"BoolStorage", "", DType::kBool},
              {"ComplexFloatStorage", "", DType::kComplex64},
              {"ComplexDoubleStorage", "", DType::kComplex128},
              {"UntypedStorage", "uint16", DType::kUInt16},
              {"UntypedStorage", "uint32", DType::kUInt32},
              {"UntypedStorage", "uint64", DType::kUInt64},
              {"UntypedStorage", "float8_e4m3fn", DType::kFloat8E4M3FN},
              {"UntypedStorage", "float8_e5m2", DType::kFloat8E5M2},
              {"UntypedStorage", "float8_e8m0fnu", DType::kFloat8E8M0}};
  for (const auto& row : rows) {
    const auto bytes = static_cast<int64_t>(ItemBytes(row.expected)) * 3;
    const bool is_untyped = *row.dtype != '\0';
    const auto read = ReadTensor({.type = row.storage,
                                  .elements = is_untyped ? bytes : 3,
                                  .shape = {3},
                                  .strides = {1},
                                  .dtype = row.dtype},
                                 std::string(static_cast<size_t>(bytes), 'x'));
    ASSERT_TRUE(read.ok()) << row.storage << row.dtype << ": " << read.status().message();
    EXPECT_EQ(read->dtype, row.expected);
    EXPECT_EQ(read->content.length, static_cast<uint64_t>(bytes));
  }
}

TEST(TensorItemTest, TakesOtherFormsOfAPlainTensor) {
  const std::string tensor = PickledWhole("0", {2});
  const std::string hooks = PickledCall("collections", "OrderedDict", {});
  const std::string forms[] = {
      PickledCall("torch._utils", "_rebuild_parameter", {tensor, PickledBool(true), hooks}),
      PickledCall("torch._tensor", "_rebuild_from_type_v2",
                  {PickledGlobal("torch._utils", "_rebuild_parameter"),
                   PickledGlobal("torch.nn.parameter", "Parameter"),
                   PickledTuple({tensor, PickledBool(true), hooks}),
                   PickledDict({{PickledText("ds_id"), PickledInteger(3)}})})};
  for (const std::string& form : forms) {
    const auto read = ReadItem(TorchFile(PickleOf(form), {"01234567"}));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->shape, Shape{2});
  }
}

TEST(TensorItemTest, ScalarsAndEmptyTensors) {
  const auto scalar = ReadTensor({.elements = 1}, "0123");
  ASSERT_TRUE(scalar.ok()) << scalar.status().message();
  EXPECT_EQ(scalar->shape, Shape{});
  EXPECT_EQ(scalar->content.length, 4U);
  for (const std::vector<int64_t>& strides : {std::vector<int64_t>{4, 1}, {1, 7}}) {
    const auto empty = ReadTensor({.shape = {0, 4}, .strides = strides}, "");
    ASSERT_TRUE(empty.ok()) << empty.status().message();
    EXPECT_EQ(empty->shape, (Shape{0, 4}));
    EXPECT_EQ(empty->content.length, 0U);
    EXPECT_EQ(empty->crc.covered.length, 0U);
  }
}

TEST(TensorItemTest, RefusesWhatIsNotThereAsItIs) {
  const auto flag = [](const char* name) {
    return PickledDict({{PickledText(name), PickledBool(true)}});
  };
  const PickledTensor plain{.elements = 6, .shape = {2, 3}, .strides = {3, 1}};
  const auto with = [&plain](const std::function<void(PickledTensor&)>& change) {
    PickledTensor tensor = plain;
    change(tensor);
    return Pickled(tensor);
  };
  const std::string tensor = Pickled(plain);
  const struct {
    std::string pickled;
    std::string_view named;
  } rows[] = {
      {with([](auto& t) {
         t.strides = {1, 2};
       }),
       "[2, 3] with strides [1, 2]"},
      {with([](auto& t) {
         t.strides = {0, 1};
       }),
       "strides [0, 1]"},
      {with([&](auto& t) { t.flags = flag("conj"); }), "conj"},
      {with([&](auto& t) { t.flags = flag("neg"); }), "neg"},
      {with([&](auto& t) { t.flags = flag("other"); }), "other"},
      {with([](auto& t) { t.type = "QInt8Storage"; }), "QInt8Storage"},
      {with([](auto& t) {
         t.type = "UntypedStorage";
         t.elements = 24;
         t.dtype = "complex32";
       }),
       "complex32"},
      {PickledCall("torch._utils", "_rebuild_qtensor", {tensor}), "quantized"},
      {PickledCall("torch._utils", "_rebuild_sparse_tensor", {tensor}), "sparse"},
      {PickledCall(
           "torch._tensor", "_rebuild_from_type_v2",
           {PickledGlobal("torch._utils", "_rebuild_wrapper_subclass"),
            PickledGlobal("torchao.dtypes", "Affine"),
            PickledTuple({PickledGlobal("torchao.dtypes", "Affine"), tensor}), PickledDict({})}),
       "torchao.dtypes.Affine"},
  };
  for (const auto& row : rows) {
    const Status status =
        ReadItem(TorchFile(PickleOf(row.pickled), {"0123456789ABCDEFGHIJKLMN"})).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << row.named << ": " << status.message();
    EXPECT_THAT(status.message(), Naming("__0_0.distcp: item at 8: ", row.named));
  }
  const Status big =
      ReadItem(TorchFile(PickleOf(tensor), {"0123456789ABCDEFGHIJKLMN"}, "big")).status();
  EXPECT_EQ(big.code(), StatusCode::kUnsupported);
}

TEST(TensorItemTest, RefusesTensorsThatLeaveTheirStorage) {
  constexpr int64_t kMost = INT64_MAX;
  const PickledTensor tensors[] = {
      {.elements = 6, .shape = {2, 4}, .strides = {4, 1}},
      {.elements = 6, .offset = 1, .shape = {2, 3}, .strides = {3, 1}},
      {.elements = 6, .offset = -1, .shape = {2}, .strides = {1}},
      {.elements = 6, .offset = kMost, .shape = {2}, .strides = {1}},
      {.elements = 6, .shape = {2, 2}, .strides = {kMost, kMost}},
      {.elements = 6, .shape = {2, 2}, .strides = {5, 1}},
      {.elements = 6, .shape = {2}, .strides = {-1}},
      {.elements = 6, .shape = {-2}, .strides = {1}},
      {.elements = 6, .shape = {kMost}, .strides = {0}},
      {.elements = 6, .shape = {0, kMost}, .strides = {1, 1}},
      {.elements = 6, .shape = {kMost / 4, 8}, .strides = {0, 0}},
      {.elements = 6, .shape = {2, 3}, .strides = {1}},
      {.elements = kMost, .shape = {2}, .strides = {1}},
      {.elements = -6, .shape = {2}, .strides = {1}},
      {.elements = 5, .shape = {2}, .strides = {1}},
      {.elements = 7, .shape = {2}, .strides = {1}},
      {.key = "1", .elements = 6, .shape = {2}, .strides = {1}},
      {.key = "../0", .elements = 6, .shape = {2}, .strides = {1}},
      {.type = "UntypedStorage", .elements = 24, .shape = {2}, .strides = {1}},
      {.elements = 6,
       .shape = std::vector<int64_t>(kMaxDims + 1, 1),
       .strides = std::vector<int64_t>(kMaxDims + 1, 1)},
  };
  size_t number = 0;
  for (const PickledTensor& tensor : tensors) {
    const Status status = ReadTensor(tensor, "0123456789ABCDEFGHIJKLMN").status();
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << number << ": " << status.message();
    EXPECT_THAT(status.message(), Naming("__0_0.distcp: item at 8: "));
    ++number;
  }
}

TEST(TensorItemTest, RefusesOtherValues) {
  const std::string values[] = {
      PickledNone(),
      PickledDict({}),
      PickledCall("posix", "system", {PickledText("true")}),
      PickledCall("torch._utils", "_rebuild_tensor_v2", {}),
      PickledCall("torch._utils", "_rebuild_tensor_v2", std::vector<std::string>(6, PickledNone())),
      PickledCall("torch._utils", "_rebuild_parameter", {PickledNone()}),
      PickledCall("torch._utils", "_rebuild_parameter",
                  {PickledCall("posix", "system", {PickledText("true")})}),
      PickledCall("torch._tensor", "_rebuild_from_type_v2",
                  {PickledGlobal("posix", "system"), PickledGlobal("torch", "Tensor"),
                   PickledTuple({PickledText("true")}), PickledDict({})}),
  };
  for (const std::string& value : values) {
    const Status status = ReadItem(TorchFile(PickleOf(value), {})).status();
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << status.message();
  }
  const Status open = ReadItem(TorchFile("\x80\x02N", {})).status();
  EXPECT_EQ(open.code(), StatusCode::kCorrupt);
  EXPECT_THAT(open.message(), Naming("item at 8: member \"archive/data.pkl\""));
  EXPECT_EQ(ReadItem(ZipOf({{.name = "archive/data.txt"}})).status().code(), StatusCode::kCorrupt);
  EXPECT_EQ(ReadItem(ZipOf({{.name = "data.pkl"}})).status().code(), StatusCode::kCorrupt);
  EXPECT_EQ(
      ReadItem(TorchFile(PickleOf(PickledWhole("0", {1})), {"0123"}, "middle")).status().code(),
      StatusCode::kCorrupt);
}

TEST(TensorItemTest, ChecksThePicklesCrc) {
  std::string item = TorchFile(PickleOf(PickledWhole("0", {2})), {"01234567"});
  const size_t at = item.find("FloatStorage");
  ASSERT_NE(at, std::string::npos);
  item.replace(at, 4, "Flaat", 4);
  const Status status = ReadItem(item).status();
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
  EXPECT_THAT(status.message(), Naming("data.pkl", "CRC-32"));
}

}  // namespace
}  // namespace reshard::tensor_item_test
