// Plan records with one thing wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "src/record/plan_record.h"
#include "tests/support/sealed_record.h"

namespace reshard::plan_record_malformed_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kDigestA(32, 'a');
const std::string kDigestB(32, 'b');

PlanRecord Record() {
  return {.options = kDigestA,
          .job = kDigestB,
          .base = "ckpt\xff",
          .base_mtime_ns = -5,
          .states_redundancy = 1,
          .strategy = R"({"parallel_layout_item": {}})",
          .sources = {{.rank = 0,
                       .path = "rank_0/s.ckpt",
                       .size = 7,
                       .mtime_ns = 8,
                       .inode = 9,
                       .folder_mtime_ns = 10},
                      {.rank = 3, .path = "rank_3/s.ckpt", .size = 11}}};
}

std::string Whole() {
  const auto bytes = EncodePlanRecord(Record());
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return *bytes;
}

std::string With(const std::string& piece, const std::string& replacement) {
  return Resealed(Whole(), piece, replacement);
}

TEST(PlanRecordMalformed, IsRefused) {
  const std::string whole = Whole();
  const std::string lines = whole.substr(0, whole.rfind("{\"digest\""));
  const struct {
    const char* name;
    std::string bytes;
    const char* message;
  } rows[] = {
      {"empty", "", "line 1: cut off at byte 0"},
      {"only a seal", Sealed("", 0), "line 1: byte 9: expected the member \"schema_version\""},
      {"no seal", lines, "line 4: cut off at byte"},
      {"wrong count", Sealed(lines, 1), "line 4: damaged"},
      {"rubbish behind", whole + "x", "line 5: expected the end of the file"},
      {"options no digest", With(kDigestA, "x"), "\"options\": expected 32 lower-case"},
      {"job no digest", With(kDigestB, kDigestA + 'a'), "\"job\": expected 32 lower-case"},
      {"redundancy", With("redundancy\":1", "redundancy\":2"), "states_redundancy is 2"},
      {"size below 0", With("\"size\":7", "\"size\":-7"), "\"size\""},
      {"size too large", With("\"size\":7", "\"size\":18446744073709551616"), "\"size\""},
      {"path outside", With("rank_0/s", "../s"), "it has the component \"..\""},
      {"path from the root", With("rank_0/s", "/s"), "line 2: "},
      {"rank too large", With("\"rank\":3", "\"rank\":9223372036854775808"),
       "rank 9223372036854775808 is too large"},
      {"ranks unsorted", With("\"rank\":0", "\"rank\":4"), "rank 3 after 4"},
      {"a rank twice", With("\"rank\":0", "\"rank\":3"), "rank 3 after 3"},
      {"no inode", With("\"inode\":9,", ""), "expected the member \"inode\""},
  };
  for (const auto& row : rows) {
    const Status status = ParsePlanRecord(row.bytes, "p.jsonl").status();
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << row.name;
    EXPECT_THAT(status.message(), AllOf(HasSubstr(row.message), HasSubstr("p.jsonl: line ")))
        << row.name;
  }
}

TEST(PlanRecordMalformed, AnotherSchemaIsUnsupported) {
  EXPECT_EQ(ParsePlanRecord("{\"schema_version\":2}\n", "p").status().code(),
            StatusCode::kUnsupported);
}

TEST(PlanRecordMalformed, EveryFlippedBitAndTruncationIsNoticed) {
  const std::string whole = Whole();
  ASSERT_TRUE(ParsePlanRecord(whole, "p").ok());
  EXPECT_EQ(*ParsePlanRecord(whole, "p"), Record());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(ParsePlanRecord(whole.substr(0, i), "p").status().code(), StatusCode::kCorrupt) << i;
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      EXPECT_FALSE(ParsePlanRecord(bytes, "p").ok()) << "byte " << i << ", bit " << bit;
    }
  }
}

TEST(PlanRecordMalformed, IsNotEncoded) {
  const struct {
    const char* name;
    void (*change)(PlanRecord& record);
    const char* message;
  } rows[] = {
      {"no options", [](PlanRecord& r) { r.options = ""; }, "32 lower-case"},
      {"no job", [](PlanRecord& r) { r.job = ""; }, "32 lower-case"},
      {"redundancy", [](PlanRecord& r) { r.states_redundancy = 2; }, "states_redundancy is 2"},
      {"path outside", [](PlanRecord& r) { r.sources[1].path = "../s"; }, "component \"..\""},
      {"ranks unsorted", [](PlanRecord& r) { r.sources[0].rank = 3; }, "rank 3 after 3"},
  };
  for (const auto& row : rows) {
    PlanRecord record = Record();
    row.change(record);
    const Status status = EncodePlanRecord(record).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << row.name;
    EXPECT_THAT(status.message(), HasSubstr(row.message)) << row.name;
  }
}

}  // namespace
}  // namespace reshard::plan_record_malformed_test
