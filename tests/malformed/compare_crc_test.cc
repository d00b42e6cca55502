// Comparisons of files with a CRC trailer that does not fit: the file is to blame, not what was
// made of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reshard/compare.h"
#include "reshard/convert.h"
#include "reshard/verify.h"
#include "src/digest/crc32.h"
#include "tests/malformed/good_folder.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/folder_contents.h"

namespace reshard::compare_crc_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Two replicas with trailers, converted.
class CompareCrcTest : public testing::Test {
 protected:
  CompareCrcTest() {
    const std::vector<NamedLayout> replicated = {{"w", MakeLayout({2}, {{-1, -1}})}};
    folder_.SourceLayout(replicated[0].layout);
    folder_.WriteStage({kWeight}, replicated, 2);
    for (const int64_t rank : {0, 1}) {
      std::string bytes = ReadFile(PathOf(rank));
      Crc32 crc;
      crc.Update(std::as_bytes(std::span(bytes)));
      folder_.WriteRank(rank, bytes + CrcTrailer(crc.value()));
    }
    const ConvertOptions& convert = folder_.options();
    const auto converted = Convert(convert);
    EXPECT_TRUE(converted.ok()) << converted.status().message();
    against_.source.path = convert.source.path;
    against_.target.folder = convert.target.folder;
    against_.source.strategy = convert.source.strategy;
    against_.target.strategy = convert.target.strategy;
    digest_.source.path = convert.source.path;
    digest_.source.strategy = convert.source.strategy;
    diff_.source = {convert.source.path, convert.source.strategy};
    diff_.b = {convert.target.folder, convert.target.strategy};
  }

  std::string PathOf(int64_t rank) const { return folder_.path() / "source" / RankPath(rank); }

  // Changes the last byte of content, which the trailer follows.
  void Damage(int64_t rank) const {
    std::string bytes = ReadFile(PathOf(rank));
    bytes[bytes.size() - 18] ^= 0x10;
    folder_.WriteRank(rank, bytes);
  }

  static void ExpectDamaged(const Status& status, const std::string& path) {
    EXPECT_EQ(status.code(), StatusCode::kCorrupt);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr(path), HasSubstr("the trailer states CRC-32"),
                      HasSubstr("take another copy"), Not(HasSubstr("`checksum=false`"))));
  }

  GoodFolder folder_;
  ConversionSpec against_;
  ContentOptions digest_;
  DiffOptions diff_;
};

TEST_F(CompareCrcTest, GoodFilesAreReadOnceMore) {
  Progress last;
  const auto note = [&](const Progress& progress) { last = progress; };
  const uint64_t size = ReadFile(PathOf(0)).size();
  const auto against = VerifyAgainst(against_);
  ASSERT_TRUE(against.ok()) << against.status().message();
  EXPECT_TRUE(against->equal());
  digest_.run.progress = note;
  const auto digest = DigestCheckpoint(digest_);
  ASSERT_TRUE(digest.ok()) << digest.status().message();
  EXPECT_EQ(digest->bytes_read, 2 * size + 2 * (size - 17));
  EXPECT_EQ(last.done_bytes, digest->bytes_read);
  const auto diff = Diff(diff_);
  ASSERT_TRUE(diff.ok()) << diff.status().message();
  EXPECT_TRUE(diff->equal());
}

TEST_F(CompareCrcTest, ADamagedFileIsNamed) {
  for (const int64_t rank : {1, 0}) {
    Damage(rank);
    ExpectDamaged(VerifyAgainst(against_).status(), PathOf(rank));
    ExpectDamaged(DigestCheckpoint(digest_).status(), PathOf(rank));
    ExpectDamaged(Diff(diff_).status(), PathOf(rank));
    std::swap(diff_.source, diff_.b);
    ExpectDamaged(Diff(diff_).status(), PathOf(rank));
    Damage(rank);  // as it was
  }
}

TEST_F(CompareCrcTest, OfOneReplicaTheFilesThatAreReadAreChecked) {
  digest_.one_replica = diff_.one_replica = true;
  Damage(1);
  EXPECT_TRUE(DigestCheckpoint(digest_).ok());
  const auto diff = Diff(diff_);
  ASSERT_TRUE(diff.ok()) << diff.status().message();
  EXPECT_TRUE(diff->equal());
  Damage(0);
  ExpectDamaged(DigestCheckpoint(digest_).status(), PathOf(0));
  ExpectDamaged(Diff(diff_).status(), PathOf(0));
}

TEST_F(CompareCrcTest, FilesOfFullTensorsAreChecked) {
  diff_.source = diff_.b = {PathOf(0), ""};
  EXPECT_TRUE(Diff(diff_).ok());
  Damage(0);
  ExpectDamaged(Diff(diff_).status(), PathOf(0));
}

}  // namespace
}  // namespace reshard::compare_crc_test
