// Files of torch.save with one thing wrong: a row for each rule of format/torch_zip. Whatever is
// wrong is found before a byte is written, and by opening the file, too.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/convert.h"
#include "tests/support/says.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/torch_bytes.h"
#include "tests/support/zip_bytes.h"

namespace reshard::torch_malformed_test {
namespace {

namespace fs = std::filesystem;

// A file with the tensor "w" of two floats.
struct TorchParts {
  PickledTensor tensor = {.elements = 2, .shape = {2}, .strides = {1}};
  std::string pickle = {};  // instead of a dict with the tensor
  std::vector<ZipEntry> members = {{.name = "a/data.pkl"},
                                   {.name = "a/byteorder", .content = "little"},
                                   {.name = "a/data/0", .content = "01234567"}};
  ZipForm form = {};

  std::string File() const {
    std::vector<ZipEntry> all = members;
    const std::string dict = PickledDict({{PickledText("w"), Pickled(tensor)}});
    all[0].content = pickle.empty() ? PickleOf(dict) : pickle;
    return ZipOf(all, form);
  }
};

struct TorchRow {
  std::string name;
  std::function<void(TorchParts&)> change;
  StatusCode code;
  std::vector<std::string> words;
};

void PrintTo(const TorchRow& row, std::ostream* out) { *out << row.name; }

class TorchMalformedTest : public testing::TestWithParam<TorchRow> {
 protected:
  TorchMalformedTest() {
    options_.target.folder = work_.path() / "target";
    options_.target.format = TargetFormat::kHuggingFace;
  }

  const TemporaryFolder work_;
  ConvertOptions options_;
};

TEST_P(TorchMalformedTest, IsRefusedBeforeAByteIsWritten) {
  TorchParts parts;
  options_.source.path = work_.Write("a.pt", parts.File());
  ASSERT_TRUE(Plan(options_).ok());
  GetParam().change(parts);
  work_.Write("a.pt", parts.File());
  const Status status = Convert(options_).status();
  EXPECT_EQ(status.code(), GetParam().code) << status.message();
  EXPECT_THAT(status.message(), Naming("a.pt: "));
  for (const std::string& word : GetParam().words) EXPECT_THAT(status.message(), Naming(word));
  EXPECT_FALSE(fs::exists(options_.target.folder));
  const auto file = Checkpoint::Open(options_.source.path);
  const Status read = file.ok() ? file->View("w").status() : file.status();
  EXPECT_EQ(read.code(), GetParam().code) << read.message();
}

constexpr StatusCode kBad = StatusCode::kCorrupt;
constexpr StatusCode kOther = StatusCode::kUnsupported;

INSTANTIATE_TEST_SUITE_P(
    Zip, TorchMalformedTest,
    testing::Values(
        TorchRow{"compressed", [](auto& p) { p.members[2].method = 8; }, kBad, {"a/data/0"}},
        TorchRow{"encrypted", [](auto& p) { p.members[2].flags |= 1; }, kBad, {"a/data/0"}},
        TorchRow{
            "two of a name", [](auto& p) { p.members.push_back(p.members[2]); }, kBad, {"twice"}},
        TorchRow{"overlap", [](auto& p) { p.members[2].header = 0; }, kBad, {}},
        TorchRow{
            "beyond the file", [](auto& p) { p.members[2].size = 1 << 20; }, kBad, {"a/data/0"}},
        TorchRow{"a directory beyond the zip", [](auto& p) { p.form.offset = 1 << 20; }, kBad, {}},
        TorchRow{"a count that wraps", [](auto& p) { p.form.count = ~uint64_t{0}; }, kBad, {}},
        TorchRow{
            "no pickle", [](auto& p) { p.members[0].name = "a/data.json"; }, kBad, {"data.pkl"}},
        TorchRow{"a CRC of the pickle", [](auto& p) { p.members[0].crc = 1; }, kBad, {"CRC-32"}},
        TorchRow{"big-endian", [](auto& p) { p.members[1].content = "big"; }, kOther, {"endian"}},
        TorchRow{"another local name",
                 [](auto& p) { p.members[2].local_name = "a/data/1"; },
                 kBad,
                 {"a/data/0"}}));

INSTANTIATE_TEST_SUITE_P(
    Pickle, TorchMalformedTest,
    testing::Values(
        TorchRow{"truncated", [](auto& p) { p.pickle = "\x80\x02}"; }, kBad, {"data.pkl"}},
        TorchRow{"an opcode", [](auto& p) { p.pickle = "\x80\x02i."; }, kBad, {"data.pkl"}},
        TorchRow{"a call",
                 [](auto& p) {
                   p.pickle = PickleOf(PickledCall("posix", "system", {PickledText("true")}));
                 },
                 kOther,
                 {"posix.system"}},
        TorchRow{"a shape beyond its storage",
                 [](auto& p) { p.tensor.shape = {3}; },
                 kBad,
                 {"\"w\"", "[3]"}},
        TorchRow{
            "an offset beyond its storage", [](auto& p) { p.tensor.offset = 1; }, kBad, {"\"w\""}},
        TorchRow{"a negative stride", [](auto& p) { p.tensor.strides = {-1}; }, kBad, {"\"w\""}},
        TorchRow{"a storage of another size",
                 [](auto& p) { p.tensor.elements = 3; },
                 kBad,
                 {"\"w\"", "a/data/0"}},
        TorchRow{"a shape beyond 63 bits",
                 [](auto& p) {
                   p.tensor.shape = {INT64_MAX, 8};
                   p.tensor.strides = {0, 0};
                 },
                 kBad,
                 {"\"w\""}},
        TorchRow{"strides", [](auto& p) { p.tensor.strides = {0}; }, kOther, {"\"w\"", "[0]"}},
        TorchRow{"an unknown storage",
                 [](auto& p) { p.tensor.type = "QInt8Storage"; },
                 kOther,
                 {"\"w\"", "QInt8Storage"}}));

}  // namespace
}  // namespace reshard::torch_malformed_test
