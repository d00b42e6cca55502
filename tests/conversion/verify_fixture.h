// VerifyTest: folders with records of what is in them, for the tests of Verify.
#ifndef RESHARD_TESTS_CONVERSION_VERIFY_FIXTURE_H_
#define RESHARD_TESTS_CONVERSION_VERIFY_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "reshard/verify.h"
#include "src/record/part_record.h"
#include "tests/support/recorded_folder.h"

namespace reshard {

inline constexpr uint64_t kBlock = kDigestBlockBytes;

inline RecordedValue Value(const std::string& name, uint64_t offset, uint64_t length) {
  return {.name = name, .offset = offset, .length = length};
}

class VerifyTest : public testing::Test {
 protected:
  // Two small files.
  void MakeSmall() {
    folder_.Add("rank_0/a.ckpt", 100, 10, "some content", {Value("w", 20, 30), Value("b", 60, 40)});
    folder_.Add("rank_1/a.ckpt", 50, 0, "other content", {Value("w", 20, 30)});
    folder_.Publish();
  }

  // One file of three blocks, the last of which is short: a parameter in the first block, one in
  // two Values over the end of the first, one in the other two blocks, and bytes behind it.
  void MakeLarge() {
    folder_.Add("rank_0/a.ckpt", 2 * kBlock + 1000, kBlock + 5, "content",
                {Value("first", 100, 1000), Value("both", 2000, 1000),
                 Value("both", 3000, kBlock - 2000), Value("last", kBlock + 2000, kBlock - 1500)});
    folder_.Publish();
  }

  DamageReport Verified(int jobs = 2) {
    const auto report = Verify(folder_.path(), nullptr, {.jobs = jobs});
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? *report : DamageReport();
  }

  // The only thing that is wrong.
  DamageReport::Damage Only() {
    const DamageReport report = Verified();
    EXPECT_THAT(report.damages, testing::SizeIs(1));
    return report.damages.empty() ? DamageReport::Damage() : report.damages[0];
  }

  RecordedFolder folder_;
};

}  // namespace reshard

#endif  // RESHARD_TESTS_CONVERSION_VERIFY_FIXTURE_H_
