// What completion scripts and the man page learn of the parser's tables.
#include "tools/cli/command_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reshard::command_table_test {
namespace {

using testing::ElementsAre;

TEST(CommandTableTest, Values) {
  const struct {
    const char* value_name;
    std::vector<std::string> words;
    bool is_path;
  } rows[] = {
      {"S", {}, true},
      {"MAP.json", {}, true},
      {"RANK=FILE", {}, true},
      {"N", {}, false},
      {"-E_S", {}, false},
      {"GLOB", {}, false},
      {"copy|drop|error", {"copy", "drop", "error"}, false},
      {"I/N|auto", {"auto"}, false},
      {"auto|map[,HOW]", {"auto", "map"}, false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.value_name);
    CLI::App app("A program", "program");
    std::string value;
    app.add_option("--option", value, "Words")->type_name(row.value_name);
    const CommandTable table = DescribeCommands(app);
    ASSERT_EQ(table[0].options.size(), 2U);  // --help too
    const ArgumentEntry& option = table[0].options[1];
    EXPECT_EQ(option.takes_value, TakesValue::kMust);
    EXPECT_EQ(option.words, row.words);
    EXPECT_EQ(option.is_path, row.is_path);
  }
}

TEST(CommandTableTest, OrderAndWhatIsHidden) {
  CLI::App app("A program", "program");
  bool flag = false;
  std::string text;
  std::vector<std::string> several;
  CLI::App& first = *app.add_subcommand("first", "The first");
  first.add_flag("-j,--json", flag, "As JSON")->group("Output");
  first.add_flag("--resume", text, "Go on; or not")->type_name("[=verify]");
  first.add_option("--old", text, "Not for new users")->group("");
  first.add_option("PATH", several, "Files")->required()->type_name("");
  app.add_subcommand("secret", "Nobody's business")->group("");
  app.add_subcommand("second", "The second")->add_subcommand("below", "One more");

  const CommandTable table = DescribeCommands(app);
  std::vector<std::string> names;
  for (const CommandEntry& command : table) names.push_back(command.name);
  EXPECT_THAT(names,
              ElementsAre("program", "program first", "program second", "program second below"));
  EXPECT_EQ(Subcommands(table, "program").size(), 2U);
  EXPECT_EQ(LastWord(table[3]), "below");

  const std::vector<ArgumentEntry>& options = table[1].options;
  ASSERT_EQ(options.size(), 3U);
  EXPECT_THAT(options[0].names, ElementsAre("-h", "--help"));
  EXPECT_THAT(options[1].names, ElementsAre("--resume"));
  EXPECT_EQ(options[1].takes_value, TakesValue::kMay);
  EXPECT_THAT(options[1].words, ElementsAre("verify"));
  EXPECT_EQ(ShortDescription(options[1].description), "Go on");
  EXPECT_THAT(options[2].names, ElementsAre("-j", "--json"));
  EXPECT_EQ(options[2].takes_value, TakesValue::kNo);

  ASSERT_EQ(table[1].positionals.size(), 1U);
  EXPECT_THAT(table[1].positionals[0].names, ElementsAre("PATH"));
  EXPECT_TRUE(table[1].positionals[0].required);
  EXPECT_TRUE(table[1].positionals[0].repeatable);
  EXPECT_TRUE(table[1].positionals[0].is_path);
}

}  // namespace
}  // namespace reshard::command_table_test
