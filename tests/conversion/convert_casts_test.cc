// Conversions that cast: what becomes of what, what is said of values that are lost, and what is
// refused.

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "reshard/convert.h"
#include "reshard/verify.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::convert_casts_test {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

const ParameterLayout kRowsOf2 = MakeLayout({2}, {{0, -1}});
const std::vector<NamedLayout> kLayouts = {{"w", kRowsOf2}, {"adam_m.w", kRowsOf2}};

TestTensor Floats(std::string name, Shape shape, const std::vector<float>& values) {
  TestTensor tensor{std::move(name), DType::kFloat32, std::move(shape), {}};
  tensor.content.assign(reinterpret_cast<const char*>(values.data()), values.size() * 4);
  return tensor;
}

// Two ranks of a weight, its moment, a scale of one element and a step, to be joined.
class SampleFolder : public ConversionFolder {
 public:
  // `large` is an element of the weight.
  explicit SampleFolder(float large = 6.0F) : ConversionFolder(kLayouts, {}) {
    WriteStage({Floats("adam_m.w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
                Floats("w", {4, 2}, {0.1F, 2, 3, 4, 5, large, -large, 8}),
                Floats("scale", {1}, {0.1F}), MakeTensor("step", DType::kInt64, {})},
               kLayouts, 2);
  }

  std::vector<std::pair<std::string, DType>> Written() const {
    std::vector<std::pair<std::string, DType>> written;
    for (const TestTensor& tensor : Target(0)) written.emplace_back(tensor.name, tensor.dtype);
    return written;
  }
};

ConvertReport RunConvert(const ConvertOptions& options) {
  auto report = Convert(options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? std::move(*report) : ConvertReport();
}

ConversionSpec ProofOf(const ConvertOptions& options) {
  ConversionSpec against;
  against.target.folder = options.target.folder;
  against.source = options.source;
  against.target.strategy = options.target.strategy;
  against.selection = options.selection;
  return against;
}

TEST(ConvertCastsTest, TheFirstRuleThatMatchesCounts) {
  using enum DType;
  struct Row {
    std::vector<Selection::CastRule> rules;
    std::vector<DType> dtypes;  // of adam_m.w, w, scale, step
  };
  const Row rows[] = {
      {{}, {kFloat32, kFloat32, kFloat32, kInt64}},
      {{{"", kBFloat16}}, {kFloat32, kBFloat16, kFloat32, kInt64}},
      {{{"*", kBFloat16}}, {kBFloat16, kBFloat16, kBFloat16, kInt64}},
      {{{"w", {}}, {"*", kFloat64}}, {kFloat64, kFloat32, kFloat64, kInt64}},
      {{{"*w", kFloat16}, {"*", kFloat8E4M3FN}}, {kFloat16, kFloat16, kFloat8E4M3FN, kInt64}},
      {{{"s*", kFloat16}, {"", kFloat8E5M2}}, {kFloat32, kFloat8E5M2, kFloat16, kInt64}},
      {{{"*", kFloat32}}, {kFloat32, kFloat32, kFloat32, kInt64}},
  };
  for (const Row& row : rows) {
    SampleFolder folder;
    folder.options().selection.casts = row.rules;
    const ConvertReport report = RunConvert(folder.options());
    // MindSpore loads no .ckpt file with floats of 8 bits.
    EXPECT_THAT(report.warnings, Each(Field(&Warning::code, WarningCode::kNotLoadable)));
    EXPECT_EQ(report.values_lost, 0U);
    EXPECT_THAT(folder.Written(),
                ElementsAre(std::pair("adam_m.w", row.dtypes[0]), std::pair("w", row.dtypes[1]),
                            std::pair("scale", row.dtypes[2]), std::pair("step", row.dtypes[3])));
    const auto proof = VerifyAgainst(ProofOf(folder.options()));
    ASSERT_TRUE(proof.ok()) << proof.status().message();
    EXPECT_THAT(proof->differences, IsEmpty());
  }
}

TEST(ConvertCastsTest, OptimizerStatesStayWithoutAPattern) {
  const std::vector<std::string> states = {
      "adam_v.w",         "moments.w",     "moment1.w",    "accu_grads.w",
      "w.exp_avg_sq",     "exp_avg.w",     "exp_avg_sq.w", "max_exp_avg_sq.w",
      "exp_avg_sq_row_w", "accum.w",       "stat.w",       "accum_update.w",
      "mean_square.w",    "mean_grad.w",   "vhat.w",       "linear.w",
      "prev.w",           "step_size.w",   "moment.w",     "lamb_m.w",
      "muon_m.w",         "learning_rate", "ax_.w",        "ax.w",
      "exp_inf.w",        "momentum_buf.w"};
  ConversionFolder folder({}, {{"w", kRowsOf2}});
  std::vector<TestTensor> tensors = {Floats("w", {2}, {1, 2})};
  for (const std::string& name : states) tensors.push_back(Floats(name, {2}, {1, 2}));
  folder.WriteRank(0, tensors);
  folder.options().selection.casts = {{"", DType::kFloat16}};
  folder.options().selection.unmatched = Selection::Unmatched::kCopy;
  RunConvert(folder.options());
  for (const TestTensor& tensor : folder.Target(0)) {
    EXPECT_EQ(tensor.dtype, tensor.name == "w" ? DType::kFloat16 : DType::kFloat32) << tensor.name;
  }
}

// A module of a network may have the name of a state.
TEST(ConvertCastsTest, AModuleCalledLinearIsCast) {
  ConversionFolder folder({}, {{"linear.weight", kRowsOf2}});
  folder.WriteRank(0, {Floats("linear.weight", {2}, {1, 2}), Floats("prev.weight", {2}, {1, 2}),
                       Floats("moments.linear.weight", {2}, {1, 2}),
                       Floats("linear.linear.weight", {2}, {1, 2})});
  folder.options().selection.casts = {{"", DType::kFloat16}};
  RunConvert(folder.options());
  for (const TestTensor& tensor : folder.Target(0)) {
    const bool is_weight = tensor.name == "linear.weight" || tensor.name == "prev.weight";
    EXPECT_EQ(tensor.dtype, is_weight ? DType::kFloat16 : DType::kFloat32) << tensor.name;
  }
}

TEST(ConvertCastsTest, NamesAreThoseOfTheSource) {
  SampleFolder folder;
  folder.options().selection.renames.names = {{"w", "weight"}};
  folder.options().selection.casts = {{"weight", DType::kFloat16}, {"w", DType::kBFloat16}};
  const ConvertReport report = RunConvert(folder.options());
  EXPECT_THAT(folder.Written(), Contains(std::pair("weight", DType::kBFloat16)));
  EXPECT_THAT(report.warnings,
              ElementsAre(Says(WarningCode::kUnusedPatterns,
                               "1 of the patterns of `casts` matches no parameter: \"weight\"")));
  ASSERT_FALSE(report.largest.empty());
  EXPECT_EQ(report.largest[1].name, "weight");
  EXPECT_EQ(report.largest[1].dtype, DType::kBFloat16);
  EXPECT_EQ(report.largest[1].bytes, 16U);
}

TEST(ConvertCastsTest, ValuesThatAreLostAreCounted) {
  SampleFolder folder(70000.0F);
  folder.options().selection.casts = {{"*", DType::kFloat16}};
  const ConvertReport report = RunConvert(folder.options());
  EXPECT_EQ(report.values_lost, 2U);
  EXPECT_THAT(
      report.warnings,
      ElementsAre(Says(WarningCode::kValuesLost,
                       "casts made 2 finite values of 1 parameter infinite or NaN, too large "
                       "for the dtype that they were cast to: \"w\" (2)")));
}

// What is too small is told apart from what is too large, and refused by no option.
TEST(ConvertCastsTest, ValuesThatBecomeZeroAreCounted) {
  SampleFolder folder(1e-9F);
  folder.options().selection.casts = {{"*", DType::kFloat16}};
  folder.options().checks.refuse_overflow = true;
  const ConvertReport report = RunConvert(folder.options());
  EXPECT_EQ(report.values_lost, 0U);
  EXPECT_EQ(report.values_zeroed, 2U);
  EXPECT_THAT(report.warnings,
              ElementsAre(Says(WarningCode::kValuesLost,
                               "casts made 2 nonzero values of 1 parameter zero, too small for the "
                               "dtype that they were cast to: \"w\" (2)")));
}

// Each worker counts what it casts; who publishes adds it up.
TEST(ConvertCastsTest, WorkersAddUpWhatIsLost) {
  ConversionFolder folder(kLayouts, kLayouts);
  folder.WriteStage({Floats("adam_m.w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
                     Floats("w", {4, 2}, {7e4F, 2, 1e-8F, 4, 7e4F, 7e4F, 1e-8F, 8})},
                    kLayouts, 2);
  folder.options().selection.casts = {{"*", DType::kFloat16}};
  for (uint64_t worker = 0; worker < 2; ++worker) {
    folder.options().shard = WorkerShare{worker, 2};
    const ConvertReport report = RunConvert(folder.options());
    EXPECT_EQ(report.values_lost, worker == 0 ? 0U : 3U);  // once it is published
    EXPECT_EQ(report.values_zeroed, worker == 0 ? 0U : 2U);
  }
}

TEST(ConvertCastsTest, RefusesValuesThatAreLost) {
  for (const bool checksum : {false, true}) {
    SampleFolder folder(70000.0F);
    folder.options().selection.casts = {{"*", DType::kFloat16}};
    folder.options().checks.refuse_overflow = true;
    folder.options().checks.checksum = checksum;
    const auto report = Convert(folder.options());
    EXPECT_EQ(report.status().code(), StatusCode::kMismatch);
    EXPECT_THAT(report.status().message(), Naming("2 ", "parameter \"w\""));
    EXPECT_THAT(ReadFolder(folder.options().target.folder), IsEmpty());
    folder.options().selection.casts = {{"*", DType::kBFloat16}};
    RunConvert(folder.options());
  }
}

TEST(ConvertCastsTest, RefusesWhatNothingIsCastTo) {
  SampleFolder folder;
  folder.options().selection.casts = {{"*", DType::kInt8}};
  auto report = Convert(folder.options());
  EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(report.status().message(), Naming("Int8"));
  folder.options().selection.casts = {{"*", DType::kFloat16}, {"*", {}}};
  report = Convert(folder.options());
  EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(report.status().message(), Naming("\"*\""));
}

TEST(ConvertCastsTest, RefusesFloatsThatAreNotCast) {
  ConversionFolder folder({}, {{"w", kRowsOf2}});
  folder.WriteRank(0, {MakeTensor("w", DType::kFloat8E5M2, {4, 2}), Floats("v", {2}, {1, 2})});
  folder.options().selection.casts = {{"*", DType::kBFloat16}};
  const auto report = Convert(folder.options());
  EXPECT_EQ(report.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(report.status().message(), Naming("parameter \"w\": ", "Float8E5M2", "BFloat16"));
  folder.options().selection.casts.insert(folder.options().selection.casts.begin(), {"w", {}});
  RunConvert(folder.options());
  EXPECT_EQ(folder.Target(0).front().dtype, DType::kFloat8E5M2);
}

// A changed byte of what was cast is found, and where it came from is told.
TEST(ConvertCastsTest, DamageIsFound) {
  SampleFolder folder;
  folder.options().selection.casts = {{"w", DType::kBFloat16}};
  RunConvert(folder.options());
  const std::string path = folder.options().target.folder + "/" + RankPath(0);
  std::string bytes = ReadFile(path);
  const std::string six("\xc0\x40", 2);  // of 6.0, the sixth of eight
  const size_t at = bytes.rfind(six);
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  std::filesystem::remove(path);
  folder.folder().Write("target/" + RankPath(0), bytes);
  const auto proof = VerifyAgainst(ProofOf(folder.options()));
  ASSERT_TRUE(proof.ok()) << proof.status().message();
  ASSERT_EQ(proof->differences.size(), 1U);
  const AgainstReport::FileDifference& difference = proof->differences.front();
  EXPECT_EQ(difference.differing_bytes, 1U);
  ASSERT_TRUE(difference.first);
  EXPECT_EQ(difference.first->parameter, "w");
  EXPECT_EQ(difference.first->offset, at);
  EXPECT_THAT(difference.first->source_path, HasSubstr("rank_1/"));
  const std::string source = ReadFile(difference.first->source_path);
  float value = 0;
  std::memcpy(&value, source.data() + difference.first->source_offset, sizeof(value));
  EXPECT_EQ(value, 6.0F);
}

}  // namespace
}  // namespace reshard::convert_casts_test
