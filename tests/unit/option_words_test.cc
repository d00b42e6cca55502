// What is typed for the options that messages of the library name, on a command line and in Python.
#include "src/frontend/option_words.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace reshard::option_words_test {
namespace {

std::string Typed(std::string_view message) { return InWords(message, FrontEnd::kCommandLine); }

TEST(OptionWords, StandForTheNamesOfTheLibrary) {
  const struct {
    const char* message;
    const char* command_line;
    const char* python;
  } rows[] = {
      {"pass `force` to replace it", "pass --force to replace it", "pass force to replace it"},
      {"`unmatched=copy`, `unmatched=drop`", "--unmatched copy, --unmatched drop",
       "unmatched=copy, unmatched=drop"},
      {"see `unmatched`", "see --unmatched", "see unmatched"},
      {"`resume=verify`; `resume`", "--resume=verify; --resume", "resume=verify; resume"},
      {"`suffix=-9_1`", "--suffix=-9_1", "suffix=-9_1"},
      {"`checks.replicas=none`", "--check-replicas=none", "check_replicas=none"},
      {"`io.target` or `io.target=buffered`", "--io or --io buffered", "io or io=buffered"},
      {"`checksum=false`", "--no-checksum", "no_checksum=True"},
      {"`casts`, `renames`", "--dtype, --rename", "dtype, rename"},
      {"`key`", "--key-file or --key-env", "key_file or key_env"},
      {"`target.strategy`", "--dst-strategy", "dst_strategy"},
      {"`Verify` tells", "`reshard verify` tells", "reshard.verify tells"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Typed(row.message), row.command_line);
    EXPECT_EQ(InWords(row.message, FrontEnd::kPython), row.python);
  }
}

TEST(OptionWords, LeaveEverythingElse) {
  for (const std::string text : {"", "`", "a ` b", "``", "`x`", "force", "`force", "`forced`",
                                 "`reshard commit` publishes them", "`other`"}) {
    EXPECT_EQ(Typed(text), text);
  }
  EXPECT_EQ(Typed("a ` b `force`"), "a ` b --force");
  EXPECT_EQ(Typed(Typed("`Verify` `force`")), "`reshard verify` --force");
}

TEST(OptionWords, OfACallGoFirst) {
  EXPECT_EQ(Typed("`source.strategy`"), "--src-strategy");
  const OwnWords own = {{"source.strategy", "--strategy"}};
  EXPECT_EQ(InWords("`source.strategy`, `force`", FrontEnd::kCommandLine, own),
            "--strategy, --force");
}

}  // namespace
}  // namespace reshard::option_words_test
