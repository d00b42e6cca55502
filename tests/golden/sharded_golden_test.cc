// Sharded checkpoints that other programs wrote (README.md here), against the tensors that were
// saved: in whole files, in ranks, as digests.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/convert.h"
#include "reshard/strategy.h"
#include "reshard/verify.h"
#include "tests/support/folder_contents.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/view_check.h"

namespace reshard::sharded_golden_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::IsEmpty;

const fs::path kCases = fs::path(RESHARD_TESTS_DIR) / "golden" / "data" / "sharded";

struct Saved {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string content;

  friend bool operator==(const Saved&, const Saved&) = default;
};
using Tensors = std::map<std::string, Saved>;

// The tensors of a safetensors file, by a reader of its own.
Tensors ReadSafetensors(const fs::path& path) {
  const std::string bytes = ReadFile(path);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  const json header = json::parse(bytes.substr(sizeof(length), length));
  const std::string content = bytes.substr(sizeof(length) + length);
  Tensors tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const size_t begin = entry["data_offsets"][0];
    const size_t end = entry["data_offsets"][1];
    tensors[name] = {entry["dtype"], entry["shape"], content.substr(begin, end - begin)};
  }
  return tensors;
}

class ShardedGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  ShardedGoldenTest()
      : folder_(kCases / GetParam()), made_(json::parse(ReadFile(folder_ / "case.json"))) {
    const std::string all = ReadFile(folder_ / "expected.bin");
    const std::map<std::string, size_t> sizes = {
        {"F64", 8}, {"I64", 8},     {"U64", 8},     {"C64", 8}, {"F32", 4}, {"I32", 4},
        {"U32", 4}, {"F16", 2},     {"BF16", 2},    {"I16", 2}, {"U16", 2}, {"F8_E4M3", 1},
        {"I8", 1},  {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"U8", 1},  {"BOOL", 1}};
    for (const auto& [name, entry] : made_["tensors"].items()) {
      Saved& tensor = expected_[name];
      tensor.dtype = entry["dtype"];
      tensor.shape = entry["shape"].get<std::vector<int64_t>>();
      size_t bytes = sizes.at(tensor.dtype);
      for (const int64_t size : tensor.shape) bytes *= static_cast<size_t>(size);
      if (bytes > 0) tensor.content = all.substr(entry["offset"], bytes);
      EXPECT_EQ(tensor.content.size(), bytes);
    }
    options_.source.path = folder_ / "input";
    options_.target.folder = work_.path() / "target";
    options_.target.format = TargetFormat::kHuggingFace;
  }

  const fs::path folder_;
  const json made_;
  Tensors expected_;
  const TemporaryFolder work_{MemoryFolder()};
  ConvertOptions options_;
};

using WholeTest = ShardedGoldenTest;

TEST_P(WholeTest, BecomesTheTensorsThatWereSaved) {
  const auto report = Convert(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(ReadSafetensors(work_.path() / "target" / "model.safetensors"), expected_);
  ExpectViewHasFiles(options_);
  const auto damage = Verify(options_.target.folder);
  ASSERT_TRUE(damage.ok()) << damage.status().message();
  EXPECT_THAT(damage->damages, IsEmpty());
  ConversionSpec against;
  against.source = options_.source;
  against.target = options_.target;
  const auto proved = VerifyAgainst(against);
  ASSERT_TRUE(proved.ok()) << proved.status().message();
  EXPECT_THAT(proved->differences, IsEmpty());
}

TEST_P(WholeTest, IsTheSameFromSeveralProcesses) {
  ASSERT_TRUE(Convert(options_).ok());
  const FolderContents expected = ReadOutputs(options_.target.folder);
  options_.target.folder = work_.path() / "shared";
  for (uint64_t shard = 0; shard < 3; ++shard) {
    options_.shard = {shard, 3};
    const auto report = Convert(options_);
    ASSERT_TRUE(report.ok()) << report.status().message();
  }
  EXPECT_EQ(ReadOutputs(options_.target.folder), expected);
}

TEST_P(WholeTest, HasTheSameContentsAsItsWholeTensors) {
  ASSERT_TRUE(Convert(options_).ok());
  DiffOptions diff;
  diff.source = options_.source;
  diff.b.path = options_.target.folder;
  const auto report = Diff(diff);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(report->equal());
}

// Tensors with an even number of rows are cut between two ranks.
TEST_P(WholeTest, IsCutByAStrategy) {
  std::vector<NamedLayout> layouts;
  for (const auto& [name, tensor] : expected_) {
    if (tensor.shape.empty() || tensor.shape[0] % 2 != 0 || tensor.content.empty()) continue;
    std::vector<std::vector<int64_t>> map(tensor.shape.size(), {-1});
    map[0] = {0};
    layouts.push_back({name, MakeLayout({2}, map)});
  }
  if (layouts.empty()) return;  // none of a case is
  options_.target.strategy = work_.Write("strategy.ckpt", ProtobufStrategy(0, layouts));
  options_.target.format = TargetFormat::kSafetensors;
  options_.target.names = "rank_{rank}.safetensors";
  options_.selection.unmatched = Selection::Unmatched::kCopy;
  const auto report = Convert(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  for (size_t rank = 0; rank < 2; ++rank) {
    Tensors shards = expected_;
    for (const NamedLayout& layout : layouts) {
      Saved& shard = shards[layout.name];
      shard.shape[0] /= 2;
      const size_t half = shard.content.size() / 2;
      shard.content = shard.content.substr(rank * half, half);
    }
    EXPECT_EQ(ReadSafetensors(work_.path() / "target" /
                              ("rank_" + std::to_string(rank) + ".safetensors")),
              shards);
  }
}

INSTANTIATE_TEST_SUITE_P(HuggingFaceShards, WholeTest,
                         testing::Values("hf_sharded/case_000", "hf_sharded/case_001",
                                         "hf_sharded/case_002", "hf_sharded/case_003",
                                         "hf_sharded/case_004", "hf_sharded/case_005",
                                         "hf_sharded/case_006", "hf_sharded/case_007",
                                         "hf_sharded/case_008", "hf_sharded/case_009",
                                         "hf_sharded/case_010"));

INSTANTIATE_TEST_SUITE_P(MindFormers, WholeTest,
                         testing::Values("mindformers2/case_000", "mindformers2/case_001",
                                         "mindformers2/case_002", "mindformers2/case_003",
                                         "mindformers2/case_004", "mindformers2/case_005",
                                         "mindformers2/case_006", "mindformers2/case_007"));

INSTANTIATE_TEST_SUITE_P(
    Dcp, WholeTest,
    testing::Values("dcp/case_000", "dcp/case_001", "dcp/case_002", "dcp/case_003", "dcp/case_004",
                    "dcp/case_005", "dcp/case_007", "dcp/case_008", "dcp/case_009", "dcp/case_010",
                    "dcp/case_011", "dcp/case_012", "dcp/case_013", "dcp/case_014", "dcp/case_015",
                    "dcp/case_016", "dcp/case_017", "dcp/case_018", "dcp/case_020"));

INSTANTIATE_TEST_SUITE_P(TorchRanks, WholeTest,
                         testing::Values("torch_ranks/case_000", "torch_ranks/case_001",
                                         "torch_ranks/case_002", "torch_ranks/case_003"));

struct Refused {
  std::string folder;
  StatusCode code = StatusCode::kMismatch;
  std::vector<std::string> words;
};

class RefusedTest : public testing::TestWithParam<Refused> {};

TEST_P(RefusedTest, SaysWhy) {
  const TemporaryFolder work(MemoryFolder());
  ConvertOptions options;
  options.source.path = kCases / GetParam().folder / "input";
  options.target.folder = work.path() / "target";
  options.target.format = TargetFormat::kHuggingFace;
  const Status status = Convert(options).status();
  EXPECT_EQ(status.code(), GetParam().code) << status.message();
  for (const std::string& word : GetParam().words) EXPECT_THAT(status.message(), Naming(word));
  EXPECT_FALSE(fs::exists(options.target.folder));
  EXPECT_EQ(Plan(options).status().message(), status.message());
  ContentOptions digest;
  digest.source = options.source;
  EXPECT_EQ(DigestCheckpoint(digest).status().message(), status.message());
}

INSTANTIATE_TEST_SUITE_P(
    HuggingFaceShards, RefusedTest,
    testing::Values(Refused{"hf_sharded/case_020",
                            StatusCode::kMismatch,
                            {"\"mc.w\": 20 of 40 elements are in no file", "box [0:4, 0:5]"}},
                    Refused{"hf_sharded/case_021",
                            StatusCode::kCorrupt,
                            {"shard-00002-model-00001-of-00001.safetensors", "zip archive",
                             "HuggingFaceStorageWriter"}},
                    Refused{"hf_sharded/case_022",
                            StatusCode::kMismatch,
                            {"\"few.weight\": 5 of 15 elements", "box [1:2, 0:5]"}},
                    Refused{"hf_sharded/case_023",
                            StatusCode::kMismatch,
                            {"shard-00001-model-00001-of-00001.safetensors", "\"w.weight\"",
                             "box [0:3, 0:6] overlaps box [2:5, 0:6]",
                             "shard-00002-model-00001-of-00001"}},
                    Refused{"hf_sharded/case_024",
                            StatusCode::kMismatch,
                            {"one of 4 files by the metadata reshard", "3 are there"}}));

INSTANTIATE_TEST_SUITE_P(
    MindFormers, RefusedTest,
    testing::Values(Refused{"mindformers2/case_020",
                            StatusCode::kMismatch,
                            {"metadata.json", "names 4 files, but 1 is missing",
                             "model-0000001-0000004.safetensors"}},
                    Refused{"mindformers2/case_021",
                            StatusCode::kCorrupt,
                            {"metadata.json", "slice 2 is beyond axis_fragmentations"}}));

INSTANTIATE_TEST_SUITE_P(
    Dcp, RefusedTest,
    testing::Values(
        Refused{"dcp/case_006", StatusCode::kUnsupported, {"item at", "transposed"}},
        Refused{
            "dcp/case_021", StatusCode::kUnsupported, {".metadata", "stored through test.xor/1"}},
        Refused{"dcp/case_022", StatusCode::kUnsupported, {"__0_0.distcp", "a conjugate view"}},
        Refused{"dcp/case_024",
                StatusCode::kCorrupt,
                {".metadata",
                 "top object is posix.system(..), expected Metadata; "
                 "nothing was executed"}},
        Refused{"dcp/case_025", StatusCode::kMismatch, {".metadata", "1 is missing: __1_0.distcp"}},
        Refused{"dcp/case_026", StatusCode::kCorrupt, {".metadata", "opcode FRAME"}}));

struct Kind {
  SourceFormat format;
  fs::path folder;
};

// Folders with a checkpoint of each kind.
class SourceFormatTest : public testing::Test {
 protected:
  SourceFormatTest() {
    ConvertOptions options;
    options.source.path = kCases / "hf_sharded" / "case_001" / "input";
    options.target.folder = work_.path() / "plain";
    options.target.format = TargetFormat::kHuggingFace;
    EXPECT_TRUE(Convert(options).ok());
    fs::create_directory(work_.path() / "lone");
    fs::copy(work_.path() / "plain" / "model.safetensors", work_.path() / "lone");
    kinds_ = {{SourceFormat::kPlain, work_.path() / "lone"},
              {SourceFormat::kHuggingFaceShards, kCases / "hf_sharded" / "case_000" / "input"},
              {SourceFormat::kMindFormers,
               kCases / "mindformers2" / "case_000" / "input" / "iteration_00000012"},
              {SourceFormat::kDcp, kCases / "dcp" / "case_004" / "input"},
              {SourceFormat::kFsdp, kCases / "torch_ranks" / "case_000" / "input"}};
  }

  static Result<std::string> DigestOf(const fs::path& folder,
                                      std::optional<SourceFormat> format = {}) {
    const auto report = DigestCheckpoint({.source = {.path = folder, .format = format}});
    if (!report.ok()) return report.status();
    return report->digest;
  }

  const TemporaryFolder work_{MemoryFolder()};
  std::vector<Kind> kinds_;
};

TEST_F(SourceFormatTest, ChoosesOneOfTwoKindsInAFolder) {
  for (const Kind& a : kinds_) {
    for (const Kind& b : kinds_) {
      if (a.format >= b.format) continue;
      const fs::path folder = work_.path() / fmt::format("{}{}", static_cast<int>(a.format),
                                                         static_cast<int>(b.format));
      fs::copy(a.folder, folder);
      fs::copy(b.folder, folder);
      SCOPED_TRACE(folder);
      const auto unclear = DigestOf(folder);
      if (b.format == SourceFormat::kMindFormers) {
        EXPECT_TRUE(unclear.ok());  // its metadata.json names its files, others get a warning
      } else {
        EXPECT_EQ(unclear.status().code(), StatusCode::kMismatch) << unclear.status().message();
        EXPECT_EQ(unclear.status().option(), "source.format");
      }
      for (const Kind& kind : kinds_) {
        const auto chosen = DigestOf(folder, kind.format);
        if (&kind == &a || &kind == &b) {
          ASSERT_TRUE(chosen.ok()) << chosen.status().message();
          EXPECT_EQ(*chosen, *DigestOf(kind.folder));
        } else {
          EXPECT_FALSE(chosen.ok());
        }
      }
    }
  }
}

TEST_F(SourceFormatTest, HasToBeThere) {
  for (const Kind& kind : kinds_) {
    EXPECT_EQ(*DigestOf(kind.folder, kind.format), *DigestOf(kind.folder));
    for (const Kind& other : kinds_) {
      if (&kind == &other) continue;
      EXPECT_NE(*DigestOf(kind.folder), *DigestOf(other.folder));
      if (other.format == SourceFormat::kPlain) continue;
      const auto missing = DigestOf(kind.folder, other.format);
      EXPECT_EQ(missing.status().code(), StatusCode::kNotFound) << missing.status().message();
      EXPECT_EQ(missing.status().option(), "source.format");
    }
  }
}

// The file that names the latest checkpoint is of MindFormers and Megatron.
TEST_F(SourceFormatTest, OfFilesBesideATracker) {
  const fs::path folder = work_.path() / "tracked";
  fs::copy(kCases / "mindformers2" / "case_000" / "input", folder, fs::copy_options::recursive);
  for (const Kind& kind : kinds_) {
    if (kind.format == SourceFormat::kMindFormers) continue;
    const fs::path both = work_.path() / fmt::format("tracked{}", static_cast<int>(kind.format));
    fs::copy(folder, both, fs::copy_options::recursive);
    fs::copy(kind.folder, both);
    SCOPED_TRACE(both);
    for (const Kind& chosen : {kind, kinds_[2]}) {
      const auto digest = DigestOf(both, chosen.format);
      ASSERT_TRUE(digest.ok()) << digest.status().message();
      EXPECT_EQ(*digest, *DigestOf(chosen.folder));
    }
  }
}

TEST_F(SourceFormatTest, OfARunFolderIgnoresItsStrategies) {
  const fs::path run = work_.path() / "run";
  fs::create_directories(run / "checkpoint" / "rank_0");
  fs::create_directories(run / "strategy");
  std::ofstream(run / "strategy" / "ckpt_strategy_rank_0.ckpt") << "none";
  fs::copy(kinds_[2].folder, run / "checkpoint");
  const auto digest = DigestOf(run, SourceFormat::kMindFormers);
  ASSERT_TRUE(digest.ok()) << digest.status().message();
  EXPECT_EQ(*digest, *DigestOf(kinds_[2].folder));
}

TEST_F(SourceFormatTest, OfAPathThatIsNotThereSaysSo) {
  const auto missing = DigestOf(work_.path() / "gone", SourceFormat::kDcp);
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_EQ(missing.status().option(), "");
}

TEST_F(SourceFormatTest, IsTakenFromTheLastRun) {
  const fs::path folder = work_.path() / "proved";
  fs::copy(kinds_[1].folder, folder);
  fs::copy(kinds_[3].folder, folder);
  ConvertOptions options;
  options.source = {.path = folder, .format = SourceFormat::kDcp};
  options.target = {.folder = work_.path() / "target", .format = TargetFormat::kHuggingFace};
  for (uint64_t share = 0; share < 2; ++share) {
    options.shard = {share, 2};
    const auto report = Convert(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
  }
  ConversionSpec against;
  against.source.path = folder;
  against.target.folder = options.target.folder;
  const auto proved = VerifyAgainst(against);
  ASSERT_TRUE(proved.ok()) << proved.status().message();
  EXPECT_TRUE(proved->equal());
  EXPECT_THAT(proved->from_origin, testing::Contains("source.format"));
  against.source.format = SourceFormat::kHuggingFaceShards;
  const auto other = VerifyAgainst(against);
  EXPECT_FALSE(other.ok() && other->equal());
}

TEST_F(SourceFormatTest, IsOfACheckpointThatAStrategyIsMadeLike) {
  const fs::path folder = work_.path() / "like";
  fs::copy(kinds_[1].folder, folder);
  fs::copy(kinds_[3].folder, folder);
  MakeStrategyOptions make;
  make.cluster.data_parallel = 2;
  make.like.path = kinds_[3].folder;
  make.output = work_.path() / "alone.ckpt";
  const auto alone = MakeStrategy(make);
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  make.like.path = folder;
  make.output = work_.path() / "chosen.ckpt";
  EXPECT_EQ(MakeStrategy(make).status().option(), "source.format");
  make.like.format = SourceFormat::kDcp;
  const auto chosen = MakeStrategy(make);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(ReadFile(make.output), ReadFile(work_.path() / "alone.ckpt"));
  // A strategy is of no such kind.
  make.like.path = work_.path() / "alone.ckpt";
  make.force = true;
  EXPECT_FALSE(MakeStrategy(make).ok());
  make.like.format.reset();
  EXPECT_TRUE(MakeStrategy(make).ok());
}

TEST_F(SourceFormatTest, IsOfAFolderWithoutAStrategy) {
  for (const SourceSpec& source :
       {SourceSpec{.path = "a", .strategy = "s.ckpt", .format = SourceFormat::kDcp},
        SourceSpec{.path = "rank_{rank}", .format = SourceFormat::kFsdp}}) {
    const auto report = DigestCheckpoint({.source = source});
    EXPECT_EQ(report.status().option(), "source.format") << report.status().message();
  }
}

TEST_F(SourceFormatTest, CountsForListsToo) {
  const fs::path folder = work_.path() / "both";
  fs::copy(kinds_[0].folder, folder);
  fs::copy(kinds_[4].folder, folder);
  EXPECT_FALSE(ListRankFiles({.path = folder}).ok());
  const auto plain = ListRankFiles({.path = folder, .format = SourceFormat::kPlain});
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_EQ(plain->files.size(), 1U);
  const auto ranks = ListRankFiles({.path = folder, .format = SourceFormat::kFsdp});
  ASSERT_TRUE(ranks.ok()) << ranks.status().message();
  EXPECT_EQ(ranks->files.size(), 2U);
  const auto of_step =
      ListRankFiles({.path = folder, .format = SourceFormat::kFsdp, .suffix = "-1_100"});
  ASSERT_TRUE(of_step.ok()) << of_step.status().message();
  EXPECT_EQ(of_step->files.size(), 2U);
  EXPECT_FALSE(ListRankFiles({.path = "rank_{rank}", .format = SourceFormat::kFsdp}).ok());
}

}  // namespace
}  // namespace reshard::sharded_golden_test
