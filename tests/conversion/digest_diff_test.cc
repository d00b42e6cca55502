// Digests and differences of whole checkpoints, with layouts and entries of all kinds.

#include <gmock/gmock.h>

#include <cstring>
#include <limits>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/compare.h"
#include "src/digest/digest128.h"
#include "src/digest/logical_digest.h"
#include "src/digest/xxh3.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::digest_diff_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// The definition, of the bytes in one piece.
std::string DigestOf(std::string_view bytes) {
  Digest128 sum;
  LogicalHasher().Add(sum, reinterpret_cast<const std::byte*>(bytes.data()), bytes.size(), 0);
  return ToHex(sum);
}

std::string FloatBytes(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

ContentOptions OptionsFor(const std::string& path, const std::string& strategy = "") {
  ContentOptions options;
  options.source.path = path;
  options.source.strategy = strategy;
  return options;
}

// The same tensors over six ranks and as full tensors in one file.
class DigestDiffTest : public testing::Test {
 protected:
  DigestDiffTest() {
    folder_.WriteStage(tensors_, layouts_, 6);
    WriteFull(tensors_);
    digest_.source.path = folder_.options().source.path;
    digest_.source.strategy = folder_.options().source.strategy;
    diff_.source = {digest_.source.path, digest_.source.strategy};
    diff_.b = {full_, ""};
  }

  void WriteFull(const std::vector<TestTensor>& tensors) {
    full_ = folder_.folder().Write("full.ckpt", EncodeCheckpoint(tensors));
  }

  // Every parameter's relation, by name.
  std::vector<std::string> Relations() const {
    const auto report = Diff(diff_);
    if (!report.ok()) return {report.status().message()};
    std::vector<std::string> relations;
    for (const DiffReport::Parameter& diff : report->parameters) {
      constexpr const char* kNames[] = {"=", "!", "type", "A", "B"};
      relations.push_back(diff.name + " " + kNames[static_cast<size_t>(diff.relation)]);
    }
    EXPECT_EQ(report->equal(), report->Count(DiffReport::Relation::kEqual) == relations.size());
    return relations;
  }

  const std::vector<TestTensor> tensors_ = {
      MakeTensor("w", DType::kFloat32, {12, 5}), MakeTensor("v", DType::kInt16, {3, 4}),
      MakeTensor("nothing", DType::kFloat16, {0, 6}), MakeTensor("step", DType::kInt64, {})};
  const std::vector<NamedLayout> layouts_ = {{"w", MakeLayout({6}, {{0, -1}})},
                                             {"v", MakeLayout({2, 3}, {{0, -1}})},
                                             {"nothing", MakeLayout({6}, {{-1, 0}})}};
  ConversionFolder folder_{layouts_, {}};
  std::string full_;
  ContentOptions digest_;
  DiffOptions diff_;
};

TEST_F(DigestDiffTest, DigestsAreThoseOfTheFullTensors) {
  for (const int jobs : {1, 2, 8}) {
    digest_.run.jobs = jobs;
    const auto report = DigestCheckpoint(digest_);
    ASSERT_TRUE(report.ok()) << report.status().message();
    ASSERT_THAT(report->parameters, SizeIs(tensors_.size()));
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const DigestReport::Parameter& found = report->parameters[i];
      EXPECT_EQ(found.name, tensors_[i].name);
      EXPECT_EQ(found.kind, ArrayKind::kTensor);
      EXPECT_EQ(found.dtype, tensors_[i].dtype);
      EXPECT_EQ(found.shape, tensors_[i].shape);
      EXPECT_EQ(found.bytes, tensors_[i].content.size());
      EXPECT_EQ(found.digest, DigestOf(tensors_[i].content));
    }
    EXPECT_EQ(report->bytes, 12U * 5 * 4 + 3 * 4 * 2 + 8);
    EXPECT_THAT(report->warnings, IsEmpty());
  }
}

TEST_F(DigestDiffTest, PatternsChooseWhatIsRead) {
  digest_.include = {"w", "v"};
  digest_.exclude = {"v*"};
  for (const bool one_replica : {false, true}) {
    digest_.one_replica = one_replica;
    const auto report = DigestCheckpoint(digest_);
    ASSERT_TRUE(report.ok()) << report.status().message();
    ASSERT_THAT(report->parameters, SizeIs(1));
    EXPECT_EQ(report->parameters[0].name, "w");
    EXPECT_EQ(report->parameters[0].digest, DigestOf(tensors_[0].content));
    EXPECT_EQ(report->bytes, 12U * 5 * 4);
    EXPECT_EQ(report->bytes_read, 12U * 5 * 4);  // cut over all ranks, without replicas
  }
  digest_.include = {"x"};
  EXPECT_EQ(
      DigestCheckpoint(digest_).status().message(),
      "no parameter is left to be read: `include` and `exclude` leave out all 4 parameters; a "
      "pattern has to match a whole name, such as \"w\"");
}

TEST_F(DigestDiffTest, PatternsChooseWhatIsCompared) {
  std::vector<TestTensor> other = tensors_;
  other[1].content[0] ^= 1;
  WriteFull(other);
  for (const bool one_replica : {false, true}) {
    diff_.one_replica = one_replica;
    diff_.exclude = {};
    EXPECT_THAT(Relations(), ElementsAre("w =", "v !", "nothing =", "step ="));
    diff_.exclude = {"v", "n*"};
    EXPECT_THAT(Relations(), ElementsAre("w =", "step ="));
  }
  diff_.include = {"x"};
  EXPECT_EQ(Diff(diff_).status().code(), StatusCode::kInvalidArgument);
}

// Replicas of what is left out are not looked at.
TEST_F(DigestDiffTest, ReplicasOfWhatIsLeftOutMayDiffer) {
  std::vector<TestTensor> rank =
      ReadTensors(std::filesystem::path(digest_.source.path) / RankPath(3));
  for (TestTensor& tensor : rank) {
    if (tensor.name == "step") tensor.content[0] ^= 1;
  }
  folder_.WriteRank(3, rank);
  const auto all = DigestCheckpoint(digest_);
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_THAT(all->replicas->own_values, ElementsAre("step"));
  digest_.exclude = {"step"};
  const auto some = DigestCheckpoint(digest_);
  ASSERT_TRUE(some.ok()) << some.status().message();
  EXPECT_THAT(some->replicas->own_values, IsEmpty());
}

// The least of its bytes is the end of the file, and of the last piece that is read.
TEST_F(DigestDiffTest, ATensorWithoutBytesMayEndAFile) {
  std::string header = R"({"v":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                       R"("w":{"dtype":"F32","shape":[4,0],"data_offsets":[8,8]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  bytes += header + std::string(8, 'x');
  const auto report =
      DigestCheckpoint(OptionsFor(folder_.folder().Write("end.safetensors", bytes)));
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_THAT(report->parameters, SizeIs(2));
  EXPECT_EQ(report->parameters[1].name, "w");
  EXPECT_EQ(report->parameters[1].digest, std::string(32, '0'));
}

TEST_F(DigestDiffTest, AFileOfFullTensorsGivesTheSame) {
  const auto cut = DigestCheckpoint(digest_);
  const auto full = DigestCheckpoint(OptionsFor(full_));
  ASSERT_TRUE(cut.ok()) << cut.status().message();
  ASSERT_TRUE(full.ok()) << full.status().message();
  ASSERT_EQ(cut->parameters.size(), full->parameters.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    EXPECT_EQ(cut->parameters[i].name, full->parameters[i].name);
    EXPECT_EQ(cut->parameters[i].digest, full->parameters[i].digest);
  }
  EXPECT_EQ(cut->digest, full->digest);
}

TEST_F(DigestDiffTest, TheDigestOfAllIsOfTheSortedLines) {
  const std::string a = TensorValue("a", "Int8", {1}, "1");
  const std::string b = TensorValue("b", "Int8", {}, "2");
  const auto digest_of = [&](const std::string& bytes) {
    const auto report = DigestCheckpoint(OptionsFor(folder_.folder().Write("some.ckpt", bytes)));
    return report.ok() ? report->digest : report.status().message();
  };
  Xxh3 hash;
  hash.Update(
      "a\tInt8\t[1]\t1\t00000000000000000000000000000031\n"
      "b\tInt8\t[]\t1\t00000000000000000000000000000032\n");
  EXPECT_EQ(digest_of(a + b), ToHex(hash.Digest()));
  EXPECT_EQ(digest_of(b + a), digest_of(a + b));
  EXPECT_NE(digest_of(a), digest_of(a + b));
  EXPECT_NE(digest_of(TensorValue("a", "UInt8", {1}, "1") + b), digest_of(a + b));
  EXPECT_NE(digest_of(TensorValue("a", "Int8", {1}, "3") + b), digest_of(a + b));
}

TEST_F(DigestDiffTest, NotesAndMapsAreDigestedToo) {
  const std::string text("n\0\0\0o\0\0\0", 8);
  const std::string map =
      MapValue("map", {TensorMessage("int32", {1}, "1234"), TensorMessage("float32", {1}, "5678"),
                       TensorMessage("int32", {1}, "9012")});
  const std::string path =
      folder_.folder().Write("notes.ckpt", TensorValue("note", "str", {0}, text) + map);
  const auto report = DigestCheckpoint(OptionsFor(path));
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_THAT(report->parameters, SizeIs(2));
  EXPECT_EQ(report->parameters[0].kind, ArrayKind::kText);
  EXPECT_EQ(report->parameters[0].digest, DigestOf(text));
  EXPECT_THAT(report->parameters[0].shape, IsEmpty());
  EXPECT_EQ(report->parameters[1].kind, ArrayKind::kMapTensor);
  EXPECT_EQ(report->parameters[1].digest, DigestOf(map));
  EXPECT_EQ(report->parameters[1].bytes, map.size());
}

TEST_F(DigestDiffTest, AMissingShardIsAnErrorThatNamesRanks) {
  folder_.RemoveRank(2);
  for (const Status& status : {DigestCheckpoint(digest_).status(), Diff(diff_).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_THAT(status.message(), Naming("no checkpoint for rank 2, which ", "(first gap: rows 4",
                                         "; add its folder"));
  }
}

TEST_F(DigestDiffTest, AStageWithoutFilesIsAnError) {
  const std::string strategy = folder_.folder().Write(
      "two_stages.ckpt", ProtobufStrategy(1, {{"0-w", MakeLayout({6}, {{0, -1}})},
                                              {"1-v", MakeLayout({6}, {{-1, -1}})}}));
  digest_.source.strategy = strategy;
  EXPECT_THAT(DigestCheckpoint(digest_).status().message(), Naming("ranks 6-11"));
}

TEST_F(DigestDiffTest, MalformedInputsAreErrors) {
  struct {
    std::string what;
    StatusCode code;
  } const rows[] = {{"absent.ckpt", StatusCode::kNotFound},
                    {"", StatusCode::kInvalidArgument},
                    {"cut.ckpt", StatusCode::kCorrupt},
                    {"empty.ckpt", StatusCode::kCorrupt}};
  const std::string whole = EncodeCheckpoint(tensors_);
  folder_.folder().Write("cut.ckpt", whole.substr(0, whole.size() - 1));
  folder_.folder().Write("empty.ckpt", "");
  for (const auto& [what, code] : rows) {
    const std::string path = what.empty() ? what : (folder_.folder().path() / what).string();
    EXPECT_EQ(DigestCheckpoint(OptionsFor(path)).status().code(), code) << what;
    diff_.b.path = path;
    EXPECT_EQ(Diff(diff_).status().code(), code) << what;
  }
  digest_.run.jobs = -1;
  EXPECT_EQ(DigestCheckpoint(digest_).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(DigestDiffTest, EqualWhateverTheLayout) {
  EXPECT_THAT(Relations(), ElementsAre("w =", "v =", "nothing =", "step ="));
  std::swap(diff_.source, diff_.b);
  EXPECT_THAT(Relations(), ElementsAre("w =", "v =", "nothing =", "step ="));
}

TEST_F(DigestDiffTest, EveryRelationIsFound) {
  std::vector<TestTensor> others = tensors_;
  others[0].content[239] ^= 1;                                 // the last byte of w
  others[1] = MakeTensor("v", DType::kUInt16, {3, 4});         // another dtype
  others[2] = MakeTensor("nothing", DType::kFloat16, {6, 0});  // another shape
  others[3].name = "global_step";
  WriteFull(others);
  EXPECT_THAT(Relations(), ElementsAre("w !", "v type", "nothing type", "step A", "global_step B"));
  const auto report = Diff(diff_);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->parameters[1].a->dtype, DType::kInt16);
  EXPECT_EQ(report->parameters[1].b->dtype, DType::kUInt16);
  EXPECT_FALSE(report->parameters[3].b.has_value());
  EXPECT_EQ(report->bytes, 12U * 5 * 4);
}

TEST_F(DigestDiffTest, NotesOfOtherLengthsAndMapsOfOtherTypesDiffer) {
  const auto write = [&](const std::string& name, const std::string& text, const char* type) {
    return folder_.folder().Write(name, TensorValue("note", "str", {0}, text) +
                                            MapValue("map", {TensorMessage(type, {1}, "1234"),
                                                             TensorMessage("float32", {1}, "5678"),
                                                             TensorMessage("int32", {1}, "9012")}));
  };
  const std::string a(4, 'a');
  diff_.source = {write("a.ckpt", a, "int32"), ""};
  diff_.b = {write("b.ckpt", a + a, "uint32"), ""};
  EXPECT_THAT(Relations(), ElementsAre("note !", "map !"));
  diff_.b = diff_.source;
  EXPECT_THAT(Relations(), ElementsAre("note =", "map ="));
}

TEST_F(DigestDiffTest, ValuesAreComparedElementByElement) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  folder_.WriteStage({{"w", DType::kFloat32, {6, 1}, FloatBytes({1, 2, nan, 4, nan, -6})}},
                     layouts_, 6);
  WriteFull({{"w", DType::kFloat32, {6, 1}, FloatBytes({1, 2.5, nan, -4, 5, -6})}});
  const auto without = Diff(diff_);
  ASSERT_TRUE(without.ok()) << without.status().message();
  ASSERT_THAT(without->parameters, SizeIs(1));
  EXPECT_EQ(without->parameters[0].relation, DiffReport::Relation::kDifferent);
  EXPECT_FALSE(without->parameters[0].values.has_value());
  diff_.values = true;
  const auto with = Diff(diff_);
  ASSERT_TRUE(with.ok()) << with.status().message();
  const auto& values = with->parameters[0].values;
  ASSERT_TRUE(values.has_value());
  EXPECT_EQ(values->numbers, 2U);
  EXPECT_EQ(values->nan_against_number, 1U);
  EXPECT_EQ(values->nan_against_nan, 0U);
  EXPECT_EQ(values->greatest, 8);
}

TEST_F(DigestDiffTest, ValuesOfIntegersAreOnlyToldApart) {
  std::vector<TestTensor> others = tensors_;
  others[1].content[0] ^= 1;
  WriteFull(others);
  diff_.values = true;
  const auto report = Diff(diff_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->parameters[1].relation, DiffReport::Relation::kDifferent);
  EXPECT_FALSE(report->parameters[1].values.has_value());
}

TEST_F(DigestDiffTest, ProgressEndsWithAllBytes) {
  Progress last;
  const auto note = [&](const Progress& progress) {
    EXPECT_GE(progress.done_bytes, last.done_bytes);
    last = progress;
  };
  digest_.run.progress = diff_.run.progress = note;
  for (const bool one_replica : {false, true}) {
    digest_.one_replica = diff_.one_replica = one_replica;
    last = {};
    const auto digest = DigestCheckpoint(digest_);
    ASSERT_TRUE(digest.ok()) << digest.status().message();
    EXPECT_EQ(last.done_bytes, digest->bytes_read);
    EXPECT_EQ(last.total_bytes, digest->bytes_read);
    for (const bool values : {false, true}) {
      diff_.values = values;
      last = {};
      const auto diff = Diff(diff_);
      ASSERT_TRUE(diff.ok()) << diff.status().message();
      EXPECT_EQ(last.done_bytes, last.total_bytes);
      // Of a pair of shards that are compared directly, one counts.
      EXPECT_EQ(last.total_bytes - (values && !one_replica ? 12U * 5 * 4 : 0),
                one_replica ? diff->bytes : diff->bytes_read);
    }
  }
}

TEST_F(DigestDiffTest, AStopEndsThem) {
  std::stop_source stop;
  stop.request_stop();
  digest_.run.stop = diff_.run.stop = stop.get_token();
  EXPECT_EQ(DigestCheckpoint(digest_).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(Diff(diff_).status().code(), StatusCode::kCancelled);
}

TEST_F(DigestDiffTest, FilesThatChangeMeanwhileAreNoticed) {
  // The same size and other bytes, as a training run that goes on would leave.
  const auto change = [&](const Progress&) {
    WriteFull({tensors_[1], tensors_[0], tensors_[2], tensors_[3]});
  };
  ContentOptions digest = OptionsFor(full_);
  digest.run.progress = change;
  const Status digested = DigestCheckpoint(digest).status();
  EXPECT_EQ(digested.code(), StatusCode::kChanged) << digested.message();
  diff_.run.progress = change;
  const Status compared = Diff(diff_).status();
  EXPECT_EQ(compared.code(), StatusCode::kChanged) << compared.message();
}

// Ten MiB in several windows, cut over columns, against the same in one file; then one bit.
TEST_F(DigestDiffTest, LargeTensorsInManyWindows) {
  const std::vector<NamedLayout> layouts = {{"w", MakeLayout({4}, {{-1, 0}})}};
  const ConversionFolder columns(layouts, {});
  std::vector<TestTensor> tensors = {MakeTensor("w", DType::kFloat16, {1 << 16, 80})};
  columns.WriteStage(tensors, layouts, 4);
  WriteFull(tensors);
  diff_.source = {columns.options().source.path, columns.options().source.strategy};
  EXPECT_THAT(Relations(), ElementsAre("w ="));
  const auto report = DigestCheckpoint(OptionsFor(diff_.source.path, diff_.source.strategy.path()));
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->parameters[0].digest, DigestOf(tensors[0].content));
  tensors[0].content[7654321] ^= 0x10;
  WriteFull(tensors);
  EXPECT_THAT(Relations(), ElementsAre("w !"));
}

}  // namespace
}  // namespace reshard::digest_diff_test
