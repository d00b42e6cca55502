// Shards that run again when their set is published: they do nothing, unless the sources are not
// those that it was made of.

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class ConvertPublishedTest : public testing::Test {
 protected:
  ConvertPublishedTest() {
    WriteSource("source", 1);
    for (const uint64_t shard : {0U, 1U}) EXPECT_TRUE(Run(shard).ok());
    AgeSources();
  }

  // Sources of other values where `value` is another one.
  void WriteSource(const std::string& name, char value) const {
    TestTensor tensor = MakeTensor("w", DType::kFloat32, {6, 5});
    tensor.content[3] = value;
    for (int64_t rank = 0; rank < 2; ++rank) {
      folder_.folder().Write(name + "/" + RankPath(rank), EncodeCheckpoint({tensor}));
    }
  }

  // The kernel sets the times of change, so it is the manifest that becomes newer.
  void AgeSources() const {
    fs::last_write_time(Manifest(), fs::file_time_type::clock::now() + std::chrono::hours(1));
  }

  Result<ConvertReport> Run(uint64_t shard) {
    folder_.options().shard = WorkerShare{shard, 2};
    return Convert(folder_.options());
  }

  fs::path Manifest() const { return fs::path(folder_.options().target.folder) / "manifest.json"; }
  bool HasStaging() const {
    return fs::exists(fs::path(folder_.options().target.folder) / ".reshard");
  }

  ConversionFolder folder_{{{"w", MakeLayout({2}, {{0, -1}})}},
                           {{"w", MakeLayout({4}, {{0, -1}})}}};
};

TEST_F(ConvertPublishedTest, TheyDoNothing) {
  const FolderContents before = ReadFolder(folder_.options().target.folder);
  for (const bool force : {false, true}) {
    folder_.options().force = force;
    for (const uint64_t shard : {0U, 1U}) {
      const auto report = Run(shard);
      ASSERT_TRUE(report.ok()) << report.status().message();
      EXPECT_TRUE(report->shard->published && report->shard->already_published);
      EXPECT_EQ(report->bytes_written, 0U);
      EXPECT_EQ(ReadFolder(folder_.options().target.folder), before);
      EXPECT_FALSE(HasStaging());
    }
  }
}

TEST_F(ConvertPublishedTest, ASourceThatIsNewerIsNotTheSetsOwn) {
  fs::last_write_time(Manifest(), fs::file_time_type::clock::now() - std::chrono::hours(1));
  const auto late = Run(1);
  EXPECT_EQ(late.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(late.status().message(), Naming("manifest.json"));
  EXPECT_THAT(late.status().message(), Not(HasSubstr("`force`")));
  EXPECT_FALSE(HasStaging());
  folder_.options().force = true;
  const auto anew = Run(1);
  ASSERT_TRUE(anew.ok()) << anew.status().message();
  EXPECT_FALSE(anew->shard->published);
}

// As old as the first one, of the same sizes and names, and with the same strategies.
TEST_F(ConvertPublishedTest, AnotherCheckpointIsNotTheSetsOwn) {
  folder_.options().source.path = (folder_.folder().path() / "another").string();
  WriteSource("another", 2);
  EXPECT_EQ(Run(0).status().code(), StatusCode::kAlreadyExists);
  folder_.options().force = true;
  const auto anew = Run(0);
  ASSERT_TRUE(anew.ok()) << anew.status().message();
  EXPECT_FALSE(anew->shard->published);
}

TEST_F(ConvertPublishedTest, ASetWithoutChecksumsIsNotOneWith) {
  fs::remove_all(folder_.options().target.folder);
  folder_.options().checks.checksum = false;
  for (const uint64_t shard : {0U, 1U}) EXPECT_TRUE(Run(shard).ok());
  AgeSources();
  EXPECT_TRUE(Run(0)->shard->already_published);
  folder_.options().checks.checksum = true;
  EXPECT_EQ(Run(0).status().code(), StatusCode::kAlreadyExists);
}

TEST_F(ConvertPublishedTest, AnIncompleteSetIsNone) {
  const fs::path file = fs::path(folder_.options().target.folder) / "rank_3/checkpoint_3.ckpt";
  ASSERT_TRUE(fs::remove(file));
  const auto report = Run(0);
  EXPECT_EQ(report.status().code(), StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace reshard
