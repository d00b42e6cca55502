// Files one by one, in the other format or changed in theirs: which files, which names, what is
// refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/convert.h"
#include "reshard/strategy.h"
#include "src/job/file_digests.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/encrypted_bytes.h"
#include "tests/support/folder_contents.h"
#include "tests/support/says.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_tensor.h"

namespace reshard::recode_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class RecodeTest : public testing::Test {
 protected:
  RecodeTest() {
    options_.source.path = folder_.path() / "src";
    options_.target.folder = folder_.path() / "out";
    options_.target.format = TargetFormat::kSafetensors;
  }

  void AddFile(const std::string& path, const std::vector<TestTensor>& tensors) {
    fs::create_directories((folder_.path() / "src" / path).parent_path());
    folder_.Write("src/" + path, EncodeCheckpoint(tensors));
  }
  // The paths of what is written.
  std::vector<std::string> Recoded() {
    const auto report = Recode(options_);
    EXPECT_TRUE(report.ok()) << report.status().message();
    std::vector<std::string> paths;
    if (report.ok()) {
      warnings_ = report->warnings;
      for (const ConvertReport::File& file : report->files) paths.push_back(file.path);
    }
    return paths;
  }
  // Expects a failure that leaves nothing behind; returns the message.
  std::string Refused(StatusCode code) {
    const auto report = Recode(options_);
    EXPECT_EQ(report.status().code(), code) << report.status().message();
    EXPECT_FALSE(fs::exists(options_.target.folder));
    return report.status().message();
  }
  std::vector<std::string> NamesOf(const std::string& path) {
    const auto file = Checkpoint::Open((folder_.path() / "out" / path).string());
    EXPECT_TRUE(file.ok()) << file.status().message();
    std::vector<std::string> names;
    if (!file.ok()) return names;
    for (const auto& parameter : file->parameters()) names.emplace_back(parameter.name);
    return names;
  }

  const TemporaryFolder folder_;
  RecodeOptions options_;
  std::vector<Warning> warnings_;
};

TEST_F(RecodeTest, TakesAllFilesOfFoldersThatBeginWithRank) {
  const std::vector<TestTensor> tensors = {MakeTensor("w", DType::kFloat32, {2})};
  AddFile("rank_0/net-1_5.ckpt", tensors);
  AddFile("rank_0/net-1_10.ckpt", tensors);
  AddFile("rank10/net.ckpt", tensors);
  AddFile("rank2/net.ckpt", tensors);
  AddFile("rank2/.hidden.ckpt", tensors);
  AddFile("rank2/deeper/net.ckpt", tensors);
  AddFile("node/net.ckpt", tensors);
  AddFile("net.ckpt", tensors);
  EXPECT_THAT(Recoded(), ElementsAre("rank2/net.safetensors", "rank10/net.safetensors",
                                     "rank_0/net-1_5.safetensors", "rank_0/net-1_10.safetensors"));
  options_.force = true;
  options_.files = "_(5|7)\\.";
  EXPECT_THAT(Recoded(), ElementsAre("rank_0/net-1_5.safetensors"));
  options_.files = "(";
  EXPECT_EQ(Recode(options_).status().code(), StatusCode::kInvalidArgument);
  options_.files = "rank";  // of folders no name counts
  EXPECT_EQ(Recode(options_).status().code(), StatusCode::kNotFound);
}

TEST_F(RecodeTest, TakesTheFilesOfAFolderWithoutSuchFoldersAndBesideThem) {
  AddFile("a.ckpt.ckpt", {MakeTensor("w", DType::kBFloat16, {3})});
  options_.target.folder = options_.source.path;
  EXPECT_THAT(Recoded(), ElementsAre("a.ckpt.safetensors"));
  options_.target.format = TargetFormat::kCkpt;
  options_.target.folder = folder_.path() / "out";
  EXPECT_THAT(Recoded(), ElementsAre("a.ckpt.ckpt"));
  EXPECT_EQ(ReadFile(folder_.path() / "out/a.ckpt.ckpt"),
            ReadFile(folder_.path() / "src/a.ckpt.ckpt"));
}

TEST_F(RecodeTest, ReplacesNoSource) {
  AddFile("a.ckpt", {MakeTensor("w", DType::kFloat32, {3})});
  fs::create_hard_link(folder_.path() / "src/a.ckpt", folder_.path() / "src/a.safetensors");
  options_.target.folder = options_.source.path;
  options_.force = true;
  const auto report = Recode(options_);
  EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(report.status().message(), Naming("a.safetensors"));
}

TEST_F(RecodeTest, RenamesWithinEachFile) {
  AddFile("rank_0/n.ckpt",
          {MakeTensor("a", DType::kFloat32, {2}), MakeTensor("c", DType::kFloat32, {2})});
  AddFile("rank_1/n.ckpt", {MakeTensor("b", DType::kFloat32, {2})});
  options_.selection.renames.names = {{"a", "b"}};
  Recoded();
  EXPECT_THAT(NamesOf("rank_0/n.safetensors"), ElementsAre("b", "c"));
  EXPECT_THAT(NamesOf("rank_1/n.safetensors"), ElementsAre("b"));
  fs::remove_all(options_.target.folder);
  options_.selection.renames.names = {{"a", "c"}};
  EXPECT_THAT(Refused(StatusCode::kMismatch), Naming("\"a\"", "\"c\""));
}

TEST_F(RecodeTest, OrdersCheckpointsByTheOldNames) {
  AddFile("n.ckpt", {MakeTensor("x", DType::kInt8, {2}), MakeTensor("b", DType::kFloat32, {2}),
                     MakeTensor("a", DType::kInt8, {2})});
  EXPECT_THAT(Recoded(), ElementsAre("n.safetensors"));
  EXPECT_THAT(NamesOf("n.safetensors"), ElementsAre("b", "a", "x"));
  options_.source.path = options_.target.folder;
  options_.target.folder = folder_.path() / "back";
  options_.target.format = TargetFormat::kCkpt;
  options_.selection.renames.names = {{"a", "z"}};
  Recoded();
  EXPECT_THAT(NamesOf("../back/n.ckpt"), ElementsAre("z", "b", "x"));
}

TEST_F(RecodeTest, LeavesTextsOutOrRefusesThem) {
  fs::create_directory(options_.source.path);
  folder_.Write("src/n.ckpt", EncodeCheckpoint({MakeTensor("w", DType::kFloat32, {2})}) +
                                  TensorValue("note", "str", {0}, std::string("h\0\0\0", 4)));
  Recoded();
  EXPECT_THAT(NamesOf("n.safetensors"), ElementsAre("w"));
  EXPECT_THAT(warnings_, ElementsAre(Says(WarningCode::kLeftOut, HasSubstr("\"note\""))));
  fs::remove_all(options_.target.folder);
  options_.selection.unmatched = Selection::Unmatched::kError;
  EXPECT_THAT(Refused(StatusCode::kMismatch), HasSubstr("\"note\""));
}

TEST_F(RecodeTest, TakesCkptFilesToCkptIfAnOptionChangesThem) {
  const std::vector<TestTensor> tensors = {MakeTensor("x", DType::kInt8, {2}),
                                           MakeTensor("a", DType::kFloat32, {3})};
  AddFile("rank_0/n.ckpt", tensors);
  options_.target.format = TargetFormat::kCkpt;
  EXPECT_THAT(Refused(StatusCode::kInvalidArgument), Naming("rank_0/n.ckpt", "`crc`"));
  // The bytes of the source, in its order, and a trailer.
  options_.target.states_crc = true;
  EXPECT_THAT(Recoded(), ElementsAre("rank_0/n.ckpt"));
  const std::string source = ReadFile(folder_.path() / "src/rank_0/n.ckpt");
  const std::string with_crc = ReadFile(folder_.path() / "out/rank_0/n.ckpt");
  EXPECT_GT(with_crc.size(), source.size());
  EXPECT_TRUE(with_crc.starts_with(source));
  EXPECT_EQ(with_crc.substr(source.size()),
            FindCrc((folder_.path() / "out/rank_0/n.ckpt").string(), {})->text.bytes);
  // Without it again, with a new name.
  options_.source.path = options_.target.folder;
  options_.target.folder = folder_.path() / "renamed";
  options_.target.states_crc = false;
  options_.selection.renames.names = {{"x", "y"}};
  Recoded();
  EXPECT_THAT(NamesOf("../renamed/rank_0/n.ckpt"), ElementsAre("y", "a"));
  EXPECT_EQ(ReadFile(folder_.path() / "renamed/rank_0/n.ckpt").size(), source.size());
}

// MindSpore's bytes are in the golden tests.
TEST_F(RecodeTest, DecryptsOnlyIfItIsTold) {
  AddFile("n.ckpt", {MakeTensor("x", DType::kInt8, {2}), MakeTensor("a", DType::kFloat32, {3})});
  const std::string plain = ReadFile(folder_.path() / "src/n.ckpt");
  options_.target.format = TargetFormat::kCkpt;
  options_.target.encryption = TargetSpec::EncryptionMode::kAesGcm;
  options_.target.encryption_key = KeyOf("0123456789abcdef");
  Recoded();
  const auto encrypted = Checkpoint::Open(options_.target.folder + "/n.ckpt");
  EXPECT_EQ(encrypted.status().code(), StatusCode::kUnsupported);

  RecodeOptions decrypting = options_;
  decrypting.source.path = options_.target.folder;
  decrypting.source.key = options_.target.encryption_key;
  decrypting.target = {.folder = folder_.path() / "plain", .format = TargetFormat::kCkpt};
  options_ = decrypting;
  options_.selection.renames.names = {{"x", "y"}};
  EXPECT_THAT(Refused(StatusCode::kInvalidArgument), Naming("n.ckpt: is encrypted", "`decrypt`"));
  options_ = decrypting;
  options_.decrypt = true;
  EXPECT_THAT(Recoded(), ElementsAre("n.ckpt"));
  EXPECT_EQ(ReadFile(folder_.path() / "plain/n.ckpt"), plain);

  options_.target.folder = folder_.path() / "none";
  options_.source.key = nullptr;
  EXPECT_THAT(Refused(StatusCode::kInvalidArgument), HasSubstr("`decrypt` needs"));
  options_ = decrypting;
  options_.target.folder = folder_.path() / "none";
  options_.decrypt = true;
  options_.target.encryption = TargetSpec::EncryptionMode::kAesGcm;
  options_.target.encryption_key = options_.source.key;
  EXPECT_THAT(Refused(StatusCode::kInvalidArgument), HasSubstr("exclude each other"));
}

// The other format is preferred; a choice of names can still take the same one.
TEST_F(RecodeTest, TakesOneFormatOfAMixedFolder) {
  AddFile("a.ckpt", {MakeTensor("w", DType::kFloat32, {2})});
  AddFile("b.ckpt", {MakeTensor("w", DType::kFloat32, {2})});
  options_.files = "a";
  options_.target.folder = options_.source.path;
  EXPECT_THAT(Recoded(), ElementsAre("a.safetensors"));
  options_.files.clear();
  options_.target = {
      .folder = folder_.path() / "out", .format = TargetFormat::kCkpt, .states_crc = true};
  EXPECT_THAT(Recoded(), ElementsAre("a.ckpt"));
  options_.target.folder = folder_.path() / "more";
  options_.files = "[.]ckpt$";
  EXPECT_THAT(Recoded(), ElementsAre("a.ckpt", "b.ckpt"));
}

TEST_F(RecodeTest, NoOutputIsASource) {
  AddFile("n.ckpt", {MakeTensor("w", DType::kFloat32, {2})});
  const std::string before = ReadFile(folder_.path() / "src/n.ckpt");
  options_.target.format = TargetFormat::kCkpt;
  options_.target.states_crc = true;
  const auto refuses = [&] {
    for (const bool force : {false, true}) {
      options_.force = force;
      const auto report = Recode(options_);
      EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument) << report.status().message();
      EXPECT_THAT(report.status().message(), HasSubstr("would replace the source file"));
      EXPECT_EQ(ReadFile(folder_.path() / "src/n.ckpt"), before);
    }
  };
  options_.target.folder = options_.source.path;
  refuses();
  fs::create_directory_symlink("src", folder_.path() / "linked");
  options_.target.folder = folder_.path() / "linked";
  refuses();
  const fs::path out = folder_.path() / "out";
  fs::create_directory(out);
  options_.target.folder = out;
  fs::create_hard_link(folder_.path() / "src/n.ckpt", out / "n.ckpt");
  refuses();
  fs::remove(out / "n.ckpt");
  fs::create_symlink("../src/n.ckpt", out / "n.ckpt");
  refuses();
  // The source is the link.
  fs::remove(out / "n.ckpt");
  fs::rename(folder_.path() / "src/n.ckpt", out / "n.ckpt");
  fs::create_symlink("../out/n.ckpt", folder_.path() / "src/n.ckpt");
  refuses();
}

TEST_F(RecodeTest, RefusesMapTensors) {
  fs::create_directory(options_.source.path);
  const std::vector<std::string> parts = {TensorMessage("int32", {1}, "keys"),
                                          TensorMessage("float32", {1}, "vals"),
                                          TensorMessage("int32", {1}, "stat")};
  folder_.Write("src/n.ckpt", EncodeCheckpoint({MakeTensor("w", DType::kFloat32, {2})}) +
                                  MapValue("table", parts));
  EXPECT_THAT(Refused(StatusCode::kUnsupported), Naming("parameter \"table\": "));
}

TEST_F(RecodeTest, RefusesWhatIsOfTheFormatAlready) {
  AddFile("n.safetensors", {MakeTensor("w", DType::kFloat32, {2})});
  options_.target.format = TargetFormat::kCkpt;
  EXPECT_THAT(Refused(StatusCode::kMismatch), Naming("n.safetensors"));
  options_.target.format = TargetFormat::kSafetensors;
  EXPECT_THAT(Refused(StatusCode::kNotFound), Naming("src"));
  options_.target.format = TargetFormat::kUnified;
  EXPECT_THAT(Refused(StatusCode::kInvalidArgument), HasSubstr("full tensors"));
  options_.target.format = TargetFormat::kSafetensors;
  options_.source.path = folder_.path() / "src/n.safetensors";
  EXPECT_THAT(Refused(StatusCode::kInvalidArgument), HasSubstr("ends in .ckpt"));
  // Metadata of safetensors files is about them.
  options_.target.states_crc = true;
  EXPECT_THAT(Refused(StatusCode::kInvalidArgument), HasSubstr("ends in .ckpt"));
}

// They belong to conversions by strategies; none is passed over in silence.
TEST_F(RecodeTest, RefusesOptionsThatItDoesNotTake) {
  AddFile("rank_0/n.ckpt", {MakeTensor("w", DType::kFloat32, {2})});
  const RecodeOptions usual = options_;
  const std::vector<std::pair<std::string, std::function<void()>>> rows = {
      {"source.strategy", [&] { options_.source.strategy = "s.ckpt"; }},
      {"source.strategy",
       [&] {
         options_.source.strategy =
             *Strategy::Make({{"w", {.device_matrix = {2}, .tensor_map = {{0}}}}});
       }},
      {"source.files",
       [&] {
         options_.source.files = {{0, "a.ckpt"}};
       }},
      {"names", [&] { options_.target.names = "{rank}.{ext}"; }},
      {"ranks", [&] { options_.selection.ranks = {0}; }},
      {"include", [&] { options_.selection.include = {"w"}; }},
      {"casts",
       [&] {
         options_.selection.casts = {{"", DType::kFloat16}};
       }},
      {"checks.reference", [&] { options_.checks.reference = "full.ckpt"; }},
      {"partial", [&] { options_.checks.partial = true; }},
      {"prune", [&] { options_.prune = true; }},
      {"shard",
       [&] {
         options_.shard = WorkerShare{0, 2};
       }},
  };
  for (const auto& [name, set] : rows) {
    options_ = usual;
    set();
    EXPECT_THAT(Refused(StatusCode::kInvalidArgument), HasSubstr("`" + name + "` is no option of"));
  }
}

TEST_F(RecodeTest, ResumesWhatWasStopped) {
  AddFile("rank_0/n.ckpt", {MakeTensor("w", DType::kFloat32, {2000})});
  AddFile("rank_1/n.ckpt", {MakeTensor("w", DType::kFloat32, {2000})});
  const TemporaryFolder other;
  RecodeOptions whole = options_;
  whole.target.folder = other.path() / "out";
  ASSERT_TRUE(Recode(whole).ok());
  std::stop_source stop;
  options_.run.jobs = 1;
  options_.run.stop = stop.get_token();
  options_.run.progress = [&](const Progress& progress) {
    if (progress.done_bytes > 0) stop.request_stop();
  };
  EXPECT_EQ(Recode(options_).status().code(), StatusCode::kCancelled);
  options_.run = {};
  options_.resume = OutputChoice::Resume::kVerify;
  EXPECT_EQ(Recoded().size(), 2U);
  EXPECT_EQ(ReadOutputs(options_.target.folder), ReadOutputs(whole.target.folder));
}

}  // namespace
}  // namespace reshard::recode_test
