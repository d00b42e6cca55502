// MindSpore's own conversions (README.md here), proved from their sources and compared with them.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/strategy.h"
#include "reshard/verify.h"
#include "tests/support/temporary_folder.h"

namespace reshard::verify_golden_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const fs::path kData = fs::path(RESHARD_TESTS_DIR) / "golden" / "data";

std::vector<std::string> CheckpointsIn(const fs::path& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(fs::relative(entry.path(), folder));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void ExpectProved(const ConversionSpec& options) {
  const auto report = VerifyAgainst(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->differences, IsEmpty());
  EXPECT_EQ(report->files, CheckpointsIn(options.target.folder).size());
  EXPECT_TRUE(report->equal());  // the replicas in the sources too
}

// Changes a byte of one file's content, somewhere in the parameter `name`, and expects it to be
// found there.
void ExpectFound(const ConversionSpec& options, const std::string& path, const std::string& name,
                 uint64_t place) {
  SCOPED_TRACE(path + " " + name);
  const TemporaryFolder folder(MemoryFolder());
  ConversionSpec changed = options;
  changed.target.folder = folder.path() / "target";
  fs::copy(options.target.folder, changed.target.folder, fs::copy_options::recursive);
  const auto checkpoint = Checkpoint::Open(fs::path(options.target.folder) / path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const ByteRange content = checkpoint->Find(name)->content[0];
  const uint64_t offset = content.offset + place % content.length;
  std::string bytes = ReadFile(fs::path(options.target.folder) / path);
  const char before = bytes[offset];
  bytes[offset] = static_cast<char>(before ^ 0x80);
  fs::permissions(fs::path(changed.target.folder) / path, fs::perms::owner_all);
  folder.Write("target/" + path, bytes);

  const auto report = VerifyAgainst(changed);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_FALSE(report->equal());
  ASSERT_THAT(report->differences, SizeIs(1));
  const AgainstReport::FileDifference& difference = report->differences[0];
  EXPECT_EQ(difference.path, path);
  EXPECT_EQ(difference.differing_bytes, 1U);
  EXPECT_THAT(difference.parameters, ElementsAre(name));
  ASSERT_TRUE(difference.first.has_value());
  EXPECT_EQ(difference.first->offset, offset);
  EXPECT_EQ(difference.first->parameter, name);
  EXPECT_FALSE(difference.first->in_header);
  EXPECT_EQ(ReadFile(difference.first->source_path)[difference.first->source_offset], before);
}

class VerifyGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  VerifyGoldenTest()
      : folder_(kData / "convert" / GetParam()),
        case_(nlohmann::json::parse(ReadFile(folder_ / "case.json"))) {}

  ConversionSpec Options() const {
    ConversionSpec options;
    options.target.folder = folder_ / "expected";
    options.source.path = folder_ / "src";
    options.source.strategy = CheckedStrategy("src_strategy");
    options.target.strategy = CheckedStrategy("dst_strategy");
    options.target.prefix = case_.at("prefix");
    return options;
  }

  std::string CheckedStrategy(const char* side) const {
    const nlohmann::json& name = case_.at(side);
    return name.is_null() ? "" : (folder_ / name.get<std::string>()).string();
  }

  const fs::path folder_;
  const nlohmann::json case_;
};

TEST_P(VerifyGoldenTest, OutputsAreProvedFromTheirSources) { ExpectProved(Options()); }

TEST_P(VerifyGoldenTest, AChangedByteIsFound) {
  const ConversionSpec options = Options();
  const std::vector<std::string> paths = CheckpointsIn(options.target.folder);
  const std::string& path = paths[std::hash<std::string>()(GetParam()) % paths.size()];
  const auto checkpoint = Checkpoint::Open(fs::path(options.target.folder) / path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  for (const StoredArray& parameter : checkpoint->parameters()) {
    if (parameter.bytes > 0)
      ExpectFound(options, path, std::string(parameter.name), 0x9e3779b97f4a7c15);
  }
}

// The parameters that both sides have layouts for, or that stand whole on a side without strategy.
std::set<std::string> Converted(const ConversionSpec& options) {
  std::set<std::string> names;
  bool is_first = true;
  for (const StrategyRef& named : {options.source.strategy, options.target.strategy}) {
    if (named.empty()) continue;
    const auto strategy = ReadStrategy(named.path());
    EXPECT_TRUE(strategy.ok()) << strategy.status().message();
    std::set<std::string> of_side;
    for (const Strategy::Stage& stage : strategy->stages()) {
      for (const auto [view, layout] : stage) {
        const std::string name(view);
        if (is_first || names.contains(name)) of_side.insert(name);
      }
    }
    names = of_side;
    is_first = false;
  }
  return names;
}

TEST_P(VerifyGoldenTest, BothSidesHoldTheSameParameters) {
  const ConversionSpec against = Options();
  DiffOptions options;
  options.source = {against.source.path, against.source.strategy};
  options.b = {against.target.folder, against.target.strategy};
  const auto report = Diff(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const std::set<std::string> converted = Converted(against);
  for (const DiffReport::Parameter& diff : report->parameters) {
    if (converted.contains(diff.name)) {
      EXPECT_EQ(diff.relation, DiffReport::Relation::kEqual) << diff.name;
    }
  }
}

std::vector<std::string> Cases() {
  std::vector<std::string> cases;
  for (const auto& entry : fs::directory_iterator(kData / "convert")) {
    cases.push_back(entry.path().filename());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases, VerifyGoldenTest, testing::ValuesIn(Cases()),
                         [](const auto& row) { return row.param; });

TEST(VerifyGoldenApisTest, ByRank) {
  const fs::path data = kData / "apis" / "by_rank";
  const TemporaryFolder folder;
  for (int64_t rank = 0; rank < 4; ++rank) {
    folder.Write(fmt::format("source/rank_{}/net.ckpt", rank),
                 ReadFile(data / fmt::format("origin_rank{}.ckpt", rank)));
    folder.Write(fmt::format("target/rank_{0}/net{0}.ckpt", rank),
                 ReadFile(data / fmt::format("expected_rank{}.ckpt", rank)));
  }
  ConversionSpec options;
  options.target.folder = folder.path() / "target";
  options.source.path = folder.path() / "source";
  options.source.strategy = data / "src_strategy.ckpt";
  options.target.strategy = data / "dst_strategy.ckpt";
  options.target.prefix = "net";
  ExpectProved(options);
}

TEST(VerifyGoldenApisTest, OneStageAlone) {
  const fs::path data = kData / "apis" / "by_stage";
  ConversionSpec options;
  options.target.folder = data / "expected";
  options.source.path = data / "src";
  options.source.strategy = data / "src_strategy_1.ckpt";
  options.target.strategy = data / "dst_strategy.ckpt";
  options.target.prefix = "out";
  ExpectProved(options);
}

}  // namespace
}  // namespace reshard::verify_golden_test
