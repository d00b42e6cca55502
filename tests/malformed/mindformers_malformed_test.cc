// Checkpoints of MindFormers 2.0 with one thing wrong: a row for each rule of
// format/mindformers_metadata/SPEC.md. Whatever is wrong is found before a byte is written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/convert.h"
#include "tests/support/says.h"
#include "tests/support/temporary_folder.h"

namespace reshard::mindformers_malformed_test {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;

// "w" of [4, 3] in two slices of two rows, each of two ranks.
constexpr char kMetadata[] =
    R"x({"state_dict_metadata":{"w":{"properties":{"dtype":"Float32","replica_id":[0,0,1,1]},)x"
    R"x("global_shape":[4,3],"axis_fragmentations":[2,1],"layout":{"device_matrix":[2,2],)x"
    R"x("tensor_map":[0,-1],"interleaved_parallel":false,"alias_name":["dp","tp"],)x"
    R"x("rank_list":[0,1,2,3]},"chunk":[{"global_offset":[0],"local_shape":[2,3]},)x"
    R"x({"global_offset":[1],"local_shape":[2,3]}]}},"storage_data":{)x"
    R"x("('w', (0,))":[{"file_name":"model-0000000-0000004.safetensors","storage_rank":0,)x"
    R"x("rank_group":[0,2]},{"file_name":"model-0000002-0000004.safetensors","storage_rank":2,)x"
    R"x("rank_group":[0,2]}],)x"
    R"x("('w', (1,))":[{"file_name":"model-0000001-0000004.safetensors","storage_rank":1,)x"
    R"x("rank_group":[1,3]},{"file_name":"model-0000003-0000004.safetensors","storage_rank":3,)x"
    R"x("rank_group":[1,3]}]}})x";

std::string FileOf(const std::string& entries, const std::string& content) {
  const std::string header = R"x({"__metadata__":{"format":"ms"},)x" + entries + "}";
  std::string bytes;
  for (size_t i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return bytes + header + content;
}

std::string SliceFile(int rank) {
  return FileOf(R"x("w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})x",
                std::string(24, static_cast<char>('a' + rank % 2)));
}

std::string NameOf(int rank) {
  return "model-000000" + std::to_string(rank) + "-0000004.safetensors";
}

class MindFormersTest : public testing::Test {
 protected:
  void Write(const std::string& metadata = kMetadata) {
    work_.Write("in/latest_checkpointed_iteration.txt", "12\n");
    work_.Write(In("metadata.json"), metadata);
    for (int rank = 0; rank < 4; ++rank) work_.Write(In(NameOf(rank)), SliceFile(rank));
  }
  static std::string In(const std::string& name) { return "in/iteration_00000012/" + name; }

  ConvertOptions Options() {
    ConvertOptions options;
    options.source.path = work_.path() / "in";
    options.target.folder = work_.path() / "out";
    options.target.format = TargetFormat::kHuggingFace;
    return options;
  }
  Status Converted() { return Convert(Options()).status(); }

  const TemporaryFolder work_{MemoryFolder()};
};

TEST_F(MindFormersTest, IsReadIfNothingIsWrong) {
  Write();
  const auto report = Convert(Options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings, testing::IsEmpty());
  const std::string made = ReadFile(work_.path() / "out" / "model.safetensors");
  EXPECT_TRUE(made.ends_with(std::string(24, 'a') + std::string(24, 'b')));
  // The folder of the checkpoint itself is a source, too.
  fs::remove_all(work_.path() / "out");
  ConvertOptions options = Options();
  options.source.path = work_.path() / "in" / "iteration_00000012";
  EXPECT_EQ(Convert(options).status().message(), "");
}

struct Row {
  std::string name;
  std::string from;
  std::string to;
  StatusCode code = StatusCode::kCorrupt;
  std::vector<std::string> words = {};
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class MetadataTest : public MindFormersTest, public testing::WithParamInterface<Row> {};

TEST_P(MetadataTest, IsRefused) {
  std::string metadata = kMetadata;
  const size_t place = metadata.find(GetParam().from);
  ASSERT_NE(place, std::string::npos);
  Write(metadata.replace(place, GetParam().from.size(), GetParam().to));
  const Status status = Converted();
  EXPECT_EQ(status.code(), GetParam().code) << status.message();
  EXPECT_THAT(status.message(), HasSubstr("metadata.json"));
  for (const std::string& word : GetParam().words) {
    EXPECT_THAT(status.message(), HasSubstr(word));
  }
  EXPECT_FALSE(fs::exists(work_.path() / "out"));
}

const std::vector<Row> kRows = {
    {"NotJson", "{\"state", "{{\"state"},
    {"Truncated", "}]}}", "}]", StatusCode::kCorrupt},
    {"AList", kMetadata, "[]"},
    {"NoTensors", R"x("storage_data":)x", R"x("x":)x", StatusCode::kCorrupt, {"storage_data"}},
    {"TensorTwice", R"x({"w":{)x", R"x({"w":null,"w":{)x"},
    {"MemberTwice",
     R"x("global_shape":[4,3],)x",
     R"x("global_shape":[4,3],"global_shape":[4,3],)x",
     StatusCode::kCorrupt,
     {"\"w\"", "global_shape"}},
    {"KeyTwice",
     R"x("storage_data":{)x",
     R"x("storage_data":{"('w', (0,))":[],)x",
     StatusCode::kCorrupt,
     {"occurs twice"}},
    {"Fraction", "[4,3]", "[4.0,3]", StatusCode::kCorrupt, {"\"w\"", "global_shape", "4.0"}},
    {"Negative", "[4,3]", "[-4,3]", StatusCode::kCorrupt, {"\"w\"", "-4"}},
    {"NotANumber", "[4,3]", "[NaN,3]"},
    {"LoneSurrogate", R"x("w":{"prop)x", R"x("\ud800":{"prop)x"},
    {"TooLarge",
     "[4,3]",
     "[4611686018427387904,4611686018427387904]",
     StatusCode::kCorrupt,
     {"\"w\"", "too many bytes"}},
    {"NoDType", R"x("dtype":"Float32",)x", "", StatusCode::kCorrupt, {"\"w\"", "\"dtype\""}},
    {"UnknownDType", "Float32", "Float7", StatusCode::kUnsupported, {"\"w\"", "Float7"}},
    {"NoShape", R"x("global_shape":[4,3],)x", "", StatusCode::kCorrupt, {"\"w\"", "global_shape"}},
    {"OtherShape", "[4,3]", "[5,3]", StatusCode::kCorrupt, {"\"w\"", "[5, 3]", "[2, 3]", "[2, 1]"}},
    {"OtherDimensions", "[4,3]", "[4,3,1]", StatusCode::kCorrupt, {"\"w\"", "[4, 3, 1]"}},
    {"NoFragments", "[2,1]", "[0,1]", StatusCode::kCorrupt, {"\"w\"", "[0, 1]"}},
    {"FragmentsOfAnotherLayout",
     "[2,1]",
     "[1,2]",
     StatusCode::kCorrupt,
     {"\"w\"", "[1, 2]", "[2, 1] by the layout"}},
    {"LayoutIsNull",
     R"x({"device_matrix":[2,2],"tensor_map":[0,-1],"interleaved_parallel":false,)x"
     R"x("alias_name":["dp","tp"],"rank_list":[0,1,2,3]})x",
     "null",
     StatusCode::kCorrupt,
     {"\"w\"", "no layout"}},
    {"Interleaved", "false", "true", StatusCode::kUnsupported, {"\"w\"", "interleaved_parallel"}},
    {"FewerRanks", "[0,1,2,3]", "[0,1,2]", StatusCode::kCorrupt, {"\"w\"", "3 ranks", "has 4"}},
    {"RankTwice", "[0,1,2,3]", "[0,1,2,2]", StatusCode::kCorrupt, {"\"w\"", "rank 2 twice"}},
    {"MatrixOfZero",
     R"x("device_matrix":[2,2])x",
     R"x("device_matrix":[0,2])x",
     StatusCode::kCorrupt,
     {"\"w\"", "device_matrix"}},
    {"AxisBeyond", "[0,-1]", "[2,-1]", StatusCode::kCorrupt, {"\"w\"", "tensor_map has 2"}},
    {"AxisTwice", "[0,-1]", "[0,0]", StatusCode::kCorrupt, {"\"w\"", "axis 0 twice"}},
    {"RanksOfOtherSlices",
     "[0,-1]",
     "[1,-1]",
     StatusCode::kCorrupt,
     {"\"w\"", "slice 0 of rank 2", "slice 1"}},
    {"UnknownRank",
     R"x("storage_rank":0,"rank_group":[0,2]},{"file_name":"model-0000002-0000004.safetensors",)x"
     R"x("storage_rank":2)x",
     R"x("storage_rank":7,"rank_group":[0,2]},{"file_name":"model-0000002-0000004.safetensors",)x"
     R"x("storage_rank":8)x",
     StatusCode::kCorrupt,
     {"\"w\"", "slice 0 of rank 7", "rank_list lacks"}},
    {"AFileOfTwoRanks",
     "model-0000001",
     "model-0000000",
     StatusCode::kCorrupt,
     {"('w', (1,))", "model-0000000-0000004.safetensors", "storage_rank 1, but 0"}},
    {"AFileOfTwoSlices",
     R"x(model-0000002-0000004.safetensors","storage_rank":2,"rank_group":[0,2]}],)x"
     R"x("('w', (1,))":[{"file_name":"model-0000001-0000004.safetensors","storage_rank":1,)x"
     R"x("rank_group":[1,3]},)x",
     R"x(model-0000007-0000008.safetensors","storage_rank":7}],)x"
     R"x("('w', (1,))":[{"file_name":"model-0000007-0000008.safetensors","storage_rank":7},)x",
     StatusCode::kCorrupt,
     {"\"w\"", "slices 0 and 1 in one file", "model-0000007-0000008.safetensors"}},
    {"SliceBeyond",
     R"x("global_offset":[1])x",
     R"x("global_offset":[2])x",
     StatusCode::kCorrupt,
     {"\"w\"", "slice 2 is beyond axis_fragmentations [2, 1]"}},
    {"SliceTwice",
     R"x("global_offset":[1])x",
     R"x("global_offset":[0])x",
     StatusCode::kCorrupt,
     {"\"w\"", "global_offset"}},
    {"SliceOfTwoNumbers",
     R"x("global_offset":[1])x",
     R"x("global_offset":[1,0])x",
     StatusCode::kCorrupt,
     {"\"w\"", "[1, 0]"}},
    {"SlicesDiffer",
     R"x("local_shape":[2,3]}])x",
     R"x("local_shape":[2,4]}])x",
     StatusCode::kCorrupt,
     {"\"w\"", "[2, 4]"}},
    {"NoPlace",
     R"x("('w', (1,))")x",
     R"x("('v', (1,))")x",
     StatusCode::kCorrupt,
     {"\"w\"", "no file for slice 1", "('w', (1,))"}},
    {"PlaceOfNoSlice",
     R"x("storage_data":{)x",
     R"x("storage_data":{"('v', (0,))":[],)x",
     StatusCode::kCorrupt,
     {"('v', (0,))"}},
    {"Absolute",
     "model-0000000",
     "/model-0000000",
     StatusCode::kCorrupt,
     {"/model-0000000", "not the name of a safetensors file"}},
    {"Outside", "model-0000000", "../model-0000000", StatusCode::kCorrupt, {"../model-0000000"}},
    {"OtherExtension",
     "model-0000000-0000004.safetensors",
     "model",
     StatusCode::kCorrupt,
     {"\"model\""}},
    {"NoFileName",
     R"x("file_name":"model-0000000-0000004.safetensors",)x",
     "",
     StatusCode::kCorrupt,
     {"file_name"}},
    {"AChunkIsMissing",
     R"x(,{"global_offset":[1],"local_shape":[2,3]})x",
     "",
     StatusCode::kCorrupt,
     {"('w', (1,))", "no chunk"}},
};

INSTANTIATE_TEST_SUITE_P(Rows, MetadataTest, testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

TEST_F(MindFormersTest, SlicesThatNoFileHas) {
  std::string metadata = kMetadata;
  const auto remove = [&](const std::string& text) {
    const size_t place = metadata.find(text);
    ASSERT_NE(place, std::string::npos);
    metadata.erase(place, text.size());
  };
  remove(R"x(,{"global_offset":[1],"local_shape":[2,3]})x");
  const size_t place = metadata.find(R"x(,"('w', (1,))")x");
  metadata = metadata.substr(0, place) + "}}";
  Write(metadata);
  const Status status = Converted();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), HasSubstr("\"w\": 6 of 12 elements are in no file"));
  EXPECT_THAT(status.message(), HasSubstr("box [2:4, 0:3]"));
}

TEST_F(MindFormersTest, OtherStagesMayHaveASliceToo) {
  std::string metadata = kMetadata;
  const std::string rank = R"x("storage_rank":2)x";
  metadata.replace(metadata.find(rank), rank.size(), R"x("storage_rank":7)x");
  Write(metadata);
  EXPECT_EQ(Converted().message(), "");
}

TEST_F(MindFormersTest, TheGroupOfAPlaceMayBeAbsent) {
  std::string metadata = kMetadata;
  size_t removed = 0;
  for (const std::string group : {R"x(,"rank_group":[0,2])x", R"x(,"rank_group":[1,3])x"}) {
    for (size_t at = metadata.find(group); at != std::string::npos; at = metadata.find(group)) {
      metadata.erase(at, group.size());
      ++removed;
    }
  }
  ASSERT_EQ(removed, 4);
  Write(metadata);
  EXPECT_EQ(Converted().message(), "");
}

TEST_F(MindFormersTest, FullTensorsBesideTheLatestIterationAreTheSource) {
  Write();
  work_.Write("in/model.safetensors",
              FileOf(R"x("v":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})x", "12345678"));
  const auto report = Convert(Options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(ReadFile(work_.path() / "out" / "model.safetensors").ends_with("12345678"));
}

TEST_F(MindFormersTest, AFileThatOthersReplaceMayBeMissing) {
  Write();
  fs::remove(work_.path() / In(NameOf(0)));
  const auto report = Convert(Options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings, Contains(Says(WarningCode::kMissingRanks, HasSubstr(NameOf(0)))));
  fs::remove_all(work_.path() / "out");
  fs::remove(work_.path() / In(NameOf(2)));
  const Status status = Converted();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), Naming(NameOf(0), NameOf(2), "box [0:2, 0:3] of \"w\""));
  ConvertOptions options = Options();
  options.selection.exclude = {"w"};
  EXPECT_EQ(Convert(options).status().code(), StatusCode::kMismatch);  // no parameter is left
}

TEST_F(MindFormersTest, FilesThatAreNotWhatIsStated) {
  for (const std::string entry : {R"x("w":{"dtype":"I32","shape":[2,3],"data_offsets":[0,24]})x",
                                  R"x("w":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]})x",
                                  R"x("v":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})x"}) {
    Write();
    work_.Write(In(NameOf(3)), FileOf(entry, std::string(24, 'b')));
    const Status status = Converted();
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << entry;
    EXPECT_THAT(status.message(), Naming(NameOf(3), "\"w\"", "metadata.json"));
  }
}

TEST_F(MindFormersTest, WhatIsNotStatedIsLeftOutWithAWarning) {
  Write();
  work_.Write(In(NameOf(3)), FileOf(R"x("w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)x"
                                    R"x("v":{"dtype":"F32","shape":[1],"data_offsets":[24,28]})x",
                                    std::string(28, 'b')));
  work_.Write(In("other.safetensors"), SliceFile(0));
  const auto report = Convert(Options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings, Contains(Says(WarningCode::kLeftOut, HasSubstr("\"v\""))));
  EXPECT_THAT(report->warnings,
              Contains(Says(WarningCode::kFilesNotRead, HasSubstr("other.safetensors"))));
}

TEST_F(MindFormersTest, ReplicasAreComparedIfThatIsAsked) {
  Write();
  ContentOptions digest;
  digest.source.path = work_.path() / "in";
  auto digests = DigestCheckpoint(digest);
  ASSERT_TRUE(digests.ok()) << digests.status().message();
  EXPECT_EQ(digests->replicas->shards, 4);
  EXPECT_EQ(digests->replicas->differing, 0);
  work_.Write(In(NameOf(3)), FileOf(R"x("w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})x",
                                    std::string(20, 'b') + "c" + std::string(3, 'b')));
  digests = DigestCheckpoint(digest);
  ASSERT_TRUE(digests.ok()) << digests.status().message();
  ASSERT_EQ(digests->replicas->differences.size(), 1);
  const ReplicaReport::Difference& difference = digests->replicas->differences.front();
  EXPECT_EQ(difference.parameter, "w");
  ASSERT_EQ(difference.pairs.size(), 1);
  EXPECT_EQ(difference.pairs.front().rank, 3);
  EXPECT_EQ(difference.pairs.front().reference, 1);
  EXPECT_EQ(difference.pairs.front().offset, 20);
  ConvertOptions options = Options();
  options.checks.replicas = CheckChoice::Replicas::kAll;
  const Status status = Convert(options).status();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), HasSubstr("\"w\""));
}

TEST_F(MindFormersTest, AFileByItselfIsOneOfSeveral) {
  Write();
  ConvertOptions options = Options();
  options.source.path = work_.path() / In(NameOf(1));
  const Status status = Convert(options).status();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), Naming(NameOf(1), "one of 4 files", "their folder", "`partial`"));
}

constexpr char kStrategy[] = R"({"current_stage": 0, "parallel_strategy_item": {},
    "parallel_layout_item": {"w": {"dev_matrix": [2], "tensor_map": [0, -1],
    "opt_weight_shard_step": 0, "opt_weight_shard_size": 0}}})";

TEST_F(MindFormersTest, AStrategyIsNotTaken) {
  Write();
  ConvertOptions options = Options();
  options.source.strategy = work_.Write("s.json", kStrategy);
  options.target.format = TargetFormat::kCkpt;
  const Status status = Convert(options).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), Naming("MindFormers 2.0", "leave out the source strategy"));
}

TEST_F(MindFormersTest, TheOutputFolderOfARunNeedsNoStrategy) {
  Write();
  fs::create_directory(work_.path() / "output");
  fs::rename(work_.path() / "in", work_.path() / "output" / "checkpoint");
  work_.Write("output/strategy/s.json", kStrategy);
  ConvertOptions options = Options();
  options.source.path = work_.path() / "output";
  const auto report = Convert(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->notes, Contains(HasSubstr("its checkpoints are in ")));
}

TEST_F(MindFormersTest, TheLatestIterationHasToBeThere) {
  Write();
  for (const std::string content : {"", "x", "-1", "1 2", "../12"}) {
    work_.Write("in/latest_checkpointed_iteration.txt", content);
    EXPECT_EQ(Converted().code(), StatusCode::kCorrupt) << content;
  }
  work_.Write("in/latest_checkpointed_iteration.txt", "13");
  const Status status = Converted();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("iteration_00000013"));
}

TEST_F(MindFormersTest, RankFoldersBesideAreAnotherCheckpoint) {
  Write();
  work_.Write("in/rank_0/net.ckpt", "");
  const Status status = Converted();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), Naming("rank_0", "latest_checkpointed_iteration.txt"));
}

// A single device writes no metadata.json.
class SingleDeviceTest : public MindFormersTest {
 protected:
  void WriteWhole(const std::string& name, const std::string& tensor) {
    work_.Write("in/" + name, FileOf("\"" + tensor + R"x(":{"dtype":"F32","shape":[2],)x" +
                                         R"x("data_offsets":[0,8]})x",
                                     std::string(8, 'a')));
  }
};

TEST_F(SingleDeviceTest, HasWholeTensors) {
  WriteWhole("model-0000000-0000001.safetensors", "w");
  WriteWhole("opt-0000000-0000001.safetensors", "adam_m.w");
  const auto report = Convert(Options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->parameters, 2);
  EXPECT_TRUE(ReadFile(work_.path() / "out" / "model.safetensors").ends_with(std::string(16, 'a')));
}

TEST_F(SingleDeviceTest, OtherCheckpointsAreLeftOutWithAWarning) {
  WriteWhole("model-0000000-0000001.safetensors", "w");
  WriteWhole("opt-0000000-0000001.safetensors", "adam_m.w");
  WriteWhole("lora.safetensors", "v");
  const auto report = Convert(Options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->parameters, 2);
  EXPECT_THAT(report->warnings,
              Contains(Says(WarningCode::kFilesNotRead, HasSubstr("left out: lora.safetensors"))));
}

TEST_F(SingleDeviceTest, ANameInTwoFilesIsRefused) {
  WriteWhole("model-0000000-0000001.safetensors", "w");
  WriteWhole("opt-0000000-0000001.safetensors", "w");
  EXPECT_EQ(Converted().code(), StatusCode::kMismatch);
  EXPECT_THAT(Converted().message(),
              Naming("opt-0000000-0000001", "model-0000000-0000001", "\"w\""));
}

TEST_F(SingleDeviceTest, FilesOfSeveralRanksNeedTheMetadata) {
  WriteWhole("model-0000000-0000002.safetensors", "w");
  WriteWhole("model-0000001-0000002.safetensors", "v");
  EXPECT_EQ(Converted().code(), StatusCode::kMismatch);
  EXPECT_THAT(Converted().message(), HasSubstr("metadata.json is missing"));
}

}  // namespace
}  // namespace reshard::mindformers_malformed_test
