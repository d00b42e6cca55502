// Slices and segments merged into one file: what is joined how, and what is refused.

#include "reshard/merge.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/strategy.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_tensor.h"

namespace reshard::merge_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Returns elements [begin, end) of the first dimension.
TestTensor Rows(const TestTensor& tensor, int64_t begin, int64_t end) {
  TestTensor rows = tensor;
  const size_t bytes = tensor.content.size() / static_cast<size_t>(tensor.shape[0]);
  rows.shape[0] = end - begin;
  rows.content = tensor.content.substr(static_cast<size_t>(begin) * bytes,
                                       static_cast<size_t>(end - begin) * bytes);
  return rows;
}

class MergeTest : public testing::Test {
 protected:
  MergeTest() { options_.output = folder_.path() / "out.ckpt"; }

  void AddFile(const std::vector<TestTensor>& tensors) { AddFile(EncodeCheckpoint(tensors)); }
  void AddFile(std::string_view bytes) {
    options_.files.push_back(
        folder_.Write("rank_" + std::to_string(options_.files.size()) + ".ckpt", bytes));
  }
  void SetStrategy(const std::vector<NamedLayout>& layouts) {
    options_.source.strategy = folder_.Write("strategy.ckpt", ProtobufStrategy(0, layouts));
  }

  // Merges; returns the tensors written.
  std::vector<TestTensor> Merged() {
    const auto report = Merge(options_);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? ReadTensors(options_.output) : std::vector<TestTensor>();
  }
  // Expects a failure that leaves nothing behind; returns the message.
  std::string Refused(StatusCode code) {
    const auto before = NamesIn(folder_.path());
    const auto report = Merge(options_);
    EXPECT_EQ(report.status().code(), code) << report.status().message();
    EXPECT_EQ(NamesIn(folder_.path()), before);
    return report.status().message();
  }
  static std::vector<std::string> NamesIn(const std::filesystem::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const TestTensor w_ = MakeTensor("w", DType::kFloat16, {9, 5});
  const TestTensor step_ = MakeTensor("step", DType::kInt64, {});
  TemporaryFolder folder_;
  MergeOptions options_;
};

TEST_F(MergeTest, PatternsChooseWhatIsMerged) {
  AddFile({Rows(w_, 0, 2), step_});
  AddFile({Rows(w_, 2, 9), step_});
  options_.selection.include = {"*"};
  options_.selection.exclude = {"st*"};
  EXPECT_THAT(Merged(), ElementsAre(w_));
  std::filesystem::remove(options_.output);
  options_.selection.include = {"x"};
  EXPECT_THAT(Refused(StatusCode::kInvalidArgument), Naming("`include`", "`exclude`", "all 2 "));
  options_.segments = true;
  options_.selection.include = {"step"};
  options_.selection.exclude = {};
  EXPECT_THAT(Merged(), ElementsAre(step_));
}

TEST_F(MergeTest, ALimitBelowTheLeastIsRefused) {
  AddFile({w_});
  options_.memory_limit = 1 << 20;
  EXPECT_THAT(Refused(StatusCode::kInvalidArgument), Naming("1M"));
}

TEST_F(MergeTest, SlicesAreConcatenatedInTheOrderOfTheFiles) {
  const TestTensor v = MakeTensor("v", DType::kInt8, {4});
  AddFile({Rows(w_, 0, 2), step_, Rows(v, 0, 1)});
  AddFile({step_, Rows(w_, 2, 2), Rows(v, 1, 4)});
  AddFile({Rows(w_, 2, 9), Rows(v, 4, 4), step_});
  for (const int jobs : {1, 2, 8}) {
    options_.run.jobs = jobs;
    EXPECT_THAT(Merged(), ElementsAre(w_, step_, v));
    options_.force = true;
  }
}

TEST_F(MergeTest, ANoteAndAMapAreTakenOnce) {
  const std::string note = TensorValue("note", "str", {0}, std::string("n\0\0\0", 4));
  const std::string map =
      MapValue("map", {TensorMessage("int32", {1}, "1234"), TensorMessage("float32", {1}, "5678"),
                       TensorMessage("int32", {1}, "9012")});
  AddFile(note + map);
  AddFile(note + map);
  const auto report = Merge(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(ReadFile(options_.output), note + map);
  EXPECT_EQ(report->bytes_compared, 2 * (4 + map.size()));
}

TEST_F(MergeTest, TheOptimizersCopiesAreCutAsTheirParameter) {
  // Columns over two ranks, each part on two of them.
  SetStrategy({{"w", MakeLayout({2, 2}, {{-1, 0}})}});
  TestTensor full = MakeTensor("w", DType::kInt16, {2, 4});
  TestTensor moments = MakeTensor("moments.w", DType::kInt16, {2, 4});
  const TestTensor other = MakeTensor("other", DType::kInt16, {3});
  const auto columns = [](const TestTensor& tensor, size_t part) {
    TestTensor slice = tensor;
    slice.shape[1] = 2;
    slice.content = tensor.content.substr(part * 4, 4) + tensor.content.substr(8 + part * 4, 4);
    return slice;
  };
  for (size_t rank = 0; rank < 4; ++rank) {
    AddFile({columns(full, rank % 2), columns(moments, rank % 2), other});
  }
  EXPECT_THAT(Merged(), ElementsAre(full, moments, other));
  // The same of a strategy in memory.
  std::filesystem::remove(options_.output);
  const auto strategy = ReadStrategy(options_.source.strategy.path());
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  options_.source.strategy = *strategy;
  EXPECT_THAT(Merged(), ElementsAre(full, moments, other));
}

// Slices that are equal are not told from full tensors by their bytes.
TEST_F(MergeTest, AStrategyOfOtherNamesIsRefused) {
  SetStrategy({{"net.norm.w", MakeLayout({2}, {{0}})}});
  const TestTensor norm = MakeTensor("model.norm.w", DType::kFloat32, {4});
  AddFile({norm});
  AddFile({norm});
  EXPECT_THAT(Refused(StatusCode::kMismatch),
              Naming("strategy.ckpt: ", "\"model\"", "\"net\"", "`unmatched=copy`", "`exclude`"));
  options_.selection.unmatched = Selection::Unmatched::kCopy;
  EXPECT_THAT(Merged(), ElementsAre(norm));
}

TEST_F(MergeTest, UnevenRowsLieBesideOneAnother) {
  // Two parts of the rows, two of the columns: sizes for each of the four, row-major.
  ParameterLayout layout = MakeLayout({2, 2}, {{1, 0}});
  layout.param_split_shape = {{1, 1, 3, 3}};
  SetStrategy({{"w", layout}});
  const TestTensor full = MakeTensor("w", DType::kUInt8, {4, 2});
  for (const size_t rank : {0U, 1U, 2U, 3U}) {
    TestTensor slice{"w", DType::kUInt8, {rank < 2 ? 1 : 3, 1}, ""};
    for (size_t row = rank < 2 ? 0 : 1; row < (rank < 2 ? 1U : 4U); ++row) {
      slice.content += full.content[row * 2 + rank % 2];
    }
    AddFile({slice});
  }
  EXPECT_THAT(Merged(), ElementsAre(full));
}

TEST_F(MergeTest, ReplicasThatDifferAreRefused) {
  SetStrategy({{"w", MakeLayout({2}, {{-1, -1}})}});
  AddFile({w_});
  TestTensor other = w_;
  other.content[7] = static_cast<char>(other.content[7] ^ 1);
  AddFile({other});
  EXPECT_THAT(Refused(StatusCode::kMismatch),
              Naming("\"w\"", "byte 7 ", "rank_0.ckpt", "rank_1.ckpt"));
}

TEST_F(MergeTest, WhatDoesNotFitIsRefused) {
  struct Row {
    const char* name;
    std::vector<TestTensor> second;
    std::vector<NamedLayout> layouts;
    const char* message;
  };
  ParameterLayout uneven = MakeLayout({2}, {{0, -1}});
  uneven.param_split_shape = {{9, 8}};
  ParameterLayout too_many = uneven;
  too_many.param_split_shape = {{3, 3, 3}};
  ParameterLayout beside = MakeLayout({2}, {{-1, 0}});
  beside.param_split_shape = {{9, 8}};
  ParameterLayout field = MakeLayout({2}, {{0, -1}});
  field.field = 2;
  TestTensor other_step = step_;
  other_step.content[0] = static_cast<char>(other_step.content[0] ^ 1);
  const Row rows[] = {
      {"dtype", {MakeTensor("w", DType::kFloat32, {9, 5}), step_}, {}, "found Float32 [9, 5]"},
      {"dims", {MakeTensor("w", DType::kFloat16, {9, 5, 1}), step_}, {}, "found Float16 [9, 5, 1]"},
      {"columns",
       {MakeTensor("w", DType::kFloat16, {9, 4}), step_},
       {},
       "slice 1 has the shape [9, 4]"},
      {"missing", {step_}, {}, "is in 1 of the 2 files, not in"},
      {"more",
       {w_, step_, MakeTensor("x", DType::kInt8, {1})},
       {},
       "is in 1 of the 2 files, not in"},
      {"scalar", {w_, other_step}, {}, "\"step\" from byte 0 on"},
      {"grid",
       {Rows(w_, 0, 8), step_},
       {{"w", MakeLayout({2}, {{0, -1}})}},
       "slice 1 has the shape"},
      {"devices",
       {w_, step_},
       {{"w", MakeLayout({4}, {{0, -1}})}},
       "is for 4 devices, but there are 2 files"},
      {"no layout",
       {Rows(w_, 0, 8), step_},
       {{"v", MakeLayout({2}, {{0}})}},
       "found Float16 [8, 5]"},
      {"rows", {w_, step_}, {{"w", uneven}}, "slice 1 has the shape [9, 5], but 8 rows"},
      {"sizes", {w_, step_}, {{"w", too_many}}, "has 3 sizes, but the tensor is cut into 2 parts"},
      {"beside", {w_, step_}, {{"w", beside}}, "gives 8 rows to part 1, but 9"},
      {"field", {w_, step_}, {{"w", field}}, "by the layout's field"},
      {"map entries", {w_, step_}, {{"w", MakeLayout({2}, {{0}})}}, "w"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    options_.files.clear();
    options_.source.strategy = {};
    AddFile({w_, step_});
    AddFile(row.second);
    if (!row.layouts.empty()) SetStrategy(row.layouts);
    EXPECT_THAT(Refused(StatusCode::kMismatch), HasSubstr(row.message));
  }
}

TEST_F(MergeTest, AStrategyOfSeveralStagesIsRefused) {
  AddFile({w_});
  AddFile({w_});
  const NamedLayout first = {"0-w", MakeLayout({2}, {{0, -1}})};
  const NamedLayout second = {"1-v", MakeLayout({2}, {{0, -1}})};
  SetStrategy({first, second});
  EXPECT_THAT(Refused(StatusCode::kMismatch), Naming("2 stages"));
}

TEST_F(MergeTest, FilesOutOfNaturalOrderAreWarnedOf) {
  for (const char* name : {"rank_1.ckpt", "rank_10.ckpt", "rank_2.ckpt"}) {
    options_.files.push_back(folder_.Write(name, EncodeCheckpoint({w_})));
  }
  const auto report = Merge(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings,
              ElementsAre(Says(WarningCode::kSourceOrder, Naming("rank_10.ckpt", "rank_2.ckpt;"))));
}

TEST_F(MergeTest, CallsThatMakeNoSenseAreRefused) {
  Refused(StatusCode::kInvalidArgument);
  AddFile({w_});
  options_.files.push_back(options_.files[0]);
  EXPECT_THAT(Refused(StatusCode::kInvalidArgument), Naming("rank_0.ckpt"));
  options_.files = {folder_.path()};
  EXPECT_THAT(Refused(StatusCode::kInvalidArgument), Naming(folder_.path()));
  options_.files = {options_.output};
  folder_.Write("out.ckpt", EncodeCheckpoint({w_}));
  options_.force = true;
  EXPECT_THAT(Refused(StatusCode::kInvalidArgument), Naming("out.ckpt"));
  options_.segments = true;
  options_.source.strategy = "s.ckpt";
  Refused(StatusCode::kInvalidArgument);
  options_.source.strategy = {};
  options_.files = {folder_.Write("empty/notes.txt", "")};
  options_.files[0] = folder_.path() / "empty";
  EXPECT_THAT(Refused(StatusCode::kNotFound), HasSubstr("has no *.ckpt files"));
  options_.run.jobs = -1;
  EXPECT_THAT(Refused(StatusCode::kInvalidArgument), HasSubstr("-1 jobs"));
  options_.run.jobs = 1;
  options_.selection.ranks = {0};  // of conversions by strategies
  EXPECT_THAT(Refused(StatusCode::kInvalidArgument), HasSubstr("`ranks` is no option of"));
}

TEST_F(MergeTest, AnOutputThatExistsIsReplacedOnlyByForce) {
  AddFile({w_});
  folder_.Write("out.ckpt", "old");
  EXPECT_THAT(Refused(StatusCode::kAlreadyExists), HasSubstr("`force`"));
  EXPECT_EQ(ReadFile(options_.output), "old");
  options_.force = true;
  EXPECT_THAT(Merged(), ElementsAre(w_));
}

TEST_F(MergeTest, AFileWithABrokenTrailerIsRefused) {
  AddFile(EncodeCheckpoint({w_}) + CrcTrailer(1));
  EXPECT_THAT(Refused(StatusCode::kCorrupt), HasSubstr("CRC"));
}

TEST_F(MergeTest, ARequestToStopLeavesNothing) {
  AddFile({w_});
  std::stop_source stop;
  stop.request_stop();
  options_.run.stop = stop.get_token();
  Refused(StatusCode::kCancelled);
}

TEST_F(MergeTest, ProgressEndsAtItsTotal) {
  AddFile({w_, step_});
  AddFile({w_, step_});
  Progress last;
  options_.run.progress = [&](const Progress& progress) { last = progress; };
  Merged();
  EXPECT_GT(last.total_bytes, 0U);
  EXPECT_EQ(last.done_bytes, last.total_bytes);
}

class MergeSegmentsTest : public MergeTest {
 protected:
  MergeSegmentsTest() { options_.segments = true; }
};

TEST_F(MergeSegmentsTest, AFoldersFilesCountInNaturalOrder) {
  const TestTensor a = MakeTensor("a", DType::kInt8, {3});
  const TestTensor b = MakeTensor("b", DType::kInt8, {4});
  folder_.Write("parts/net_part10.ckpt", EncodeCheckpoint({b, step_}));
  folder_.Write("parts/net_part2.ckpt", EncodeCheckpoint({a, step_}));
  folder_.Write("parts/.net_part1.ckpt", "hidden");
  folder_.Write("parts/net.txt", "other");
  options_.files = {folder_.path() / "parts"};
  EXPECT_THAT(Merged(), ElementsAre(a, step_, b));
}

TEST_F(MergeSegmentsTest, DuplicatesThatDifferAreRefused) {
  TestTensor other = w_;
  other.content.back() = static_cast<char>(other.content.back() ^ 1);
  AddFile({w_});
  AddFile({step_, other});
  EXPECT_THAT(Refused(StatusCode::kMismatch), HasSubstr("\"w\" from byte 89 on"));
  options_.files.resize(1);
  AddFile({Rows(w_, 0, 8)});
  EXPECT_THAT(Refused(StatusCode::kMismatch), HasSubstr("found Float16 [8, 5]"));
}

// A safetensors file of rows of one tensor "w", of two bytes each.
std::string SafetensorsRows(int rows, std::string_view content) {
  std::string header = R"({"w":{"dtype":"U8","shape":[)" + std::to_string(rows);
  header += R"(,2],"data_offsets":[0,)" + std::to_string(2 * rows);
  header += "]}}";
  header.resize(80, ' ');
  return std::string("\x50\0\0\0\0\0\0\0", 8) + header + std::string(content);
}

TEST_F(MergeTest, TheFileIsOfTheSourcesFormat) {
  options_.output = folder_.path() / "out.safetensors";
  AddFile(SafetensorsRows(1, "ab"));
  AddFile(SafetensorsRows(2, "cdef"));
  const auto report = Merge(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(
      ReadFile(options_.output).substr(8),
      R"({"__metadata__":{"format":"ms"},"w":{"dtype":"U8","shape":[3,2],"data_offsets":[0,6]}})"
      "  abcdef");
}

TEST_F(MergeTest, FilesAreOfOneFormat) {
  AddFile({{"w", DType::kUInt8, {1, 2}, "ab"}});
  AddFile(SafetensorsRows(1, "cd"));
  EXPECT_THAT(Refused(StatusCode::kMismatch),
              AllOf(HasSubstr("is a safetensors file, but"), HasSubstr("a ckpt file")));
}

TEST_F(MergeTest, SegmentsOfAFolderMayBeSafetensors) {
  options_.segments = true;
  folder_.Write("parts/0.safetensors", SafetensorsRows(1, "ab"));
  options_.files = {(folder_.path() / "parts").string()};
  const auto report = Merge(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->parameters, 1u);
}

}  // namespace
}  // namespace reshard::merge_test
