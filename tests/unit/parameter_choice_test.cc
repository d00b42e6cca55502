// Which parameters are chosen, and their new names.
#include "src/plan/parameter_choice.h"

#include <gmock/gmock.h>

#include <optional>
#include <string>

#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard {
namespace {

Result<std::string> TargetName(const ParameterChoice& choice, const std::string& name) {
  std::string made;
  const auto found = choice.TargetName(name, made);
  if (!found.ok()) return found.status();
  return **found;
}

using testing::AllOf;
using testing::HasSubstr;

TEST(ParameterChoiceTest, AStarStandsForAsLittleAsWillDo) {
  const struct {
    std::string pattern;
    std::string new_name;
    std::string name;
    std::optional<std::string> expected;
  } rows[] = {
      {"layers.*", "model.layers.*", "layers.0.wq", "model.layers.0.wq"},
      {"layers.*", "model.layers.*", "layers.", "model.layers."},
      {"layers.*", "model.layers.*", "layers", std::nullopt},
      {"layers.*", "model.layers.*", "a.layers.0", std::nullopt},
      {"*.weight", "*.w", "a.weight.weight", "a.weight.w"},
      {"*.weight", "*.w", "a.weight.bias", std::nullopt},
      {"*.a.*", "*/*", "x.a.y.a.z", "x/y.a.z"},
      {"*.a.*.z", "*/*", "x.a.y.a.z", "x/y.a"},
      {"a*a", "b*b", "a", std::nullopt},
      {"a*a", "b*b", "aa", "bb"},
      {"**", "*-*", "ab", "-ab"},
      {"*", "x.*", "", "x."},
      {"a?[b]\\*", "*", "a?[b]\\c", "c"},
      {"a?*", "*", "abc", std::nullopt},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(NameByPattern(row.pattern, row.new_name, row.name), row.expected)
        << row.pattern << " of " << row.name;
  }
}

TEST(ParameterChoiceTest, ANameByItselfComesBeforePatterns) {
  const ParameterChoice choice({}, {},
                               {{{"layers.0", "first"}}, {{"layers.*", "l.*"}, {"x*", "y*"}}});
  EXPECT_EQ(*TargetName(choice, "layers.0"), "first");
  EXPECT_EQ(*TargetName(choice, "layers.1"), "l.1");
  EXPECT_EQ(*TargetName(choice, "other"), "other");
}

TEST(ParameterChoiceTest, TwoPatternsForOneNameAreAnError) {
  const ParameterChoice choice({}, {}, {{}, {{"*.w", "*.weight"}, {"a.*", "b.*"}}});
  EXPECT_EQ(*TargetName(choice, "c.w"), "c.weight");
  const Status status = TargetName(choice, "a.w").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("\"a.w\""), HasSubstr("\"*.w\" and \"a.*\"")));
}

TEST(ParameterChoiceTest, ANameThatAPatternMakesMayBeTooLong) {
  const ParameterChoice choice({}, {}, {{}, {{"*", "x*"}}});
  EXPECT_TRUE(TargetName(choice, std::string(65535, 'a')).ok());
  EXPECT_EQ(TargetName(choice, std::string(65536, 'a')).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace reshard
