#include "src/mindspore/resume_files.h"

#include <gmock/gmock.h>

#include <string>

#include "src/mindspore/mindspore_target.h"

namespace reshard::resume_files_test {
namespace {

constexpr TrainingStep kStep{3, 20};

std::string PatternOf(const std::string& prefix) {
  const auto pattern = PatternOfNames({.prefix = prefix, .names = "mindformers"}, kStep);
  EXPECT_TRUE(pattern.ok()) << pattern.status().message();
  EXPECT_TRUE(CheckNamePattern(*pattern).ok()) << *pattern;
  return *pattern;
}

// MindFormers looks for "_rank_N" in names.
TEST(ResumeFilesTest, NamesFilesAsMindFormers) {
  EXPECT_EQ(PatternOf("llama_7b"), "rank_{rank}/{prefix}_rank_{rank}-3_20.{ext}");
  EXPECT_EQ(PatternOf("checkpoint_"), "rank_{rank}/{prefix}rank_{rank}-3_20.{ext}");
  EXPECT_EQ(PatternOf(""), "rank_{rank}/{prefix}_rank_{rank}-3_20.{ext}");
}

TEST(ResumeFilesTest, OtherPatternsStay) {
  EXPECT_EQ(*PatternOfNames({.names = "{rank}.{ext}"}, std::nullopt), "{rank}.{ext}");
  EXPECT_EQ(*PatternOfNames({}, kStep), "");
}

TEST(ResumeFilesTest, NeedsAStep) {
  const auto pattern = PatternOfNames({.names = "mindformers"}, std::nullopt);
  ASSERT_FALSE(pattern.ok());
  EXPECT_EQ(pattern.status().code(), StatusCode::kInvalidArgument);
}

TEST(ResumeFilesTest, SaysTheLastFile) {
  EXPECT_EQ(MetaPath(12), "rank_12/meta.json");
  EXPECT_EQ(MetaOf(kStep, "rank_1/llama_rank_1-3_20.safetensors"),
            R"({"last_epoch":3,"last_step":20,"last_ckpt_file":"llama_rank_1-3_20.safetensors"})");
}

}  // namespace
}  // namespace reshard::resume_files_test
