// New names of parameters: by exact names, patterns and the rules of models.
#include "format/rename_map/renaming.h"

#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/rename_map/name_rules.h"
#include "format/rename_map/rename_map_codec.h"
#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard::renaming_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(RenamingTest, AStarStandsForAsLittleAsWillDo) {
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

TEST(RenamingTest, ANameByItselfComesBeforePatterns) {
  const Renaming renaming({{{"layers.0", "first"}}, {{"layers.*", "l.*"}, {"x*", "y*"}}});
  EXPECT_EQ(*renaming.NewNameOf("layers.0"), "first");
  EXPECT_EQ(*renaming.NewNameOf("layers.1"), "l.1");
  EXPECT_EQ(*renaming.NewNameOf("other"), "other");
}

TEST(RenamingTest, TwoPatternsForOneNameAreAnError) {
  const Renaming renaming({{}, {{"*.w", "*.weight"}, {"a.*", "b.*"}}});
  EXPECT_EQ(*renaming.NewNameOf("c.w"), "c.weight");
  const Status status = renaming.NewNameOf("a.w").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("\"a.w\""), HasSubstr("\"*.w\" and \"a.*\"")));
}

TEST(RenamingTest, ANameThatAPatternMakesMayBeTooLong) {
  const Renaming renaming({{}, {{"*", "x*"}}});
  EXPECT_TRUE(renaming.NewNameOf(std::string(65535, 'a')).ok());
  EXPECT_EQ(renaming.NewNameOf(std::string(65536, 'a')).status().code(),
            StatusCode::kInvalidArgument);
}

// The names of a model with two digits of layers, as Hugging Face has them.
std::vector<std::string> NamesOf(bool has_biases) {
  std::vector<std::string> names = {"model.embed_tokens.weight", "model.norm.weight",
                                    "lm_head.weight"};
  for (int layer = 0; layer < 12; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + '.';
    for (const char* module : {"input_layernorm", "post_attention_layernorm", "self_attn.q_proj",
                               "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                               "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
      names.push_back(prefix + module + ".weight");
    }
    for (const char* module : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}) {
      if (has_biases) names.push_back(prefix + module + ".bias");
    }
  }
  return names;
}

TEST(NameRulesTest, EachIsABijectionOverTheNamesOfItsModel) {
  const std::map<std::string, bool> has_biases = {{"llama", false}, {"qwen2", true}};
  EXPECT_THAT(AllNameRules(), ElementsAre("llama:hf-to-mindformers", "llama:mindformers-to-hf",
                                          "qwen2:hf-to-mindformers", "qwen2:mindformers-to-hf"));
  for (const auto& [model, biases] : has_biases) {
    const Renames forward{{}, {}, model + ":hf-to-mindformers"};
    ASSERT_TRUE(CheckRenames(forward).ok());
    const auto inverse = InverseOf(forward);
    ASSERT_TRUE(inverse.ok());
    EXPECT_EQ(inverse->rules, model + ":mindformers-to-hf");
    const Renaming there(forward);
    const Renaming back(*inverse);
    std::map<std::string, std::string> old_names;  // by new name
    for (const std::string& weight : NamesOf(biases)) {
      for (const std::string& name : {weight, "adam_m." + weight}) {
        const std::string new_name = *there.NewNameOf(name);
        EXPECT_TRUE(there.Fits(name)) << name;
        EXPECT_EQ(new_name == name, weight == "lm_head.weight") << name;
        EXPECT_TRUE(old_names.emplace(new_name, name).second) << new_name;
        EXPECT_EQ(*back.NewNameOf(new_name), name);
      }
    }
    // The names from before are no names from after.
    EXPECT_EQ(*back.NewNameOf("model.layers.3.self_attn.q_proj.weight"),
              "model.layers.3.self_attn.q_proj.weight");
  }
}

TEST(NameRulesTest, HaveTheNamesOfMindFormers) {
  const Renaming renaming({{}, {}, "qwen2:hf-to-mindformers"});
  const struct {
    std::string name;
    std::string expected;
  } rows[] = {
      {"model.embed_tokens.weight", "model.tok_embeddings.embedding_weight"},
      {"model.layers.10.self_attn.k_proj.bias", "model.layers.10.attention.wk.bias"},
      {"adam_v.model.layers.0.mlp.down_proj.weight",
       "adam_v.model.layers.0.feed_forward.w2.weight"},
      {"model.norm.weight", "model.norm_out.weight"},
      {"lm_head.weight", "lm_head.weight"},
      {"model.layers.0.self_attn.q_proj.lora_A.weight",
       "model.layers.0.self_attn.q_proj.lora_A.weight"},
      {"global_step", "global_step"},
  };
  for (const auto& row : rows) EXPECT_EQ(*renaming.NewNameOf(row.name), row.expected);
  EXPECT_FALSE(
      Renaming({{}, {}, "llama:hf-to-mindformers"}).Fits("model.layers.0.self_attn.q_proj.bias"));
}

TEST(NameRulesTest, ComeAfterNamesAndPatternsOfTheUser) {
  const Renaming renaming({{{"lm_head.weight", "head"}},
                           {{"model.layers.*.input_layernorm.weight", "norm.*"}},
                           "llama:hf-to-mindformers"});
  EXPECT_EQ(*renaming.NewNameOf("lm_head.weight"), "head");
  EXPECT_EQ(*renaming.NewNameOf("model.layers.1.input_layernorm.weight"), "norm.1");
  EXPECT_EQ(*renaming.NewNameOf("model.norm.weight"), "model.norm_out.weight");
}

TEST(NameRulesTest, AreFilesOfTheirOwnForm) {
  for (const std::string& rules : AllNameRules()) {
    const auto read = ParseRenameMap(rules, RenameMapText(*FindNameRules(rules)));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, *FindNameRules(rules));
    EXPECT_TRUE(CheckRenames(*read).ok());
  }
  EXPECT_EQ(RenameMapText({}), "{}\n");
}

TEST(NameRulesTest, OthersAreAnError) {
  for (const char* rules : {"llama", "llama:", ":hf-to-mindformers", "gpt:hf-to-mindformers"}) {
    const Status status = CheckRenames({{}, {}, rules});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << rules;
    EXPECT_THAT(status.message(), HasSubstr("qwen2:mindformers-to-hf; found"));
  }
  EXPECT_THAT(RulesDoNotFit("llama:hf-to-mindformers", "model.norm_out.weight").message(),
              HasSubstr("give llama:mindformers-to-hf"));
  EXPECT_THAT(RulesDoNotFit("llama:hf-to-mindformers", "w").message(),
              HasSubstr("give the rules of the model"));
}

TEST(RenamingTest, TwoEntriesWithOneNewNameHaveNoInverse) {
  const auto inverse = InverseOf({{{"a", "b"}}, {{"x*", "y*"}}});
  ASSERT_TRUE(inverse.ok());
  EXPECT_EQ(*inverse, (Renames{{{"b", "a"}}, {{"y*", "x*"}}}));
  EXPECT_THAT(InverseOf({{}, {{"a*", "x*"}, {"b*", "x*"}}}).status().message(),
              HasSubstr("\"x*\" stands for both \"a*\" and \"b*\""));
}

}  // namespace
}  // namespace reshard::renaming_test
