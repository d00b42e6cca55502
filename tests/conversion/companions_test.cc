// Companions: configuration and tokenizer files that a conversion copies beside the weights, as
// outputs like all others.

#include <gmock/gmock.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "reshard/convert.h"
#include "reshard/encryption.h"
#include "reshard/target_view.h"
#include "reshard/verify.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/view_check.h"
#include "tests/support/with_bytes.h"

namespace reshard::companions_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::Pair;

const std::vector<NamedLayout> kRows = {{"w", MakeLayout({2}, {{0, -1}})}};
const std::vector<NamedLayout> kColumns = {{"w", MakeLayout({2}, {{-1, 0}})}};
constexpr const char* kConfig = R"({"model_type": "llama", "torch_dtype": "float16"})";

std::string Tokenizer() {  // of several chunks
  std::string bytes;
  for (uint64_t i = 0; bytes.size() < (size_t{9} << 19); ++i)
    bytes += std::to_string(i * 7919) + ",";
  return bytes;
}

// Two ranks of a matrix, and the folder "model" with what belongs to it.
class ModelFolder : public ConversionFolder {
 public:
  explicit ModelFolder(const std::vector<NamedLayout>& target = {})
      : ConversionFolder(kRows, target), model_(folder().path() / "model") {
    WriteStage({MakeTensor("w", DType::kFloat32, {64, 32}), MakeTensor("x", DType::kFloat32, {3})},
               kRows, 2);
    folder().Write("model/config.json", kConfig);
    folder().Write("model/tokenizer.json", tokenizer_);
    folder().Write("model/merges.txt", "");
    folder().Write("model/modeling_llama.py", "import os");
    folder().Write("model/README.md", "A model");
    options().target.companions = model_;
    if (target.empty()) options().target.format = TargetFormat::kHuggingFace;
  }

  const std::string& model() const { return model_; }
  const std::string& tokenizer() const { return tokenizer_; }
  fs::path target() const { return options().target.folder; }

 private:
  const std::string model_;
  const std::string tokenizer_ = Tokenizer();
};

ConvertReport RunConvert(const ConvertOptions& options) {
  auto report = Convert(options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? *std::move(report) : ConvertReport();
}

void ExpectCompanions(const ModelFolder& folder) {
  const FolderContents outputs = ReadOutputs(folder.target());
  EXPECT_THAT(outputs, Contains(Pair("config.json", kConfig)));
  EXPECT_THAT(outputs, Contains(Pair("merges.txt", "")));
  EXPECT_THAT(outputs, Contains(Key("tokenizer.json")));
  EXPECT_TRUE(outputs.at("tokenizer.json") == folder.tokenizer());
  EXPECT_THAT(outputs, Not(Contains(Key("modeling_llama.py"))));
  EXPECT_THAT(outputs, Not(Contains(Key("README.md"))));
}

void ExpectSound(const ModelFolder& folder) {
  const auto damage = Verify(folder.target());
  ASSERT_TRUE(damage.ok()) << damage.status().message();
  EXPECT_THAT(damage->damages, IsEmpty());
}

ConversionSpec ProofOf(const ConvertOptions& options) {
  ConversionSpec proof;
  proof.source = options.source;
  proof.target.folder = options.target.folder;
  return proof;
}

Status Refused(const ModelFolder& folder) {
  const Status status = Convert(folder.options()).status();
  EXPECT_FALSE(status.ok());
  FolderContents left = ReadFolder(folder.target());
  std::erase_if(left, [](const auto& file) { return file.first.starts_with(".reshard/"); });
  EXPECT_EQ(left.size(), 0U) << left.begin()->first;
  return status;
}

TEST(CompanionsTest, AreCopiedAsTheyAreAndNoOtherFiles) {
  for (const bool digests : {true, false}) {
    ModelFolder folder;
    folder.options().checks.checksum = digests;
    const ConvertReport report = RunConvert(folder.options());
    EXPECT_THAT(report.notes,
                Contains(AllOf(HasSubstr(folder.model()),
                               HasSubstr("config.json, merges.txt, tokenizer.json"))));
    EXPECT_EQ(report.files.size(), 4U);
    ExpectCompanions(folder);
    EXPECT_EQ(ReadOutputs(folder.target()).size(), 4U);
    ExpectSound(folder);
    ExpectViewHasFiles(folder.options());
  }
}

TEST(CompanionsTest, StandBehindTheModelInAPlan) {
  ModelFolder folder(kColumns);
  const auto plan = Plan(folder.options());
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  std::vector<std::pair<std::string, FileKind>> files;
  for (const auto& file : plan->targets) files.emplace_back(file.path, file.kind);
  EXPECT_THAT(files, ElementsAre(Pair(RankPath(0), FileKind::kTensors),
                                 Pair(RankPath(1), FileKind::kTensors),
                                 Pair("config.json", FileKind::kCompanion),
                                 Pair("merges.txt", FileKind::kCompanion),
                                 Pair("tokenizer.json", FileKind::kCompanion)));
  EXPECT_THAT(plan->targets.back().source_ranks, IsEmpty());
  EXPECT_EQ(plan->targets.back().size, folder.tokenizer().size());
}

TEST(CompanionsTest, AreProvedAgainstTheFolderThatTheyCameFrom) {
  ModelFolder folder;
  RunConvert(folder.options());
  const auto equal = VerifyAgainst(ProofOf(folder.options()));
  ASSERT_TRUE(equal.ok()) << equal.status().message();
  EXPECT_TRUE(equal->equal());
  std::string changed = folder.tokenizer();
  changed[4'500'000] = '#';
  folder.folder().Write("target/tokenizer.json", changed);
  const auto other = VerifyAgainst(ProofOf(folder.options()));
  ASSERT_TRUE(other.ok()) << other.status().message();
  ASSERT_EQ(other->differences.size(), 1U);
  EXPECT_EQ(other->differences[0].path, "tokenizer.json");
  EXPECT_EQ(other->differences[0].first->offset, 4'500'000U);
  const auto damage = Verify(folder.target());
  ASSERT_TRUE(damage.ok()) << damage.status().message();
  ASSERT_EQ(damage->damages.size(), 1U);
  EXPECT_EQ(damage->damages[0].path, "tokenizer.json");
}

TEST(CompanionsTest, AreTakenFromTheSourceUnlessAFolderIsNamed) {
  ModelFolder folder;
  folder.options().target.companions = "";
  EXPECT_THAT(Refused(folder).message(), HasSubstr(folder.options().source.path));
  fs::copy(folder.model() + "/config.json", fs::path(folder.options().source.path) / "config.json");
  EXPECT_EQ(RunConvert(folder.options()).files.size(), 2U);

  // The folder that was made, and a file in it.
  for (const std::string& source :
       {folder.target().string(), (folder.target() / "model.safetensors").string()}) {
    ConvertOptions again;
    again.source.path = source;
    again.target.folder = folder.folder().path() / "again";
    again.target.companions = "";
    again.target.format = TargetFormat::kUnified;
    again.force = true;
    RunConvert(again);
    EXPECT_THAT(ReadOutputs(again.target.folder), Contains(Pair("config.json", kConfig)));
  }

  folder.options().source.files = {{0, folder.options().source.path + "/" + RankPath(0)},
                                   {1, folder.options().source.path + "/" + RankPath(1)}};
  folder.options().source.path.clear();
  folder.options().target.folder = folder.folder().path() / "third";
  const Status status = Refused(folder);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("`companions`"));
}

TEST(CompanionsTest, BelongToTheRunOfRankZero) {
  ModelFolder folder(kColumns);
  folder.options().selection.ranks = {1};
  EXPECT_THAT(RunConvert(folder.options()).notes, Not(Contains(HasSubstr("config.json"))));
  EXPECT_THAT(ReadOutputs(folder.target()), ElementsAre(Key(RankPath(1))));
  folder.options().selection.ranks = {2};  // the number of a companion
  EXPECT_EQ(Convert(folder.options()).status().code(), StatusCode::kInvalidArgument);
  folder.options().selection.ranks = {0};
  RunConvert(folder.options());
  EXPECT_EQ(ReadOutputs(folder.target()).size(), 5U);
  ExpectCompanions(folder);
  ExpectSound(folder);
  ExpectViewHasFiles(folder.options());

  // A run with other companions belongs to another set.
  folder.folder().Write("model/vocab.json", "{}");
  folder.options().selection.ranks = {1};
  folder.options().force = true;
  RunConvert(folder.options());
  const auto of_last = Verify(folder.target());
  ASSERT_TRUE(of_last.ok()) << of_last.status().message();
  EXPECT_EQ(of_last->files, 1U);
}

TEST(CompanionsTest, AreWrittenByOneOfSeveralWorkers) {
  ModelFolder folder(kColumns);
  std::vector<std::string> written;
  for (uint64_t worker = 0; worker < 3; ++worker) {
    folder.options().shard = WorkerShare{worker, 3};
    for (const auto& file : RunConvert(folder.options()).files) {
      if (file.path == "config.json") written.push_back(file.path);
    }
  }
  EXPECT_EQ(written.size(), 1U);
  ExpectCompanions(folder);
  ExpectSound(folder);
}

TEST(CompanionsTest, AreKeptByAResumedRun) {
  ModelFolder folder(kColumns);
  std::stop_source stop;
  folder.options().run.stop = stop.get_token();
  folder.options().run.jobs = 1;
  folder.options().run.progress = [&](const Progress& progress) {
    if (progress.phase == Progress::Phase::kWrite && progress.done_files >= 4) stop.request_stop();
  };
  EXPECT_EQ(Refused(folder).code(), StatusCode::kCancelled);
  folder.options().run = {};
  for (const auto resume : {OutputChoice::Resume::kTrust, OutputChoice::Resume::kVerify}) {
    folder.options().resume = resume;
    const ConvertReport report = RunConvert(folder.options());
    if (resume == OutputChoice::Resume::kTrust) {
      EXPECT_GE(report.files_kept, 4U);
    }
    ExpectCompanions(folder);
    ExpectSound(folder);
  }
}

TEST(CompanionsTest, AreRefusedAsLinksOutOfTheFolder) {
  ModelFolder folder;
  const fs::path blob = folder.folder().Write("blobs/abc", kConfig);
  const fs::path link = fs::path(folder.model()) / "config.json";
  fs::remove(link);
  fs::create_symlink(fs::path("..") / "blobs" / "abc", link);
  const Status status = Refused(folder);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr(link), HasSubstr("cp -rL")));
  fs::remove(link);
  fs::create_symlink("nowhere", link);
  EXPECT_EQ(Refused(folder).code(), StatusCode::kNotFound);
  fs::remove(link);
  fs::create_directory(link);
  EXPECT_EQ(Refused(folder).code(), StatusCode::kInvalidArgument);
  fs::remove(link);
  // A link within the folder, through a link to it.
  folder.folder().Write("model/own.json", kConfig);
  fs::create_symlink("own.json", link);
  fs::create_directory_symlink(folder.model(), folder.folder().path() / "alias");
  folder.options().target.companions = folder.folder().path() / "alias";
  RunConvert(folder.options());
  ExpectCompanions(folder);
  EXPECT_FALSE(fs::is_symlink(folder.target() / "config.json"));
}

TEST(CompanionsTest, AreAskedForInAFolderThatHasSome) {
  ModelFolder folder;
  folder.options().target.companions = folder.folder().path() / "none";
  EXPECT_EQ(Refused(folder).code(), StatusCode::kNotFound);
  folder.folder().Write("none/model.py", "import os");
  const Status status = Refused(folder);
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("/none"), HasSubstr("tokenizer.model")));
  folder.options().target.companions = folder.folder().Write("file", "");
  EXPECT_EQ(Refused(folder).code(), StatusCode::kNotFound);
}

TEST(CompanionsTest, NeverReplaceWhatIsRead) {
  ModelFolder folder;
  folder.options().target.folder = folder.model();
  folder.options().force = true;
  const FolderContents before = ReadFolder(folder.model());
  const Status status = Convert(folder.options()).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("config.json"));
  EXPECT_EQ(ReadFolder(folder.model()), before);
}

TEST(CompanionsTest, ReplaceFilesOnlyIfForced) {
  ModelFolder folder;
  folder.folder().Write("target/config.json", "of somebody");
  const Status status = Convert(folder.options()).status();
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(ReadOutputs(folder.target()), ElementsAre(Pair("config.json", "of somebody")));
  folder.options().force = true;
  RunConvert(folder.options());
  ExpectCompanions(folder);
}

TEST(CompanionsTest, ThatChangeMeanwhileAreNoticed) {
  ModelFolder folder;
  bool changed = false;
  folder.options().run.progress = WithBytes([&] {
    if (changed) return;
    changed = true;
    std::fstream file(folder.model() + "/config.json");
    file << "#";
  });
  const Status status = Refused(folder);
  EXPECT_EQ(status.code(), StatusCode::kChanged);
  EXPECT_THAT(status.message(), HasSubstr("config.json"));
}

TEST(CompanionsTest, OfAViewAreCheckedFileByFile) {
  ModelFolder folder;
  const auto view = TargetView::Open(folder.options());
  ASSERT_TRUE(view.ok()) << view.status().message();
  ASSERT_EQ(view->files()[1].path, "config.json");
  EXPECT_TRUE(view->VerifyUnchanged(1).ok());
  folder.folder().Write("model/config.json", "{}");
  EXPECT_EQ(view->VerifyUnchanged(1).code(), StatusCode::kChanged);
  EXPECT_TRUE(view->VerifyUnchanged(0).ok());
}

TEST(CompanionsTest, AreNotEncrypted) {
  ModelFolder folder(kColumns);
  folder.options().target.encryption = TargetSpec::EncryptionMode::kAesGcm;
  const std::string key(16, 'k');
  folder.options().target.encryption_key = *EncryptionKey::FromBytes(std::as_bytes(std::span(key)));
  const Status status = Refused(folder);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("`companions`"), HasSubstr("`encryption`")));
}

TEST(CompanionsTest, StateNoCrcOfTheirOwn) {
  ModelFolder folder;
  folder.options().target.states_crc = true;
  RunConvert(folder.options());
  ExpectCompanions(folder);
  ExpectSound(folder);
  ExpectViewHasFiles(folder.options());
}

TEST(CompanionsTest, WhoseConfigurationStatesAnotherDTypeWarn) {
  struct Row {
    std::string config;
    std::vector<Selection::CastRule> casts;
    bool warns;
  };
  const std::string half = R"({"torch_dtype": "float16"})";
  const Row rows[] = {
      {half, {}, false},
      {half, {{"", DType::kFloat16}}, false},
      {half, {{"", DType::kBFloat16}}, true},
      {half, {{"*", DType::kBFloat16}}, true},
      {half, {{"w", DType::kBFloat16}}, false},
      {half, {{"w", DType::kFloat32}, {"", DType::kBFloat16}}, true},
      {half, {{"", {}}}, false},
      {R"({"torch_dtype": "torch.bfloat16"})", {{"", DType::kBFloat16}}, false},
      {R"({"dtype": "bfloat16", "torch_dtype": "float16"})", {{"", DType::kBFloat16}}, false},
      {R"({"torch_dtype": "float16", "dtype": "bfloat16"})", {{"", DType::kBFloat16}}, false},
      {R"({"dtype": "auto"})", {{"", DType::kBFloat16}}, false},
      {R"({"torch_dtype": null})", {{"", DType::kBFloat16}}, false},
      {R"({"a": {"dtype": "float16"}})", {{"", DType::kBFloat16}}, false},
      {"no JSON", {{"", DType::kBFloat16}}, false},
  };
  for (const Row& row : rows) {
    ModelFolder folder;
    folder.folder().Write("model/config.json", row.config);
    folder.options().selection.casts = row.casts;
    const auto plan = Plan(folder.options());
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const auto warns = Contains(
        Says(WarningCode::kOtherDType, AllOf(HasSubstr("config.json"), HasSubstr("`casts`"))));
    if (row.warns) {
      EXPECT_THAT(plan->warnings, warns) << row.config;
    } else {
      EXPECT_THAT(plan->warnings, Not(Contains(Says(WarningCode::kOtherDType)))) << row.config;
    }
  }
}

}  // namespace
}  // namespace reshard::companions_test
