#include "reshard/status.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>

#include "reshard/version.h"

namespace reshard {
namespace {

TEST(Result, GivesItsValue) {
  Result<std::string> text = std::string("text");
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(text.status().ok());
  EXPECT_EQ(*text, "text");
  EXPECT_EQ(text->size(), 4U);
  text.value() += "s";
  EXPECT_EQ(std::as_const(text).value(), "texts");
  Result<std::unique_ptr<int>> owner = std::make_unique<int>(3);
  const std::unique_ptr<int> moved = std::move(owner).value();
  EXPECT_EQ(*moved, 3);
}

TEST(ResultDeathTest, TheValueOfAFailedOneEndsTheProgramWithTheStatusInWords) {
  Result<std::string> failed = NotFoundError("x.ckpt: does not exist");
  const Result<std::string>& constant = failed;
  const char* words = "the value of a failed Result was taken: not found: x.ckpt: does not exist";
  EXPECT_DEATH((void)failed.value(), words);
  EXPECT_DEATH((void)constant.value(), words);
  EXPECT_DEATH((void)std::move(failed).value(), words);
  EXPECT_DEATH((void)*failed, words);
  EXPECT_DEATH((void)*constant, words);
  EXPECT_DEATH((void)failed->size(), words);
  EXPECT_DEATH((void)constant->size(), words);
}

TEST(ResultDeathTest, AnOkStatusMakesNoResult) {
  EXPECT_DEATH((void)Result<int>(Status()), "a Result without a value was made of the status: ok");
}

// Two versions of the library in one program have symbols of their own.
TEST(Version, PublicTypesAreInTheNamespaceOfTheVersion) {
  const std::string name = fmt::format("v{}_{}", kVersionMajor, kVersionMinor);
  EXPECT_NE(std::string_view(typeid(Status).name()).find(name), std::string_view::npos);
}

}  // namespace
}  // namespace reshard
