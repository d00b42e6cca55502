// Strategies with the names from before and from after renames.
#include "src/mindspore/strategy_names.h"

#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reshard/options.h"
#include "reshard/status.h"
#include "reshard/strategy.h"

namespace reshard::strategy_names_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Strategy WithNames(const std::vector<std::string>& names) {
  std::vector<NamedLayout> layouts;
  for (const std::string& name : names) {
    layouts.push_back({name, {.device_matrix = {2}, .tensor_map = {{0}}}});
  }
  return Strategy::Make(layouts).value();
}

std::vector<std::string> NamesIn(const Strategy& strategy) {
  std::vector<std::string> names;
  for (const Strategy::Entry layout : strategy.stages().front()) names.emplace_back(layout.name);
  return names;
}

// The old names; empty if the strategy has them already, or no new ones.
std::vector<std::string> OldNames(const Renames& renames, const std::vector<std::string>& names) {
  const Result<std::optional<Strategy>> old_names =
      WithOldNames(WithNames(names), Renaming(renames));
  return old_names.value() ? NamesIn(**old_names) : std::vector<std::string>();
}

TEST(StrategyNamesTest, NewNamesBecomeOldOnes) {
  const Renames renames{{{"head", "lm_head"}}, {{"layers.*", "model.layers.*"}}, ""};
  EXPECT_THAT(OldNames(renames, {"model.layers.0", "lm_head", "other"}),
              ElementsAre("layers.0", "head", "other"));
  EXPECT_THAT(OldNames({{}, {}, "llama:hf-to-mindformers"},
                       {"model.tok_embeddings.embedding_weight", "lm_head.weight"}),
              ElementsAre("model.embed_tokens.weight", "lm_head.weight"));
  EXPECT_THAT(
      NamesIn(WithNewNames(WithNames({"layers.0", "head", "other"}), Renaming(renames)).value()),
      ElementsAre("model.layers.0", "lm_head", "other"));
}

TEST(StrategyNamesTest, AnOldNameMakesAllNamesOld) {
  const Renames swap{{{"a", "b"}, {"b", "a"}}, {}, ""};
  EXPECT_THAT(OldNames(swap, {"a", "b"}), ElementsAre());
  const Renames chain{{{"a", "b"}, {"b", "c"}}, {}, ""};
  EXPECT_THAT(OldNames(chain, {"b", "c"}), ElementsAre());
  EXPECT_THAT(OldNames(chain, {"c"}), ElementsAre("b"));
  EXPECT_THAT(OldNames(chain, {"other"}), ElementsAre());
}

TEST(StrategyNamesTest, ANewNameOfSeveralPatternsStays) {
  EXPECT_THAT(OldNames({{}, {{"a.*", "x.*"}, {"b.*", "x.*"}}, ""}, {"x.0"}), ElementsAre());
  EXPECT_THAT(OldNames({{}, {{"a.*", "x.*"}, {"*.b", "*.y"}}, ""}, {"x.y", "x.0"}),
              ElementsAre("x.y", "a.0"));
}

TEST(StrategyNamesTest, TwoParametersWithOneNameAreAnError) {
  const Status status =
      WithNewNames(WithNames({"a.0", "b.0"}), Renaming({{}, {{"a.*", "x.*"}, {"b.*", "x.*"}}, ""}))
          .status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("\"a.0\" and \"b.0\" would both be called \"x.0\""));
}

}  // namespace
}  // namespace reshard::strategy_names_test
