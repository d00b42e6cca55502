// Runs and shards whose set is published already: they do nothing if all that it was made of is the
// same and its files are unchanged, and else what they would do anyway.
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reshard/convert.h"
#include "reshard/encryption.h"
#include "reshard/verify.h"
#include "src/record/manifest_codec.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/encrypted_bytes.h"
#include "tests/support/folder_contents.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::convert_published_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ConvertPublishedTest : public testing::Test {
 protected:
  ConvertPublishedTest() { WriteSource("source", 1); }

  // Sources of other values if `value` is another one.
  void WriteSource(const std::string& name, char value) const {
    TestTensor tensor = MakeTensor("w", DType::kFloat32, {6, 5});
    tensor.content[3] = value;
    for (int64_t rank = 0; rank < 2; ++rank) {
      folder_.folder().Write(name + "/" + RankPath(rank), EncodeCheckpoint({tensor}));
    }
  }

  ConvertOptions& options() { return folder_.options(); }
  fs::path Target() const { return folder_.options().target.folder; }
  fs::path File(int rank) const {
    return Target() / ("rank_" + std::to_string(rank)) /
           ("checkpoint_" + std::to_string(rank) + ".ckpt");
  }
  fs::path Source(int64_t rank) const {
    return folder_.folder().path() / "source" / RankPath(rank);
  }
  bool HasStaging() const { return fs::exists(Target() / ".reshard"); }

  // Publishes the set.
  void Publish() {
    const auto report = Convert(options());
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_FALSE(report->already_published);
  }

  Result<ConvertReport> RunShard(uint64_t shard) {
    ConvertOptions all = options();
    all.shard = WorkerShare{shard, 2};
    return Convert(all);
  }
  Result<ConvertReport> Again(OutputChoice::Resume resume = OutputChoice::Resume::kTrust) {
    ConvertOptions all = options();
    all.resume = resume;
    return Convert(all);
  }

  // Each way to run again does nothing.
  void ExpectComplete(const std::string& what) {
    const FolderContents before = ReadFolder(Target());
    const auto time = fs::last_write_time(Target() / "manifest.json");
    for (const bool force : {false, true}) {
      options().force = force;
      for (const OutputChoice::Resume resume :
           {OutputChoice::Resume::kTrust, OutputChoice::Resume::kVerify}) {
        const auto report = Again(resume);
        ASSERT_TRUE(report.ok()) << what << ": " << report.status().message();
        EXPECT_TRUE(report->already_published) << what;
        EXPECT_EQ(report->bytes_written, 0U) << what;
        EXPECT_THAT(report->files, IsEmpty()) << what;
      }
      for (const uint64_t shard : {0U, 1U}) {
        const auto report = RunShard(shard);
        ASSERT_TRUE(report.ok()) << what << ": " << report.status().message();
        EXPECT_TRUE(report->already_published) << what;
        EXPECT_TRUE(report->shard->published && report->shard->already_published) << what;
      }
      EXPECT_FALSE(HasStaging()) << what;
    }
    options().force = false;
    EXPECT_EQ(ReadFolder(Target()), before) << what;
    EXPECT_EQ(fs::last_write_time(Target() / "manifest.json"), time) << what;
  }

  // Each way to run again is refused, and says why; by force it writes anew.
  void ExpectOther(const std::string& why) {
    const FolderContents before = ReadFolder(Target());
    const auto report = Again();
    EXPECT_EQ(report.status().code(), StatusCode::kAlreadyExists) << why;
    EXPECT_THAT(report.status().message(), AllOf(HasSubstr(why), HasSubstr("`force`")));
    ConvertOptions plan = options();
    plan.resume = OutputChoice::Resume::kTrust;
    EXPECT_EQ(Plan(plan).status().message(), report.status().message());
    const auto shard = RunShard(0);
    EXPECT_EQ(shard.status().code(), StatusCode::kAlreadyExists) << why;
    EXPECT_THAT(shard.status().message(), AllOf(HasSubstr(why), Not(HasSubstr("`force`"))));
    EXPECT_EQ(ReadFolder(Target()), before) << why;
    EXPECT_FALSE(HasStaging()) << why;
    options().force = true;
    const auto anew = Again();
    options().force = false;
    ASSERT_TRUE(anew.ok()) << why << ": " << anew.status().message();
    EXPECT_FALSE(anew->already_published) << why;
    EXPECT_GT(anew->bytes_written, 0U) << why;
    ExpectComplete("after " + why);
  }

  ConversionFolder folder_{{{"w", MakeLayout({2}, {{0, -1}})}},
                           {{"w", MakeLayout({4}, {{0, -1}})}}};
};

// Writes other bytes of the same length over the middle of a file.
void Damage(const fs::path& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(fs::file_size(path) / 2));
  file << "damaged!";
}

TEST_F(ConvertPublishedTest, WhateverIsWritten) {
  const struct {
    const char* name;
    std::function<void(ConvertOptions&)> set;
  } rows[] = {
      {"plain", [](ConvertOptions&) {}},
      {"AES-GCM",
       [](ConvertOptions& all) { all.target.encryption = TargetSpec::EncryptionMode::kAesGcm; }},
      {"AES-CBC",
       [](ConvertOptions& all) { all.target.encryption = TargetSpec::EncryptionMode::kAesCbc; }},
      {"crc", [](ConvertOptions& all) { all.target.states_crc = true; }},
      {"safetensors", [](ConvertOptions& all) { all.target.format = TargetFormat::kSafetensors; }},
      {"one rank", [](ConvertOptions& all) { all.selection.ranks = {2}; }},
      {"renamed",
       [](ConvertOptions& all) {
         all.selection.renames.names = {{"w", "v"}};
       }},
      {"cast", [](ConvertOptions& all) { all.selection.casts = {{.dtype = DType::kBFloat16}}; }},
  };
  const ConvertOptions usual = options();
  for (const auto& row : rows) {
    fs::remove_all(Target());
    options() = usual;
    row.set(options());
    if (options().target.encryption) {
      options().target.encryption_key = KeyOf("0123456789abcdef");
    }
    Publish();
    ExpectComplete(row.name);
  }
}

TEST_F(ConvertPublishedTest, BySharesAsByOneRun) {
  EXPECT_FALSE(RunShard(0)->already_published);
  EXPECT_TRUE(RunShard(1)->shard->published);
  ExpectComplete("shares");
}

TEST_F(ConvertPublishedTest, FoldersOfWholeTensors) {
  // Two tensors, so that no family has all in one file, which needs no index.
  for (int64_t rank = 0; rank < 2; ++rank) {
    folder_.WriteRank(rank, {MakeTensor("w", DType::kFloat32, {6, 5}, static_cast<uint64_t>(rank)),
                             MakeTensor("v", DType::kFloat32, {30})});
  }
  ConvertOptions& all = options();
  const StrategyRef cut = std::exchange(all.target.strategy, {});
  for (const TargetFormat format : {TargetFormat::kUnified, TargetFormat::kHuggingFace}) {
    fs::remove_all(Target());
    all.target.format = format;
    all.target.shard_size = 100;
    Publish();
    ExpectComplete("full tensors");
  }
  // And from one: its index counts as a source.
  fs::rename(Target(), folder_.folder().path() / "whole");
  all.source = {.path = (folder_.folder().path() / "whole").string()};
  all.target.format = TargetFormat::kSafetensors;
  all.target.strategy = cut;
  Publish();
  ExpectComplete("from full tensors");
  const fs::path index = folder_.folder().path() / "whole/model.safetensors.index.json";
  ASSERT_TRUE(fs::exists(index));
  std::ofstream(index, std::ios::app) << "\n";
  for (const OutputChoice::Resume resume :
       {OutputChoice::Resume::kNo, OutputChoice::Resume::kTrust}) {
    const Status status = Again(resume).status();
    EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
    EXPECT_THAT(status.message(), HasSubstr("source model.safetensors.index.json had "));
  }
}

TEST_F(ConvertPublishedTest, RecodedFiles) {
  RecodeOptions recode;
  recode.source.path = options().source.path;
  recode.target.folder = options().target.folder;
  recode.target.format = TargetFormat::kSafetensors;
  const auto first = Recode(recode);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_FALSE(first->already_published);
  for (const OutputChoice::Resume resume :
       {OutputChoice::Resume::kNo, OutputChoice::Resume::kTrust}) {
    recode.resume = resume;
    const auto again = Recode(recode);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_TRUE(again->already_published);
    EXPECT_THAT(again->files, IsEmpty());
  }
  WriteSource("source", 2);
  for (const OutputChoice::Resume resume :
       {OutputChoice::Resume::kNo, OutputChoice::Resume::kTrust}) {
    recode.resume = resume;
    EXPECT_EQ(Recode(recode).status().code(), StatusCode::kAlreadyExists);
  }
}

TEST_F(ConvertPublishedTest, WithoutResumeOnlyForceWritesAnew) {
  Publish();
  const FolderContents before = ReadFolder(Target());
  const auto again = Again(OutputChoice::Resume::kNo);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_TRUE(again->already_published);
  EXPECT_EQ(again->bytes_written, 0U);
  EXPECT_THAT(again->files, IsEmpty());
  EXPECT_EQ(ReadFolder(Target()), before);
  EXPECT_FALSE(HasStaging());
  options().force = true;
  const auto anew = Again(OutputChoice::Resume::kNo);
  ASSERT_TRUE(anew.ok()) << anew.status().message();
  EXPECT_FALSE(anew->already_published);
  EXPECT_GT(anew->bytes_written, 0U);
  options().force = false;
  Damage(File(3));
  EXPECT_EQ(Again(OutputChoice::Resume::kNo).status().code(), StatusCode::kAlreadyExists);
}

TEST_F(ConvertPublishedTest, AnotherSource) {
  Publish();
  const auto time = fs::last_write_time(Source(1));
  fs::last_write_time(Source(1), time - std::chrono::seconds(1));
  ExpectOther("source " + RankPath(1) + " was modified since");
  // Another file of the same size and time, as `cp -p` and `mv` leave one.
  fs::copy_file(Source(1), Source(1).string() + ".copy");
  fs::last_write_time(Source(1).string() + ".copy", fs::last_write_time(Source(1)));
  fs::rename(Source(1).string() + ".copy", Source(1));
  ExpectOther("source " + RankPath(1) + " was replaced by another file");
  // Of the same names and sizes, and with the same strategies.
  WriteSource("another", 2);
  options().source.path = (folder_.folder().path() / "another").string();
  ExpectOther("was replaced by another file");
}

TEST_F(ConvertPublishedTest, AnotherTarget) {
  Publish();
  Damage(File(3));
  ExpectOther("rank_3/checkpoint_3.ckpt has changed since it was published");
  // With its time set back.
  const auto time = fs::last_write_time(File(0));
  Damage(File(0));
  fs::last_write_time(File(0), time);
  ExpectOther("rank_0/checkpoint_0.ckpt has changed since it was published");
  ASSERT_TRUE(fs::remove(File(2)));
  ExpectOther("rank_2/checkpoint_2.ckpt is missing or damaged");
  ASSERT_TRUE(fs::remove(Target() / "part_records/rank_2/checkpoint_2.ckpt.jsonl"));
  ExpectOther("rank_2/checkpoint_2.ckpt is missing or damaged");
  Damage(Target() / "part_records/rank_2/checkpoint_2.ckpt.jsonl");
  ExpectOther("rank_2/checkpoint_2.ckpt is missing or damaged");
}

TEST_F(ConvertPublishedTest, EachRecordCounts) {
  Publish();
  for (const int rank : {0, 1, 2, 3}) {
    const std::string file = "rank_" + std::to_string(rank) + "/checkpoint_" + std::to_string(rank);
    Damage(Target() / ("part_records/" + file + ".ckpt.jsonl"));
    ExpectOther(file + ".ckpt is missing or damaged");
  }
}

// All files are younger than what was published: they are compared with their digests.
TEST_F(ConvertPublishedTest, ACopyOfTheSet) {
  const auto copy = [this] {
    fs::rename(Target(), folder_.folder().path() / "backup");
    fs::copy(folder_.folder().path() / "backup", Target(), fs::copy_options::recursive);
    fs::remove_all(folder_.folder().path() / "backup");
    for (int rank = 0; rank < 4; ++rank) {
      fs::last_write_time(File(rank), fs::file_time_type::clock::now() + std::chrono::hours(1));
    }
  };
  Publish();
  copy();
  ExpectComplete("a copy");
  Damage(File(1));
  copy();
  ExpectOther("rank_1/checkpoint_1.ckpt has changed");
  fs::remove_all(Target());
  options().checks.checksum = false;
  Publish();
  EXPECT_TRUE(Again()->already_published);
  copy();
  EXPECT_EQ(Again().status().code(), StatusCode::kAlreadyExists);
}

TEST_F(ConvertPublishedTest, VerifyReadsTheFiles) {
  Publish();
  const fs::path record = Target() / "part_records/rank_1/checkpoint_1.ckpt.jsonl";
  Damage(File(1));
  // So that its times tell nothing.
  const std::string bytes = ReadFile(record);
  std::ofstream(record, std::ios::binary) << bytes;
  EXPECT_TRUE(Again(OutputChoice::Resume::kTrust)->already_published);
  EXPECT_EQ(Again(OutputChoice::Resume::kVerify).status().code(), StatusCode::kAlreadyExists);
}

TEST_F(ConvertPublishedTest, ASetWithoutChecksumsIsNotOneWith) {
  options().checks.checksum = false;
  Publish();
  EXPECT_TRUE(Again()->already_published);
  options().checks.checksum = true;
  ExpectOther("it has no checksums");
}

TEST_F(ConvertPublishedTest, AnotherKey) {
  options().target.encryption = TargetSpec::EncryptionMode::kAesGcm;
  options().target.encryption_key = KeyOf("0123456789abcdef");
  Publish();
  options().target.encryption_key = KeyOf("0123456789abcdeF");
  ExpectOther("was not encrypted with this key");
}

TEST_F(ConvertPublishedTest, LostValuesAreToldAgain) {
  TestTensor tensor = MakeTensor("w", DType::kFloat32, {6, 5});
  const float large = 1e30F;
  tensor.content.replace(0, sizeof(large), reinterpret_cast<const char*>(&large), sizeof(large));
  for (int64_t rank = 0; rank < 2; ++rank) folder_.WriteRank(rank, {tensor});
  options().selection.casts = {{.dtype = DType::kFloat16}};
  Publish();
  const auto again = Again();
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_TRUE(again->already_published);
  EXPECT_GT(again->values_lost, 0U);
  EXPECT_THAT(again->warnings, testing::Contains(Says(WarningCode::kValuesLost)));
  options().checks.refuse_overflow = true;
  EXPECT_EQ(Again().status().code(), StatusCode::kAlreadyExists);
}

// A check that is asked for is made, whatever is there.
TEST_F(ConvertPublishedTest, ReplicasAreComparedAllTheSame) {
  options().checks.replicas = CheckChoice::Replicas::kAll;
  Publish();
  const auto again = Again();
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_TRUE(again->already_published);
  EXPECT_TRUE(again->replicas.has_value());
}

// What earlier versions wrote has no stamps.
TEST_F(ConvertPublishedTest, ASetOfSchema2) {
  Publish();
  std::string bytes = ReadFile(Target() / "manifest.json");
  bytes.resize(bytes.rfind(",\n  \"digest\""));
  bytes.replace(bytes.find(": 3,"), 4, ": 2,");
  const size_t stamps = bytes.find("  \"stamps\"");
  bytes.erase(stamps, bytes.find("  \"files\"") - stamps);
  std::ofstream(Target() / "manifest.json", std::ios::binary) << bytes + ManifestSeal(bytes);
  const auto verified = Verify(Target().string());
  ASSERT_TRUE(verified.ok()) << verified.status().message();
  EXPECT_THAT(verified->damages, IsEmpty());
  ExpectOther("its manifest, of an earlier version, has no source stamps");
}

// Runs for some ranks each, on hosts that have the sources as files of their own.
TEST_F(ConvertPublishedTest, JoinedRuns) {
  const auto run = [this](std::vector<int64_t> ranks, OutputChoice::Resume resume) {
    options().selection.ranks = std::move(ranks);
    return Again(resume);
  };
  ASSERT_TRUE(run({0}, OutputChoice::Resume::kNo).ok());
  ASSERT_TRUE(run({1, 2}, OutputChoice::Resume::kNo).ok());
  for (const std::vector<int64_t>& ranks : {std::vector<int64_t>{0}, {1}, {0, 1, 2}}) {
    EXPECT_TRUE(run(ranks, OutputChoice::Resume::kTrust)->already_published);
  }
  const auto rest = run({}, OutputChoice::Resume::kTrust);
  EXPECT_EQ(rest.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(rest.status().message(), HasSubstr("it does not list rank_3/checkpoint_3.ckpt"));
  // A file that was rewritten before another run joined stays rewritten.
  Damage(File(0));
  ASSERT_TRUE(run({3}, OutputChoice::Resume::kNo).ok());
  EXPECT_TRUE(run({3}, OutputChoice::Resume::kTrust)->already_published);
  EXPECT_EQ(run({0}, OutputChoice::Resume::kTrust).status().code(), StatusCode::kAlreadyExists);

  fs::remove_all(Target());
  ASSERT_TRUE(run({0}, OutputChoice::Resume::kNo).ok());
  fs::copy(options().source.path, folder_.folder().path() / "host", fs::copy_options::recursive);
  options().source.path = (folder_.folder().path() / "host").string();
  const auto joined = run({1}, OutputChoice::Resume::kNo);
  ASSERT_TRUE(joined.ok()) << joined.status().message();
  const auto again = run({0}, OutputChoice::Resume::kTrust);
  EXPECT_EQ(again.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(again.status().message(), HasSubstr("earlier runs read different files for source"));
}

}  // namespace
}  // namespace reshard::convert_published_test
