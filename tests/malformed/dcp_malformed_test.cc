// Checkpoints of PyTorch's DCP with one thing wrong: a row for each rule of format/dcp/SPEC.md.
// Whatever is wrong is found before a byte is written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/convert.h"
#include "tests/support/dcp_bytes.h"
#include "tests/support/says.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/torch_bytes.h"

namespace reshard::dcp_malformed_test {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

std::string RowsOf(char letter, size_t rows) { return std::string(12 * rows, letter); }

// "w" of [4, 3] in two chunks of two rows, each in a file of its own, and "v" of [2] behind the
// first one.
class DcpTest : public testing::Test {
 protected:
  DcpTest() {
    const std::string half = DcpItemOf({2, 3}, RowsOf('a', 2));
    const std::string other = DcpItemOf({2}, "cccccccc");
    length_ = static_cast<int64_t>(half.size());
    made_.tensors = {
        {.name = "w",
         .size = {4, 3},
         .chunks =
             {{.offsets = {0, 0}, .sizes = {2, 3}, .length = length_},
              {.offsets = {2, 0}, .sizes = {2, 3}, .path = "__1_0.distcp", .length = length_}}},
        {.name = "v",
         .size = {2},
         .chunks = {{.offsets = {0},
                     .sizes = {2},
                     .offset = length_,
                     .length = static_cast<int64_t>(other.size())}}}};
    work_.Write("in/__0_0.distcp", half + other);
    work_.Write("in/__1_0.distcp", DcpItemOf({2, 3}, RowsOf('b', 2)));
  }

  void WriteMetadata(const std::string& name = ".metadata") {
    work_.Write("in/" + name, DcpMetadataOf(made_));
  }

  ConvertOptions Options() const {
    ConvertOptions options;
    options.source.path = work_.path() / "in";
    options.target.folder = work_.path() / "out";
    options.target.format = TargetFormat::kHuggingFace;
    return options;
  }

  Status Converted() {
    const Status status = Convert(Options()).status();
    EXPECT_EQ(fs::exists(work_.path() / "out"), status.ok());
    return status;
  }

  std::string Output() const { return ReadFile(work_.path() / "out" / "model.safetensors"); }

  const TemporaryFolder work_{MemoryFolder()};
  int64_t length_ = 0;  // of an item of "w"
  DcpBytes made_;
};

TEST_F(DcpTest, IsRead) {
  WriteMetadata();
  const auto report = Convert(Options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings, IsEmpty());
  EXPECT_THAT(Output(), HasSubstr(RowsOf('a', 2) + RowsOf('b', 2)));
  EXPECT_THAT(Output(), HasSubstr("cccccccc"));
}

TEST_F(DcpTest, FormsOfOtherVersionsAreRead) {
  made_.module = "torch.distributed._shard.checkpoint";
  made_.properties = 5;
  WriteMetadata();
  EXPECT_EQ(Converted().message(), "");
}

struct Row {
  std::string name;
  std::function<void(DcpBytes& made)> change;
  StatusCode code = StatusCode::kCorrupt;
  std::vector<std::string> words = {};
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class DcpRowTest : public DcpTest, public testing::WithParamInterface<Row> {};

TEST_P(DcpRowTest, IsRefused) {
  GetParam().change(made_);
  WriteMetadata();
  const Status status = Converted();
  EXPECT_EQ(status.code(), GetParam().code) << status.message();
  if (GetParam().code != StatusCode::kMismatch) {
    EXPECT_THAT(status.message(), HasSubstr("in/.metadata: "));
  }
  for (const std::string& word : GetParam().words) EXPECT_THAT(status.message(), HasSubstr(word));
}

const std::vector<Row> kRows = {
    {"NoTensor",
     [](DcpBytes& made) { made.tensors.clear(); },
     StatusCode::kMismatch,
     {"names no tensor"}},
    {"OtherModule",
     [](DcpBytes& made) { made.module = "os"; },
     StatusCode::kCorrupt,
     {"top object is os.metadata.Metadata(..), expected Metadata; nothing was executed"}},
    {"NameTwice",
     [](DcpBytes& made) { made.tensors[1].name = "w"; },
     StatusCode::kCorrupt,
     {"state_dict_metadata: \"w\" occurs twice"}},
    {"ObjectAndTensor",
     [](DcpBytes& made) { made.objects = {"w"}; },
     StatusCode::kCorrupt,
     {"state_dict_metadata: \"w\" occurs twice"}},
    {"NameIsNoText",
     [](DcpBytes& made) { made.tensors[1].name = "\xff"; },
     StatusCode::kCorrupt,
     {"expected a name"}},
    {"Layout",
     [](DcpBytes& made) { made.tensors[0].layout = "torch.sparse_coo"; },
     StatusCode::kUnsupported,
     {"\"w\"", "the layout torch.sparse_coo", "`exclude`"}},
    {"DType",
     [](DcpBytes& made) { made.tensors[0].dtype = "qint8"; },
     StatusCode::kUnsupported,
     {"\"w\"", "the dtype torch.qint8"}},
    {"Properties",
     [](DcpBytes& made) { made.properties = 4; },
     StatusCode::kCorrupt,
     {"TensorProperties", "a tuple of 5 or 6", "a tuple of 4"}},
    {"Negative",
     [](DcpBytes& made) {
       made.tensors[0].size = {-4, 3};
     },
     StatusCode::kCorrupt,
     {"torch.Size", "-4"}},
    {"TooLarge",
     [](DcpBytes& made) {
       made.tensors[0].size = {int64_t{1} << 61, 4};
     },
     StatusCode::kCorrupt,
     {"\"w\"", "too many bytes"}},
    {"TooManyDimensions",
     [](DcpBytes& made) { made.tensors[0].size = std::vector<int64_t>(65, 1); },
     StatusCode::kCorrupt,
     {"65 dimensions"}},
    {"OtherDimensions",
     [](DcpBytes& made) { made.tensors[0].chunks[1].sizes = {6}; },
     StatusCode::kCorrupt,
     {"\"w\"", "the chunk at [2, 0] of sizes [6] is not inside of its size [4, 3]"}},
    {"Outside",
     [](DcpBytes& made) {
       made.tensors[0].chunks[1].offsets = {3, 0};
     },
     StatusCode::kCorrupt,
     {"\"w\"", "the chunk at [3, 0] of sizes [2, 3]", "[4, 3]"}},
    {"OffsetBeyond63Bits",
     [](DcpBytes& made) {
       made.tensors[0].chunks[1].offsets = {INT64_MAX, 0};
     },
     StatusCode::kCorrupt,
     {"\"w\"", "9223372036854775807"}},
    {"Overlap",
     [](DcpBytes& made) {
       made.tensors[0].chunks[1].offsets = {1, 0};
     },
     StatusCode::kMismatch,
     {"\"w\": box [0:2, 0:3] overlaps box [1:3, 0:3]", "__1_0.distcp"}},
    {"SameOffset",
     [](DcpBytes& made) {
       made.tensors[0].chunks[1].offsets = {0, 0};
     },
     StatusCode::kCorrupt,
     {"\"w\"", "storage_data has the chunk at [0, 0] twice"}},
    {"NotStored",
     [](DcpBytes& made) { made.tensors[0].chunks[1].is_stored = false; },
     StatusCode::kCorrupt,
     {"\"w\"", "no item for the chunk at [2, 0]"}},
    {"Hole",
     [](DcpBytes& made) { made.tensors[0].chunks.pop_back(); },
     StatusCode::kMismatch,
     {"\"w\": 6 of 12 elements are in no file", "box [2:4, 0:3]"}},
    {"Transform",
     [](DcpBytes& made) { made.tensors[0].chunks[0].transforms = {"test.xor/1"}; },
     StatusCode::kUnsupported,
     {"\"w\"", "stored through test.xor/1"}},
    {"Absolute",
     [](DcpBytes& made) { made.tensors[0].chunks[0].path = "/etc/passwd"; },
     StatusCode::kCorrupt,
     {"\"/etc/passwd\"", "relative_path"}},
    {"Above",
     [](DcpBytes& made) { made.tensors[0].chunks[0].path = "a/../../x"; },
     StatusCode::kCorrupt,
     {"\"a/../../x\""}},
    {"Empty",
     [](DcpBytes& made) { made.tensors[0].chunks[0].path = ""; },
     StatusCode::kCorrupt,
     {"\"\" is not the path"}},
    {"ControlCharacter",
     [](DcpBytes& made) { made.tensors[0].chunks[0].path = "a\nb"; },
     StatusCode::kCorrupt,
     {"a\\nb"}},
    {"NegativeOffset",
     [](DcpBytes& made) { made.tensors[0].chunks[0].offset = -1; },
     StatusCode::kCorrupt,
     {"_StorageInfo", "offset", "-1"}},
    {"NegativeLength",
     [](DcpBytes& made) { made.tensors[0].chunks[0].length = -1; },
     StatusCode::kCorrupt,
     {"_StorageInfo", "length", "-1"}},
    {"ItemBeyond63Bits",
     [](DcpBytes& made) { made.tensors[0].chunks[0].offset = INT64_MAX; },
     StatusCode::kCorrupt,
     {"beyond 2^63"}},
    {"ItemsOverlap",
     [](DcpBytes& made) { --made.tensors[1].chunks[0].offset; },
     StatusCode::kCorrupt,
     {"items of __0_0.distcp overlap", "\"w\"", "\"v\""}},
};

INSTANTIATE_TEST_SUITE_P(Rows, DcpRowTest, testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

TEST_F(DcpTest, BytesThatAreNoPickleAreRefused) {
  for (const std::string& bytes : {std::string(), std::string("\x80\x04"), std::string("{}"),
                                   std::string("\x80\x04N."), std::string("\x80\x02iposix\n.")}) {
    work_.Write("in/.metadata", bytes);
    const Status status = Converted();
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << status.message();
    EXPECT_THAT(status.message(), HasSubstr("in/.metadata: "));
  }
}

// It would take a list of 10^9 chunks, if announced numbers counted.
TEST_F(DcpTest, AnnouncedLengthsTakeNoMemory) {
  WriteMetadata();
  std::string bytes = ReadFile(work_.path() / "in" / ".metadata");
  bytes.insert(2, std::string("\x8d\0\0\0\0\x10\0\0\0", 9));
  work_.Write("in/.metadata", bytes);
  EXPECT_EQ(Converted().code(), StatusCode::kCorrupt);
}

TEST_F(DcpTest, FilesThatAreNotWhatIsStated) {
  const struct {
    std::string bytes;
    StatusCode code;
    std::vector<std::string> words;
  } rows[] = {
      {DcpItemOf({3, 2}, RowsOf('b', 2)),
       StatusCode::kMismatch,
       {"item at 0", "\"w\"", "expected Float32 [2, 3]", ".metadata", "found Float32 [3, 2]"}},
      {TorchFile(PickleOf(Pickled(
                     {.type = "IntStorage", .elements = 6, .shape = {2, 3}, .strides = {3, 1}})),
                 {RowsOf('b', 2)}),
       StatusCode::kMismatch,
       {"expected Float32 [2, 3]", "found Int32 [2, 3]"}},
      {std::string(static_cast<size_t>(length_), 'x'), StatusCode::kCorrupt, {}},
      {"x", StatusCode::kCorrupt, {"has 1 bytes", ".metadata"}},
      {"", StatusCode::kCorrupt, {"has 0 bytes"}},
  };
  for (const auto& row : rows) {
    WriteMetadata();
    std::string bytes = row.bytes;
    if (bytes.size() > 1) made_.tensors[0].chunks[1].length = static_cast<int64_t>(bytes.size());
    WriteMetadata();
    work_.Write("in/__1_0.distcp", bytes);
    const Status status = Converted();
    EXPECT_EQ(status.code(), row.code) << status.message();
    EXPECT_THAT(status.message(), HasSubstr("in/__1_0.distcp"));
    for (const std::string& word : row.words) EXPECT_THAT(status.message(), HasSubstr(word));
    made_.tensors[0].chunks[1].length = length_;
  }
}

TEST_F(DcpTest, AMissingFileIsNamed) {
  WriteMetadata();
  fs::remove(work_.path() / "in" / "__1_0.distcp");
  const Status status = Converted();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(),
              Naming(".metadata", "1 is missing: __1_0.distcp", "box [2:4, 0:3] of \"w\""));
  ConvertOptions options = Options();
  options.selection.exclude = {"w"};
  const auto report = Convert(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
}

TEST_F(DcpTest, AtLeastOneFileIsThere) {
  WriteMetadata();
  fs::remove(work_.path() / "in" / "__0_0.distcp");
  fs::remove(work_.path() / "in" / "__1_0.distcp");
  Status status = Converted();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), Naming("2 files", "__0_0.distcp, __1_0.distcp"));
  made_.tensors = {{.name = "none", .size = {0, 3}}};
  WriteMetadata();
  status = Converted();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), HasSubstr("names no file with tensors"));
}

TEST_F(DcpTest, TensorsThatAreNotWantedMayBeAnything) {
  made_.tensors[0].dtype = "qint8";
  work_.Write("in/__1_0.distcp", "x");
  WriteMetadata();
  ConvertOptions options = Options();
  options.selection.exclude = {"w"};
  const auto report = Convert(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(Output().ends_with("cccccccc"));
  EXPECT_THAT(report->warnings, testing::Not(Contains(Says(WarningCode::kUnusedPatterns))));
  options.selection.exclude = {};
  options.selection.include = {"v"};
  options.target.folder = work_.path() / "other";
  const auto included = Convert(options);
  ASSERT_TRUE(included.ok()) << included.status().message();
  EXPECT_EQ(included->parameters, 1);
  ContentOptions digest;
  digest.source = options.source;
  digest.exclude = {"w"};
  EXPECT_TRUE(DigestCheckpoint(digest).ok());
}

// The metadata of another rank may know it otherwise.
TEST_F(DcpTest, TensorsThatAreNotWantedMayDiffer) {
  WriteMetadata("__0.metadata");
  made_.tensors[0].dtype = "float64";
  WriteMetadata("__1.metadata");
  EXPECT_EQ(Converted().code(), StatusCode::kMismatch);
  ConvertOptions options = Options();
  options.selection.exclude = {"w"};
  const auto report = Convert(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
}

TEST_F(DcpTest, AnIndexOfPyTorchBesideItIsNoticed) {
  WriteMetadata();
  work_.Write("in/pytorch_model.bin.index.json", R"({"weight_map":{"a":"gone.bin"}})");
  const Status status = Converted();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), Naming(".metadata", "pytorch_model.bin.index.json"));
}

TEST_F(DcpTest, ObjectsAndStaleFilesAreLeftOutWithAWarning) {
  made_.objects = {"epoch", "lr"};
  WriteMetadata();
  work_.Write("in/__7_0.distcp", "of an older save");
  work_.Write("in/__8_0.distcp", "");
  const auto report = Convert(Options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings, Contains(Says(WarningCode::kLeftOut, Naming("2 of", "\"epoch\""))));
  EXPECT_THAT(report->warnings,
              Contains(Says(WarningCode::kFilesNotRead, HasSubstr("left out: __7_0.distcp"))));
  EXPECT_EQ(report->warnings.size(), 2);
}

TEST_F(DcpTest, RanksMayHaveTheirOwnMetadata) {
  const DcpBytes all = made_;
  made_.tensors[0].chunks.pop_back();
  WriteMetadata("__0.metadata");
  made_ = all;
  made_.tensors.pop_back();
  made_.tensors[0].chunks.erase(made_.tensors[0].chunks.begin());
  WriteMetadata("__1.metadata");
  const auto report = Convert(Options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(Output(), HasSubstr(RowsOf('a', 2) + RowsOf('b', 2)));
  fs::remove_all(work_.path() / "out");
  made_.tensors[0].size = {5, 3};
  WriteMetadata("__1.metadata");
  const Status status = Converted();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(),
              Naming("__1.metadata", "\"w\"", "[5, 3]", "[4, 3]", "__0.metadata"));
}

TEST_F(DcpTest, TheMetadataOfAllRanksCounts) {
  WriteMetadata();
  work_.Write("in/__0.metadata", "of an older save");
  const auto report = Convert(Options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings,
              Contains(Says(WarningCode::kFilesNotRead, HasSubstr("left out: __0.metadata"))));
}

TEST_F(DcpTest, ReplicasAreComparedIfThatIsAsked) {
  WriteMetadata("__0.metadata");
  made_.tensors.erase(made_.tensors.begin());
  made_.tensors[0].chunks[0].path = "__1_0.distcp";
  made_.tensors[0].chunks[0].offset = length_;
  WriteMetadata("__1.metadata");
  const std::string half = DcpItemOf({2, 3}, RowsOf('b', 2));
  work_.Write("in/__1_0.distcp", half + DcpItemOf({2}, "cccccccc"));
  EXPECT_EQ(Converted().message(), "");
  fs::remove_all(work_.path() / "out");
  work_.Write("in/__1_0.distcp", half + DcpItemOf({2}, "ccccdccc"));
  ConvertOptions options = Options();
  options.checks.replicas = CheckChoice::Replicas::kAll;
  const Status status = Convert(options).status();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), HasSubstr("\"v\""));
}

TEST_F(DcpTest, TwoChunksOfATensorMayBeInAFile) {
  const std::string half = DcpItemOf({2, 3}, RowsOf('a', 2));
  work_.Write("in/__0_0.distcp", DcpItemOf({2, 3}, RowsOf('b', 2)) + half);
  made_.tensors.pop_back();
  made_.tensors[0].chunks[0].offset = length_;
  made_.tensors[0].chunks[1].path = "__0_0.distcp";
  WriteMetadata();
  ASSERT_EQ(Converted().message(), "");
  EXPECT_THAT(Output(), HasSubstr(RowsOf('a', 2) + RowsOf('b', 2)));
  fs::remove_all(work_.path() / "out");
  ConvertOptions options = Options();
  options.source.name_map.names = {{"w", "x"}};
  const auto report = Convert(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
}

// A chunk without elements may have the offset of another one.
TEST_F(DcpTest, ChunksWithoutElementsNeedNoItem) {
  made_.tensors[0].chunks.push_back({.offsets = {4, 0}, .sizes = {0, 3}, .is_stored = false});
  made_.tensors[0].chunks.push_back({.offsets = {2, 0}, .sizes = {0, 3}, .is_stored = false});
  made_.tensors.push_back({.name = "none",
                           .size = {0, 3},
                           .chunks = {{.offsets = {0, 0}, .sizes = {0, 3}, .is_stored = false}}});
  WriteMetadata();
  const auto report = Convert(Options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->parameters, 3);
}

TEST_F(DcpTest, AnotherCheckpointBesideIsRefused) {
  WriteMetadata();
  work_.Write("in/rank_0/net.ckpt", "");
  const Status status = Converted();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), Naming(".metadata", "rank_0"));
}

TEST_F(DcpTest, MegatronHasFilesBesideIt) {
  WriteMetadata();
  work_.Write("in/metadata.json", R"({"sharded_backend": "torch_dist"})");
  work_.Write("in/common.pt", TorchFile(PickleOf(PickledDict({})), {}));
  EXPECT_EQ(Converted().message(), "");
}

TEST_F(DcpTest, ARankWithoutItsMetadataIsNamed) {
  WriteMetadata("__0.metadata");
  WriteMetadata("__3.metadata");
  const Status status = Converted();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), Naming("ranks 1-2", "missing"));
}

// Other programs have hidden files of that name, too.
TEST_F(DcpTest, AFileOfThatNameAloneIsNoCheckpoint) {
  work_.Write("hub/.metadata", "{}");
  fs::copy_file(fs::path(RESHARD_TESTS_DIR) / "golden/data/sharded/hf_sharded/case_001/input" /
                    "shard-00001-model-00001-of-00001.safetensors",
                work_.path() / "hub" / "model.safetensors");
  ConvertOptions options = Options();
  options.source.path = work_.path() / "hub";
  options.checks.partial = true;
  EXPECT_TRUE(Convert(options).ok()) << Convert(options).status().message();
}

// Megatron's folder of all checkpoints names the latest.
TEST_F(DcpTest, TheLatestIterationOfMegatronIsRead) {
  WriteMetadata();
  fs::create_directory(work_.path() / "all");
  fs::rename(work_.path() / "in", work_.path() / "all" / "iter_0000012");
  work_.Write("all/latest_checkpointed_iteration.txt", "12");
  ConvertOptions options = Options();
  options.source.path = work_.path() / "all";
  const auto report = Convert(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->parameters, 2);
}

TEST_F(DcpTest, TheReleaseOfMegatronIsRead) {
  WriteMetadata();
  fs::create_directory(work_.path() / "all");
  fs::rename(work_.path() / "in", work_.path() / "all" / "release");
  work_.Write("all/latest_checkpointed_iteration.txt", "release\n");
  ConvertOptions options = Options();
  options.source.path = work_.path() / "all";
  const auto report = Convert(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
}

// Three programs write a file of that name, and name their folders each in its own way.
TEST_F(DcpTest, TheLatestIterationMayNotBeThere) {
  work_.Write("all/latest_checkpointed_iteration.txt", "12");
  const auto status_of = [this] {
    ConvertOptions options = Options();
    options.source.path = work_.path() / "all";
    const Status status = Convert(options).status();
    EXPECT_FALSE(fs::exists(work_.path() / "out"));
    return status;
  };
  Status status = status_of();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(),
              Naming("iteration_00000012", "iter_0000012", "global_step_12", "found none"));
  fs::create_directory(work_.path() / "all" / "iter_0000010");
  status = status_of();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), Naming("found iter_0000010"));
  fs::create_directory(work_.path() / "all" / "global_step_12");
  status = status_of();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), Naming("verl", "global_step_12/actor"));
  work_.Write("all/iter_0000012/mp_rank_00/model_optim_rng.pt", "");
  status = status_of();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(),
              Naming("Megatron", "iter_0000012/mp_rank_00/model_optim_rng.pt", "torch_dist"));
}

TEST_F(DcpTest, OneFileIsNoSource) {
  WriteMetadata();
  for (const std::string name : {".metadata", "__0_0.distcp"}) {
    ConvertOptions options = Options();
    options.source.path = work_.path() / "in" / name;
    const Status status = Convert(options).status();
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_THAT(status.message(), Naming(name, "give the folder"));
  }
}

TEST_F(DcpTest, TheDigestIsThatOfTheOutput) {
  WriteMetadata();
  ASSERT_EQ(Converted().message(), "");
  DiffOptions diff;
  diff.source.path = work_.path() / "in";
  diff.b.path = work_.path() / "out";
  const auto report = Diff(diff);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(report->equal());
}

}  // namespace
}  // namespace reshard::dcp_malformed_test
