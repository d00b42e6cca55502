// Mistyped commands and options are named, with what may have been meant.
#include "tools/cli/unknown_words.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reshard::unknown_words_test {
namespace {

TEST(NearNamesTest, Distance) {
  const struct {
    const char* a;
    const char* b;
    size_t distance;
  } rows[] = {
      {"", "", 0},         {"", "abc", 3},
      {"rank", "rank", 0}, {"stratgy", "strategy", 1},
      {"jbos", "jobs", 2}, {"kitten", "sitting", 3},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(EditDistance(row.a, row.b), row.distance) << row.a;
    EXPECT_EQ(EditDistance(row.b, row.a), row.distance) << row.b;
  }
}

TEST(NearNamesTest, NearestIsTheFirstOfThoseThatAreClose) {
  const std::vector<std::string> names = {"rank", "ranks", "include", "exclude", "src-strategy"};
  EXPECT_EQ(NearestName("rnaks", names), "ranks");
  EXPECT_EQ(NearestName("rankx", names), "rank");
  EXPECT_EQ(NearestName("exlude", names), "exclude");
  EXPECT_EQ(NearestName("src-strat", names), "src-strategy");
  EXPECT_EQ(NearestName("src-stra", names), "");
  EXPECT_EQ(NearestName("rk", names), "");
  EXPECT_EQ(NearestName("r", {"", "rr"}), "");
  EXPECT_EQ(NearestName(std::string(100000, 'r'), {std::string(100001, 'r')}), "");
}

// A program with commands and options of the kinds that there are.
class UnknownWordsTest : public testing::Test {
 protected:
  UnknownWordsTest() {
    app_.set_version_flag("--version", "1");
    CLI::App& convert = *app_.add_subcommand("convert");
    convert.add_option("SRC", text_)->required();
    convert.add_option("--src-strategy", text_);
    convert.add_option("--rank", list_)->allow_extra_args(false);
    convert.add_option("--src_strategy", text_)->expected(0, 1);
    convert.add_option("-o,--output", text_);
    convert.add_flag("-q,--quiet", flag_);
    convert.add_flag("--force", flag_);
    convert.add_flag("--resume", text_);
    CLI::App& diff = *app_.add_subcommand("diff");
    diff.add_option("--a-strategy", text_);
    CLI::App& show = *app_.add_subcommand("strategy")->add_subcommand("show");
    show.add_flag("--json", flag_);
    app_.add_subcommand("man")->group("");
  }

  std::string Describe(const std::vector<std::string>& words) {
    return DescribeUnknownWord(app_, words).value_or("");
  }

  CLI::App app_{"A program", "program"};
  std::string text_;
  std::vector<std::string> list_;
  bool flag_ = false;
};

TEST_F(UnknownWordsTest, NothingIsSaidOfWhatThereIs) {
  const std::vector<std::string> rows[] = {
      {},
      {"--version"},
      {"-h"},
      {"man"},
      {"convert", "a", "b"},
      {"convert", "-qo", "--frob"},
      {"convert", "-oxyz", "-q"},
      {"convert", "--src-strategy", "--frob"},
      {"convert", "--src-strategy=", "--frob"},
      {"convert", "--src-strategy=-x", "--quiet"},
      {"convert", "--rank", "-1", "--rank=-2", "-3"},
      {"convert", "--resume=verify", "--src_strategy", "-1"},
      {"convert", "--", "--frob"},
      {"--", "frob"},
      {"convert", "a", "-", "convrt"},
      {"strategy", "show", "--json"},
  };
  for (const std::vector<std::string>& words : rows) EXPECT_EQ(Describe(words), "");
}

TEST_F(UnknownWordsTest, Options) {
  const struct {
    std::vector<std::string> words;
    const char* text;
  } rows[] = {
      {{"--frobnicate"}, "no such option: --frobnicate"},
      {{"--verion"}, "no such option: --verion; did you mean --version?"},
      {{"convert", "a", "--frobnicate=3"}, "no such option: --frobnicate"},
      {{"convert", "--src-stratgy", "s"},
       "no such option: --src-stratgy; did you mean --src-strategy?"},
      {{"convert", "-src-strategy", "s"},
       "no such option: -src-strategy; did you mean --src-strategy?"},
      {{"convert", "--src-strategy=s", "--frob"}, "no such option: --frob"},
      {{"convert", "--src_strategy", "--frob"}, "no such option: --frob"},
      {{"convert", "--force", "--frob"}, "no such option: --frob"},
      {{"convert", "-oxyz", "--frob"}, "no such option: --frob"},
      {{"convert", "-qx=1"}, "no such option: -x"},
      {{"convert", "-f"}, "no such option: -f; did you mean --force?"},
      {{"convert", "--dry_run"}, "no such option: --dry_run; did you mean `reshard plan`?"},
      {{"diff", "--dry-run"}, "no such option: --dry-run"},
      {{"diff", "--src_strategy", "s"},
       "no such option: --src_strategy; did you mean --a-strategy?"},
      {{"diff", "--strategy"}, "no such option: --strategy; did you mean --a-strategy?"},
      {{"convert", "--fr\nob"}, "no such option: --fr\\nob"},
  };
  for (const auto& row : rows) EXPECT_EQ(Describe(row.words), row.text);
}

TEST_F(UnknownWordsTest, Commands) {
  EXPECT_EQ(Describe({"convrt", "--frob"}), "no such command: convrt; did you mean convert?");
  EXPECT_EQ(Describe({"transform"}), "no such command: transform; did you mean convert?");
  EXPECT_EQ(Describe({"strategy", "split"}), "no such command: split");
  EXPECT_EQ(Describe({"strategy", "shwo"}), "no such command: shwo; did you mean show?");
}

TEST_F(UnknownWordsTest, OptionsBeforeTheCommand) {
  EXPECT_EQ(Describe({"-q", "convert", "a"}),
            "-q: options come after the command, as in `program convert -q`");
  EXPECT_EQ(Describe({"--src-strategy", "s", "convert", "--frob"}),
            "--src-strategy: options come after the command, as in `program convert "
            "--src-strategy`");
  EXPECT_EQ(Describe({"--rank", "2", "convrt", "a"}),
            "no such command: convrt; did you mean convert?");
  EXPECT_EQ(Describe({"--json", "strategy", "show"}),
            "--json: options come after the command, as in `program strategy show --json`");
  EXPECT_EQ(Describe({"--frob", "convert"}), "no such option: --frob");
  EXPECT_EQ(Describe({"--forse", "convert"}), "no such option: --forse; did you mean --force?");
}

TEST_F(UnknownWordsTest, MoreArgumentsThanThereAreNamesFor) {
  const struct {
    std::vector<std::string> words;
    std::string said;
  } rows[] = {
      {{"convert", "a"}, ""},
      {{"convert", "a", "b"}, "expected SRC, found 2 arguments: a, b"},
      {{"convert", "ckpt/rank_0/a.ckpt", "ckpt/rank_1/a.ckpt", "ckpt/rank_10/a.ckpt", "out"},
       "expected SRC, found 4 arguments: ckpt/rank_0/a.ckpt, ckpt/rank_1/a.ckpt, "
       "ckpt/rank_10/a.ckpt and 1 more; if the shell expanded a pattern, give it quoted and with "
       "{rank}: 'ckpt/rank_{rank}/a.ckpt'"},
      {{"convert", "rank_19", "rank_1"},
       "expected SRC, found 2 arguments: rank_19, rank_1; if the shell expanded a pattern, give it "
       "quoted and with {rank}: 'rank_{rank}'"},
      {{"strategy", "show", "x"}, "expected no argument, found 1 argument: x"},
  };
  for (const auto& row : rows) {
    std::string said;
    try {
      app_.parse(std::vector<std::string>(row.words.rbegin(), row.words.rend()));
    } catch (const CLI::ExtrasError&) {
      said = DescribeExtraArguments(app_).value_or("");
    }
    EXPECT_EQ(said, row.said);
  }
}

}  // namespace
}  // namespace reshard::unknown_words_test
