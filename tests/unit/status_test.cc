#include "reshard/status.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <typeinfo>
#include <utility>
#include <vector>

#include "reshard/version.h"
#include "src/base/named_options.h"

namespace reshard::status_test {
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

TEST(Status, KeepsWhatItSaysInCopiesAndMoves) {
  Status first = IoError("x.ckpt: the disk is full; pass `force`", 28);
  const Status copy = first;
  first = Status();
  EXPECT_TRUE(first.ok());
  EXPECT_EQ(first.message(), "");
  first = copy;
  const Status moved = std::move(first);
  for (const Status& status : {copy, moved, copy.WithMessage(moved.message())}) {
    EXPECT_EQ(status.code(), StatusCode::kIo);
    EXPECT_EQ(status.message(), "x.ckpt: the disk is full; pass `force`");
    EXPECT_EQ(status.option(), "force");
    EXPECT_EQ(status.system_error(), 28);
  }
  EXPECT_TRUE(Status(StatusCode::kOk, "no failure", 5).ok());
}

TEST(Status, IsSharedByThreads) {
  const Status status = NotFoundError("x.ckpt: does not exist");
  const auto copy = [&status] {
    for (int time = 0; time < 1000; ++time) {
      const Status own = status;
      EXPECT_EQ(own.message(), "x.ckpt: does not exist");
    }
  };
  std::jthread other(copy);
  copy();
}

TEST(Status, IsAboutTheFirstOptionThatItNames) {
  EXPECT_EQ(InvalidArgumentError("`Verify` tells; pass `unmatched=copy` or `force`").option(),
            "unmatched");
  EXPECT_EQ(NotFoundError("a.ckpt: no such file; raise `ulimit -n`").option(), "");
  EXPECT_EQ(Status().option(), "");
}

TEST(NamedOptions, AreBetweenBackticks) {
  const std::string_view message =
      "a.ckpt: exists; pass `force`, or `unmatched=copy`; raise `ulimit -n`; `Verify` tells `";
  const std::vector<NamedOption> options = NamedOptions(message);
  ASSERT_EQ(options.size(), 3U);
  EXPECT_EQ(options[0].name, "force");
  EXPECT_EQ(options[0].value, "");
  EXPECT_EQ(message.substr(options[0].offset, options[0].length), "`force`");
  EXPECT_EQ(options[1].name, "unmatched");
  EXPECT_EQ(options[1].value, "copy");
  EXPECT_EQ(options[2].name, "Verify");
  EXPECT_TRUE(NamedOptions("").empty());
  EXPECT_TRUE(NamedOptions("``").empty());
}

TEST(WarningCode, HasANameForEach) {
  std::set<std::string_view> names;
  const int last = static_cast<int>(WarningCode::kWaiting);
  for (int code = 1; code <= last; ++code) {
    names.insert(WarningCodeName(static_cast<WarningCode>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(last));
  EXPECT_EQ(names.count("unknown"), 0U);
}

}  // namespace
}  // namespace reshard::status_test
