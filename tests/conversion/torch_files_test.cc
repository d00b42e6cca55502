// Files of torch.save as sources: state dicts in one file, in files that an index names, and in the
// files of FSDP's ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/convert.h"
#include "reshard/merge.h"
#include "reshard/verify.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/folder_contents.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/torch_bytes.h"
#include "tests/support/view_check.h"
#include "tests/support/zip_bytes.h"

namespace reshard::torch_files_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

const fs::path kTorchFiles = fs::path(RESHARD_TESTS_DIR) / "golden" / "data" / "torch_files";

std::pair<std::string, std::string> Entry(std::string_view key, const std::string& value) {
  return {PickledText(key), value};
}

// The contents of the tensors of a safetensors file, by a reader of its own.
std::map<std::string, std::string> ContentsOf(const fs::path& path) {
  const std::string bytes = ReadFile(path);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  const json header = json::parse(bytes.substr(sizeof(length), length));
  std::map<std::string, std::string> contents;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const size_t begin = entry["data_offsets"][0];
    const size_t end = entry["data_offsets"][1];
    contents[name] = bytes.substr(sizeof(length) + length + begin, end - begin);
  }
  return contents;
}

class TorchFilesTest : public testing::Test {
 protected:
  TorchFilesTest() {
    options_.target.folder = work_.path() / "target";
    options_.target.format = TargetFormat::kHuggingFace;
  }

  // The tensors of the one file of the target.
  std::map<std::string, std::string> Target() const {
    return ContentsOf(fs::path(options_.target.folder) / "model.safetensors");
  }

  const TemporaryFolder work_{MemoryFolder()};
  ConvertOptions options_;
};

// A state dict with tied weights and a part of a larger storage.
std::string TiedFile() {
  return TorchFile(
      PickleOf(PickledDict(
          {Entry(
               "model",
               PickledDict(
                   {Entry("embedding", PickledWhole("0", {2, 2})),
                    Entry("norm", PickledWhole("1", {2})), Entry("head", PickledWhole("0", {2, 2})),
                    Entry("last",
                          Pickled({.elements = 4, .offset = 2, .shape = {2}, .strides = {1}}))})),
           Entry("step", PickledInteger(7))})),
      {"0123456789ABCDEF", "abcdefgh"});
}

TEST_F(TorchFilesTest, BecomesTheTensorsOfItsDict) {
  options_.source.path = work_.Write("model.pt", TiedFile());
  const auto report = Convert(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(Target(), (std::map<std::string, std::string>{{"model.embedding", "0123456789ABCDEF"},
                                                          {"model.head", "0123456789ABCDEF"},
                                                          {"model.last", "89ABCDEF"},
                                                          {"model.norm", "abcdefgh"}}));
  EXPECT_EQ(report->crc_files, 1U);
  EXPECT_EQ(report->crc_bytes, 24U);
  EXPECT_THAT(report->warnings,
              testing::Contains(Says(WarningCode::kLeftOut, Naming("model.pt", "1 value "))));
  ExpectViewHasFiles(options_);
  ConversionSpec against;
  against.source = options_.source;
  against.target = options_.target;
  const auto proved = VerifyAgainst(against);
  ASSERT_TRUE(proved.ok()) << proved.status().message();
  EXPECT_THAT(proved->differences, IsEmpty());
  DiffOptions diff;
  diff.source = options_.source;
  diff.b.path = options_.target.folder;
  const auto same = Diff(diff);
  ASSERT_TRUE(same.ok()) << same.status().message();
  EXPECT_TRUE(same->equal());
}

TEST_F(TorchFilesTest, IsCutByAStrategy) {
  options_.source.path = work_.Write("model.pt", TiedFile());
  options_.target.format = TargetFormat::kCkpt;
  options_.target.strategy = work_.Write(
      "strategy.ckpt", ProtobufStrategy(0, {{"model.head", MakeLayout({2}, {{0}, {-1}})}}));
  options_.target.names = "rank_{rank}.ckpt";
  options_.selection.unmatched = Selection::Unmatched::kCopy;
  const auto report = Convert(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const auto file = Checkpoint::Open(options_.target.folder + "/rank_1.ckpt");
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto head = file->View("model.head");
  ASSERT_TRUE(head.ok()) << head.status().message();
  ASSERT_EQ(head->front().size(), 8U);
  EXPECT_EQ(std::memcmp(head->front().data(), "89ABCDEF", 8), 0);
  EXPECT_EQ(file->View("model.embedding")->front().size(), 16U);
}

TEST_F(TorchFilesTest, OneIsOpenedByItself) {
  const auto file = Checkpoint::Open(work_.Write("model.pt", TiedFile()));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->parameters().size(), 4U);
  EXPECT_EQ(file->crc(), std::nullopt);
  const auto last = file->View("model.last");
  ASSERT_TRUE(last.ok()) << last.status().message();
  EXPECT_EQ(std::memcmp(last->front().data(), "89ABCDEF", 8), 0);
}

TEST_F(TorchFilesTest, EveryFlippedBitOfAContentIsFound) {
  const std::string good = TiedFile();
  for (const std::string_view content : {"0123456789ABCDEF", "abcdefgh"}) {
    const size_t begin = good.find(content);
    ASSERT_NE(begin, std::string::npos);
    for (size_t i = 0; i < content.size(); ++i) {
      std::string bad = good;
      bad[begin + i] = static_cast<char>(bad[begin + i] ^ 1 << i % 8);
      options_.source.path = work_.Write("bad.pt", bad);
      const Status status = Convert(options_).status();
      EXPECT_EQ(status.code(), StatusCode::kCorrupt) << status.message();
      EXPECT_THAT(status.message(),
                  Naming("bad.pt", content.size() == 8 ? "\"model.norm\"" : "\"model.embedding\"",
                         "CRC-32"));
      EXPECT_FALSE(fs::exists(options_.target.folder));
      ContentOptions digest;
      digest.source = options_.source;
      EXPECT_EQ(DigestCheckpoint(digest).status().code(), StatusCode::kCorrupt);
    }
  }
  options_.checks.checksum = false;
  EXPECT_TRUE(Convert(options_).ok());
}

// torch.save after set_crc32_options(False).
std::string FileWithoutCrcs(const std::string& content, uint32_t crc_of_version = 0) {
  const std::string pickle = PickleOf(PickledDict({Entry("w", PickledWhole("0", {2}))}));
  return ZipOf({{.name = "w/data.pkl", .content = pickle, .crc = 0},
                {.name = "w/byteorder", .content = "little", .crc = 0},
                {.name = "w/data/0", .content = content, .crc = 0},
                {.name = "w/version", .content = "3\n", .crc = crc_of_version}});
}

TEST_F(TorchFilesTest, AFileWithoutCrcsIsRead) {
  options_.source.path = work_.Write("model.pt", FileWithoutCrcs("01234567"));
  const auto report = Convert(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(Target(), (std::map<std::string, std::string>{{"w", "01234567"}}));
  EXPECT_EQ(report->crc_files, 0U);
  // If a member states one, 0 is that of the others.
  options_.source.path = work_.Write("bad.pt", FileWithoutCrcs("01234567", NaiveCrc32("3\n")));
  options_.force = true;
  EXPECT_EQ(Convert(options_).status().code(), StatusCode::kCorrupt);
}

// The rest is less than an element.
TEST_F(TorchFilesTest, AStorageMayHaveARest) {
  const auto file = [](const std::string& content) {
    return TorchFile(PickleOf(PickledDict({Entry("w", PickledWhole("0", {2}))})), {content});
  };
  options_.source.path = work_.Write("model.pt", file("01234567abc"));
  ASSERT_TRUE(Convert(options_).ok()) << Convert(options_).status().message();
  EXPECT_EQ(Target(), (std::map<std::string, std::string>{{"w", "01234567"}}));
  for (const std::string content : {"01234567abcd", "0123456"}) {
    options_.source.path = work_.Write("bad.pt", file(content));
    EXPECT_EQ(Convert(options_).status().code(), StatusCode::kCorrupt) << content;
  }
}

TEST_F(TorchFilesTest, TheNameOfALoneFileDoesNotMatter) {
  options_.source.path = work_.Write("epoch.ckpt", TiedFile());
  options_.target.format.reset();
  options_.target.strategy = work_.Write(
      "strategy.ckpt", ProtobufStrategy(0, {{"model.head", MakeLayout({1}, {{-1}, {-1}})}}));
  options_.selection.unmatched = Selection::Unmatched::kCopy;
  const auto report = Convert(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings,
              testing::Contains(Says(WarningCode::kLeftOut, Naming("epoch.ckpt", "1 value "))));
  EXPECT_TRUE(fs::exists(options_.target.folder + "/rank_0"));
  for (const auto& file : fs::directory_iterator(options_.target.folder + "/rank_0")) {
    EXPECT_EQ(file.path().extension(), ".safetensors");
  }
}

TEST_F(TorchFilesTest, RecodeAndMergeTellOfOtherValues) {
  const auto says = testing::Contains(Says(WarningCode::kLeftOut, Naming("a.ckpt", "1 value ")));
  RecodeOptions recode;
  recode.source.path = work_.Write("a.ckpt", TiedFile());
  recode.target.folder = work_.path() / "recoded";
  recode.target.format = TargetFormat::kSafetensors;
  const auto recoded = Recode(recode);
  ASSERT_TRUE(recoded.ok()) << recoded.status().message();
  EXPECT_THAT(recoded->warnings, says);
  MergeOptions merge;
  merge.files = {recode.source.path};
  merge.segments = true;
  merge.output = work_.path() / "merged.safetensors";
  const auto merged = Merge(merge);
  ASSERT_TRUE(merged.ok()) << merged.status().message();
  EXPECT_THAT(merged->warnings, says);
}

TEST_F(TorchFilesTest, AMergeLeavesOutWhatCannotBeRead) {
  MergeOptions merge;
  merge.files = {kTorchFiles / "pytorch_model.bin"};
  merge.segments = true;
  merge.output = work_.path() / "merged.safetensors";
  EXPECT_EQ(Merge(merge).status().code(), StatusCode::kUnsupported);
  merge.selection.exclude = {"t"};
  const auto merged = Merge(merge);
  ASSERT_TRUE(merged.ok()) << merged.status().message();
  EXPECT_THAT(merged->warnings,
              testing::Not(testing::Contains(Says(WarningCode::kUnusedPatterns))));
  EXPECT_EQ(ContentsOf(merge.output).size(), 7U);
}

TEST_F(TorchFilesTest, ALocalShardedTensorIsNoTensor) {
  const std::string sharded = PickledCall(
      "torch._tensor", "_rebuild_from_type_v2",
      {PickledGlobal("torch._utils", "_rebuild_wrapper_subclass"),
       PickledGlobal("torch.distributed._shard.sharded_tensor.api", "ShardedTensor"),
       PickledTuple({PickledGlobal("torch.distributed._shard.sharded_tensor.api", "ShardedTensor"),
                     PickledGlobal("torch", "float32"), PickledIntegers({4})}),
       PickledTuple({PickledList({PickledWhole("0", {2})})})});
  options_.source.path = work_.Write(
      "model.pt", TorchFile(PickleOf(PickledDict({Entry("w", sharded)})), {"01234567"}));
  const Status status = Convert(options_).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.message();
  EXPECT_THAT(status.message(), Naming("\"w\"", "ShardedTensor", "torch.distributed.checkpoint"));
}

TEST_F(TorchFilesTest, ATensorThatCannotBeReadMayBeLeftOut) {
  options_.source.path = kTorchFiles / "pytorch_model.bin";
  const Status status = Convert(options_).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.message();
  EXPECT_THAT(status.message(), Naming("pytorch_model.bin", "\"t\"", "[5, 3]", "[1, 5]"));
  EXPECT_FALSE(fs::exists(options_.target.folder));
  options_.selection.exclude = {"t"};
  const auto report = Convert(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings,
              testing::Not(testing::Contains(Says(WarningCode::kUnusedPatterns))));
  const auto tensors = Target();
  EXPECT_EQ(tensors.size(), 7U);
  EXPECT_EQ(tensors.at("embedding.word_embeddings.weight"), tensors.at("output_layer.weight"));
  EXPECT_EQ(tensors.at("slice2").size(), 160U);
}

// Arguments and random states are not looked at.
TEST_F(TorchFilesTest, OfMegatronHasTheModel) {
  options_.source.path = kTorchFiles / "model_optim_rng.pt";
  options_.selection.exclude = {"model.t"};
  const auto report = Convert(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const auto tensors = Target();
  EXPECT_TRUE(tensors.contains("model.decoder.layers.0.self_attention.linear_qkv.weight"));
  EXPECT_EQ(tensors.at("model.v").size(), 48U);
  EXPECT_THAT(report->warnings, testing::Contains(Says(WarningCode::kLeftOut)));
}

// A linear layer, an optimizer and a model whose state dict is beside them.
TEST_F(TorchFilesTest, ModulesBesideAStateDictAreNamed) {
  options_.source.path = work_.Write("objects.ckpt", ReadFile(kTorchFiles / "objects.pt"));
  const auto report = Convert(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(Target().size(), 4U);
  EXPECT_THAT(report->warnings,
              testing::Contains(Says(WarningCode::kLeftOut,
                                     Naming("objects.ckpt", "24 B", "\"net\"", "Linear"))));
  for (const Warning& warning : report->warnings) {
    EXPECT_EQ(warning.message.find("\"tied\""), std::string::npos) << warning.message;
  }
}

TEST_F(TorchFilesTest, AxesThatCutInAnotherOrderAreRefused) {
  options_.source.path = kTorchFiles / "shard_order.pt";
  const Status status = Convert(options_).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.message();
  EXPECT_THAT(status.message(), Naming("shard_order.pt", "\"w\"", "[1, 0]", "shard_order"));
  options_.selection.exclude = {"w"};
  EXPECT_TRUE(Convert(options_).ok());
  EXPECT_EQ(Target().at("p").size(), 12U);
}

TEST_F(TorchFilesTest, OldFilesWithoutAZipAreRefused) {
  options_.source.path = kTorchFiles / "legacy.bin";
  const Status status = Convert(options_).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.message();
  EXPECT_THAT(status.message(), Naming("legacy.bin", "with torch"));
}

TEST_F(TorchFilesTest, AnIndexNamesThem) {
  const auto file = [](std::string_view name, const std::string& content) {
    return TorchFile(PickleOf(PickledDict({Entry(name, PickledWhole("0", {2}))})), {content});
  };
  work_.Write("in/pytorch_model-00001-of-00002.bin", file("a", "01234567"));
  work_.Write("in/pytorch_model-00002-of-00002.bin", file("b", "abcdefgh"));
  work_.Write("in/training_args.bin", "not read");
  work_.Write("in/last.ckpt", "not read");
  work_.Write("in/pytorch_model.bin.index.json",
              R"({"metadata":{"total_size":16},"weight_map":{)"
              R"("a":"pytorch_model-00001-of-00002.bin","b":"pytorch_model-00002-of-00002.bin"}})");
  options_.source.path = work_.path() / "in";
  const auto report = Convert(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(Target(), (std::map<std::string, std::string>{{"a", "01234567"}, {"b", "abcdefgh"}}));
  EXPECT_THAT(report->warnings,
              testing::Contains(Says(WarningCode::kFilesNotRead, Naming("left out: last.ckpt"))));
  EXPECT_EQ(report->crc_files, 2U);
  fs::remove(work_.path() / "in/pytorch_model-00002-of-00002.bin");
  options_.target.folder = work_.path() / "other";
  EXPECT_EQ(Convert(options_).status().code(), StatusCode::kMismatch);
}

TEST_F(TorchFilesTest, SafetensorsFilesComeBeforeThem) {
  const std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  work_.Write("in/model.safetensors",
              static_cast<char>(header.size()) + std::string(7, '\0') + header + "x");
  work_.Write("in/pytorch_model.bin.index.json", R"({"weight_map":{"a":"gone.bin"}})");
  options_.source.path = work_.path() / "in";
  ASSERT_TRUE(Convert(options_).ok());
  EXPECT_EQ(Target(), (std::map<std::string, std::string>{{"a", "x"}}));
}

// A DTensor "w" of four floats, of which each of two ranks has two, and a plain tensor.
std::string RankFile(const std::string& part, const std::string& plain, int64_t full = 4) {
  const auto state = [](const std::string& object, const std::string& entries) {
    return object + ")\x81" + entries + "b";
  };
  const std::string mesh = state(
      PickledGlobal("torch.distributed.device_mesh", "DeviceMesh"),
      PickledDict({Entry(
          "mesh",
          Pickled(
              {.type = "LongStorage", .key = "2", .elements = 2, .shape = {2}, .strides = {1}}))}));
  const std::string shard =
      state(PickledGlobal("torch.distributed.tensor.placement_types", "Shard"),
            PickledDict({Entry("dim", PickledInteger(0))}));
  const std::string spec =
      state(PickledGlobal("torch.distributed.tensor._dtensor_spec", "DTensorSpec"),
            PickledDict({Entry("mesh", mesh), Entry("placements", PickledTuple({shard}))}));
  const std::string dtensor = PickledCall(
      "torch._tensor", "_rebuild_from_type_v2",
      {PickledGlobal("torch._utils", "_rebuild_wrapper_subclass"),
       PickledGlobal("torch.distributed.tensor", "DTensor"),
       PickledTuple({PickledGlobal("torch.distributed.tensor", "DTensor"),
                     PickledGlobal("torch", "float32"), PickledIntegers({full})}),
       PickledDict({Entry("_local_tensor", PickledWhole("0", {2})), Entry("_spec", spec)})});
  return TorchFile(
      PickleOf(PickledDict({Entry("w", dtensor), Entry("plain", PickledWhole("1", {1}))})),
      {part, plain, std::string("\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 16)});
}

class TorchRanksTest : public TorchFilesTest {
 protected:
  TorchRanksTest() { options_.source.path = work_.path() / "ranks"; }

  void WriteRank(int64_t rank, const std::string& bytes) const {
    work_.Write("ranks/model_world_size_2_rank_" + std::to_string(rank) + ".pt", bytes);
  }
  void ExpectRefused(StatusCode code, const std::vector<std::string>& words) {
    const Status status = Convert(options_).status();
    EXPECT_EQ(status.code(), code) << status.message();
    for (const std::string& word : words) EXPECT_THAT(status.message(), Naming(word));
    EXPECT_FALSE(fs::exists(options_.target.folder));
  }
};

TEST_F(TorchRanksTest, AreJoined) {
  WriteRank(0, RankFile("01234567", "same"));
  WriteRank(1, RankFile("abcdefgh", "same"));
  work_.Write("ranks/optim_world_size_2_rank_0.pt", "not read");
  const auto report = Convert(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(Target(),
            (std::map<std::string, std::string>{{"plain", "same"}, {"w", "01234567abcdefgh"}}));
  EXPECT_THAT(report->warnings, testing::Contains(Says(WarningCode::kFilesNotRead,
                                                       Naming("optim_world_size_2_rank_0.pt"))));
  EXPECT_EQ(report->crc_files, 2U);
}

TEST_F(TorchRanksTest, AFlippedBitIsFound) {
  std::string bad = RankFile("abcdefgh", "same");
  bad[bad.find("abcdefgh")] = 'A';
  WriteRank(0, RankFile("01234567", "same"));
  WriteRank(1, bad);
  ExpectRefused(StatusCode::kCorrupt, {"rank_1.pt", "\"w\"", "CRC-32"});
}

TEST_F(TorchRanksTest, ReplicasThatDifferAreRefused) {
  WriteRank(0, RankFile("01234567", "same"));
  WriteRank(1, RankFile("abcdefgh", "diff"));
  options_.checks.replicas = CheckChoice::Replicas::kAll;
  ExpectRefused(StatusCode::kMismatch, {"\"plain\""});
}

TEST_F(TorchRanksTest, AccumulatedGradientsMayDiffer) {
  const std::string pickle = PickleOf(PickledDict({Entry("accu_grads.w", PickledWhole("0", {1}))}));
  WriteRank(0, TorchFile(pickle, {"same"}));
  WriteRank(1, TorchFile(pickle, {"else"}));
  EXPECT_TRUE(Convert(options_).ok());
  options_.force = true;
  options_.checks.replicas = CheckChoice::Replicas::kAll;
  const auto report = Convert(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->replicas->differing, 0U);
  EXPECT_THAT(report->replicas->own_values, ElementsAre("accu_grads.w"));
}

TEST_F(TorchRanksTest, AMissingRankIsNamed) {
  WriteRank(1, RankFile("abcdefgh", "same"));
  ExpectRefused(StatusCode::kMismatch, {"rank 0"});
}

TEST_F(TorchRanksTest, FilesOfTwoRunsAreRefused) {
  WriteRank(0, RankFile("01234567", "same"));
  WriteRank(1, RankFile("abcdefgh", "same"));
  work_.Write("ranks/model_world_size_4_rank_3.pt", RankFile("abcdefgh", "same"));
  ExpectRefused(StatusCode::kMismatch, {"model_world_size_4_rank_3.pt"});
}

TEST_F(TorchRanksTest, PartsThatDoNotFitAreRefused) {
  WriteRank(0, RankFile("01234567", "same", 6));
  WriteRank(1, RankFile("abcdefgh", "same", 6));
  ExpectRefused(StatusCode::kMismatch, {"rank_0.pt", "\"w\"", "[2]", "[6]"});
  WriteRank(0, RankFile("01234567", "same"));
  ExpectRefused(StatusCode::kMismatch, {"rank_1.pt", "\"w\"", "[6]"});
}

TEST_F(TorchRanksTest, AFileOfMindSporeIsRefused) {
  WriteRank(0, RankFile("01234567", "same"));
  WriteRank(1, TensorValue("plain", "Float32", {1}, "same"));
  ExpectRefused(StatusCode::kCorrupt,
                {"rank_1.pt", "expected a file of torch.save", "found a MindSpore checkpoint"});
}

TEST_F(TorchRanksTest, TwoFamiliesInAFolderAreRefused) {
  WriteRank(0, RankFile("01234567", "same"));
  WriteRank(1, RankFile("abcdefgh", "same"));
  work_.Write("ranks/model.safetensors", "x");
  ExpectRefused(StatusCode::kMismatch, {"model.safetensors"});
}

TEST_F(TorchRanksTest, OneFileAloneIsAPart) {
  options_.source.path = work_.Write("model_world_size_2_rank_0.pt", RankFile("01234567", "same"));
  ExpectRefused(StatusCode::kMismatch, {"model_world_size_2_rank_0.pt", "\"w\"", "[4]"});
  options_.checks.partial = true;
  ASSERT_TRUE(Convert(options_).ok());
  EXPECT_EQ(Target().at("w"), "01234567");
}

// Whatever the name of the file, and whatever asks for it.
TEST_F(TorchRanksTest, OneFileAloneIsNoTensorForAnyCommand) {
  const std::string renamed = work_.Write("renamed.ckpt", RankFile("01234567", "same"));
  const auto is_told = [](const Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.message();
    EXPECT_THAT(status.message(),
                Naming("renamed.ckpt", "\"w\"", "[4]", "model_world_size_2_rank_0.pt"));
  };
  options_.source.path = renamed;
  is_told(Convert(options_).status());
  is_told(Plan(options_).status());
  EXPECT_FALSE(fs::exists(options_.target.folder));
  ContentOptions digest;
  digest.source.path = renamed;
  for (const bool one_replica : {false, true}) {
    digest.one_replica = one_replica;
    is_told(DigestCheckpoint(digest).status());
  }
  ContentOptions statistics;
  statistics.source.path = renamed;
  const auto measured = MeasureValues(statistics);
  ASSERT_TRUE(measured.ok()) << measured.status().message();
  EXPECT_THAT(measured->warnings,
              ElementsAre(Says(WarningCode::kMissingRanks, Naming("renamed.ckpt", "\"w\""))));
  DiffOptions diff;
  diff.source.path = renamed;
  diff.b.path = renamed;
  is_told(Diff(diff).status());
  is_told(Checkpoint::Open(renamed).status());
  is_told(ShardedCheckpoint::Open({.path = renamed}).status());
  RecodeOptions recode;
  recode.source.path = renamed;
  recode.target.folder = work_.path() / "recoded";
  recode.target.format = TargetFormat::kSafetensors;
  is_told(Recode(recode).status());
  EXPECT_FALSE(fs::exists(recode.target.folder));
  MergeOptions merge;
  merge.files = {renamed};
  merge.output = work_.path() / "merged.safetensors";
  for (const bool segments : {false, true}) {
    merge.segments = segments;
    is_told(Merge(merge).status());
  }
  EXPECT_FALSE(fs::exists(merge.output));
  // The whole tensors beside it are.
  digest.source.path = renamed;
  digest.exclude = {"w"};
  const auto others = DigestCheckpoint(digest);
  ASSERT_TRUE(others.ok()) << others.status().message();
  EXPECT_EQ(others->parameters.size(), 1U);
  merge.checks.partial = true;
  EXPECT_TRUE(Merge(merge).ok());
}

TEST_F(TorchRanksTest, OneFileAloneIsListed) {
  const auto file = Checkpoint::Open(work_.Write("renamed.pt", RankFile("01234567", "same")),
                                     nullptr, Checkpoint::Purpose::kListing);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->parameters().size(), 2U);
  EXPECT_THAT(
      file->warnings(),
      ElementsAre(Says(WarningCode::kMissingRanks,
                       Naming("renamed.pt", "\"w\"", "[4]", "model_world_size_2_rank_0.pt"))));
}

TEST_F(TorchRanksTest, OneFileAloneIsListedOfAnIndex) {
  work_.Write("indexed/part.bin", RankFile("01234567", "same"));
  work_.Write("indexed/pytorch_model.bin.index.json",
              R"({"weight_map":{"w":"part.bin","plain":"part.bin"}})");
  const auto files = ListRankFiles({.path = work_.path() / "indexed"});
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_THAT(files->warnings, testing::Contains(Says(WarningCode::kMissingRanks,
                                                      Naming("part.bin", "\"w\"", "[4]"))));
}

TEST_F(TorchRanksTest, ThatCannotBeReadAreNamed) {
  const std::string transposed = TorchFile(
      PickleOf(PickledDict(
          {Entry("t", Pickled({.key = "0", .elements = 6, .shape = {3, 2}, .strides = {1, 3}}))})),
      {"0123456789ABCDEFGHIJKLMN"});
  WriteRank(0, transposed);
  WriteRank(1, transposed);
  const Status status = ShardedCheckpoint::Open({.path = options_.source.path}).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.message();
  EXPECT_THAT(status.message(), Naming("\"t\"", "[1, 3]"));
}

TEST_F(TorchRanksTest, TensorsThatDoNotFitMayBeLeftOut) {
  WriteRank(0, RankFile("01234567", "same", 6));
  WriteRank(1, RankFile("abcdefgh", "same", 6));
  options_.selection.exclude = {"w"};
  const auto report = Convert(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(Target(), (std::map<std::string, std::string>{{"plain", "same"}}));
  EXPECT_THAT(report->warnings,
              testing::Not(testing::Contains(Says(WarningCode::kUnusedPatterns))));
}

TEST_F(TorchRanksTest, AccelerateNamesThemInItsOwnWay) {
  for (const std::string_view begin : {"pytorch_model_fsdp_rank", "pytorch_model_fsdp_1_rank"}) {
    const std::string folder = "of" + std::string(begin);
    work_.Write(folder + "/" + std::string(begin) + "0.bin", RankFile("01234567", "same"));
    options_.source.path = work_.path() / folder;
    options_.force = true;
    EXPECT_EQ(Convert(options_).status().code(), StatusCode::kMismatch) << begin;
    work_.Write(folder + "/" + std::string(begin) + "1.bin", RankFile("abcdefgh", "same"));
    const auto report = Convert(options_);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(Target(),
              (std::map<std::string, std::string>{{"plain", "same"}, {"w", "01234567abcdefgh"}}));
  }
  work_.Write("ofpytorch_model_fsdp_rank/pytorch_model_fsdp_1_rank0.bin",
              RankFile("01234567", "same"));
  options_.source.path = work_.path() / "ofpytorch_model_fsdp_rank";
  options_.target.folder = work_.path() / "other";
  ExpectRefused(StatusCode::kMismatch, {"pytorch_model_fsdp_1_rank0.bin"});
}

TEST_F(TorchRanksTest, AnIndexOfPyTorchBesideThemIsNoticed) {
  WriteRank(0, RankFile("01234567", "same"));
  WriteRank(1, RankFile("abcdefgh", "same"));
  work_.Write("ranks/pytorch_model.bin.index.json", R"({"weight_map":{"a":"gone.bin"}})");
  ExpectRefused(StatusCode::kMismatch,
                {"pytorch_model.bin.index.json", "model_world_size_2_rank_"});
}

// Each rank of that save has its own values of a replicated tensor.
TEST_F(TorchRanksTest, OfPyTorchAreJoined) {
  options_.source.path = kTorchFiles / "ranks_2";
  options_.checks.replicas = CheckChoice::Replicas::kAll;
  ExpectRefused(StatusCode::kMismatch, {"\"norm\""});
  options_.selection.exclude = {"norm"};
  const auto report = Convert(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const auto tensors = Target();
  EXPECT_EQ(tensors.size(), 4U);
  EXPECT_EQ(tensors.at("model.layers.2.w").size(), 80U);
}

}  // namespace
}  // namespace reshard::torch_files_test
