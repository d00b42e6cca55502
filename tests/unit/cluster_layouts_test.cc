// Layouts for a new cluster: which dimension is cut, and why; which stage a layer is put into; what
// cannot be cut so.

#include "src/mindspore/cluster_layouts.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/support/says.h"

namespace reshard::cluster_layouts_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ClusterParameter Full(std::string name, Shape shape) {
  const size_t dims = shape.size();
  return {.name = std::move(name), .dims = dims, .shape = std::move(shape)};
}

ClusterParameter Cut(std::string name, Shape shape, std::vector<int64_t> cuts, int64_t stages = 1) {
  ClusterParameter parameter = Full(std::move(name), std::move(shape));
  parameter.source_cuts = std::move(cuts);
  parameter.source_stages = stages;
  return parameter;
}

// As a Hugging Face folder of a Llama with grouped queries has them.
ClusterSource Llama(int layers) {
  ClusterSource source{.name = "llama", .parameters = {}};
  source.parameters.push_back(Full("model.embed_tokens.weight", {64, 16}));
  for (int i = 0; i < layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    source.parameters.push_back(Full(layer + "self_attn.k_proj.weight", {8, 16}));
    source.parameters.push_back(Full(layer + "self_attn.o_proj.weight", {16, 16}));
    source.parameters.push_back(Full(layer + "input_layernorm.weight", {16}));
  }
  source.parameters.push_back(Full("model.norm.weight", {16}));
  source.parameters.push_back(Full("lm_head.weight", {64, 16}));
  return source;
}

// "stage name matrix map step size"
std::vector<std::string> Lines(const MadeStrategy& made) {
  std::vector<std::string> lines;
  for (const Strategy::Stage& stage : made.strategy.stages()) {
    for (const auto [name, layout] : stage) {
      lines.push_back(std::to_string(stage.number()) + " " + std::string(name) + " " +
                      ToString(layout.device_matrix) + " " + ToString(layout.tensor_map[0]) + " " +
                      std::to_string(layout.opt_weight_shard_step) + " " +
                      std::to_string(layout.opt_weight_shard_size));
    }
  }
  return lines;
}

std::string Message(const Cluster& cluster, const ClusterSource& source) {
  const auto made = LayoutsForCluster(cluster, source);
  return made.ok() ? "ok" : made.status().message();
}

std::vector<int64_t> LayersOfStages(const Cluster& cluster, int layers) {
  const auto made = LayoutsForCluster(cluster, Llama(layers));
  std::vector<int64_t> counts;
  for (const Strategy::Stage& stage : made.value().strategy.stages()) {
    int64_t norms = 0;
    for (const auto [name, layout] : stage) norms += name.ends_with("input_layernorm.weight");
    counts.push_back(norms);
  }
  return counts;
}

TEST(ClusterLayoutsTest, NamesTellTheDimensionWhereNoLayoutDoes) {
  const auto made = LayoutsForCluster(
      {.tensor_parallel = 2, .data_parallel = 4, .pipeline_stages = 2, .optimizer_shards = -1},
      Llama(2));
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_THAT(
      Lines(*made),
      ElementsAre("0 model.embed_tokens.weight [4, 2] [0, -1] 2 4",
                  "0 model.layers.0.self_attn.k_proj.weight [4, 2] [0, -1] 2 4",
                  "0 model.layers.0.self_attn.o_proj.weight [4, 2] [-1, 0] 2 4",
                  "0 model.layers.0.input_layernorm.weight [4, 2] [-1] 0 0",
                  "1 model.layers.1.self_attn.k_proj.weight [4, 2] [0, -1] 2 4",
                  "1 model.layers.1.self_attn.o_proj.weight [4, 2] [-1, 0] 2 4",
                  "1 model.layers.1.input_layernorm.weight [4, 2] [-1] 0 0",
                  "1 model.norm.weight [4, 2] [-1] 0 0", "1 lm_head.weight [4, 2] [0, -1] 2 4"));
  EXPECT_THAT(made->warnings, IsEmpty());
  EXPECT_THAT(made->notes,
              ElementsAre(HasSubstr("6 of 9 parameters are cut by the rules for names"),
                          HasSubstr("key/value heads is not known")));
}

TEST(ClusterLayoutsTest, LayoutsOfTheSourceGoBeforeNames) {
  ClusterSource source{.name = "ckpt", .has_strategy = true, .parameters = {}};
  source.parameters = {Cut("model.layers.0.attention.wq.weight", {8, 8}, {1, 4}),
                       Cut("model.layers.0.attention.wo.weight", {8, 8}, {1, 1}),
                       Cut("adam_m.model.layers.0.attention.wq.weight", {8, 8}, {1, 4}),
                       Cut("any.qkv", {8, 8}, {2, 1}),
                       Full("global_step", {1}),
                       Full("unknown", {8, 8})};
  const auto made = LayoutsForCluster({.tensor_parallel = 2}, source);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_THAT(Lines(*made),
              ElementsAre("0 model.layers.0.attention.wq.weight [2] [-1, 0] 0 0",
                          "0 model.layers.0.attention.wo.weight [2] [-1, -1] 0 0",
                          "0 adam_m.model.layers.0.attention.wq.weight [2] [-1, 0] 0 0",
                          "0 any.qkv [2] [0, -1] 0 0"));
  EXPECT_THAT(made->notes,
              ElementsAre(HasSubstr("3 of 6 parameters are cut in the dimension"),
                          AllOf(HasSubstr("get no layout"), HasSubstr("\"global_step\""))));
  EXPECT_THAT(made->warnings,
              ElementsAre(Says(WarningCode::kWithoutLayout, HasSubstr("\"unknown\""))));
}

TEST(ClusterLayoutsTest, AMatrixThatNoRuleKnowsStaysWhole) {
  ClusterSource source = Llama(1);
  source.parameters.push_back(Full("model.layers.0.router.weight", {12, 8}));
  const auto made =
      LayoutsForCluster({.tensor_parallel = 2, .data_parallel = 2, .optimizer_shards = 2}, source);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_THAT(made->warnings, ElementsAre(Says(WarningCode::kNotCut, HasSubstr("router.weight"))));
  // Its replicas are all ranks of the stage.
  EXPECT_EQ(Lines(*made).back(), "0 model.layers.0.router.weight [4] [-1, -1] 1 2");
}

TEST(ClusterLayoutsTest, RowsThatDoNotDivideAreNotCutOverReplicas) {
  ClusterSource source{
      .name = "ckpt",
      .parameters = {Full("w.o_proj.weight", {6, 8}), Full("v.o_proj.weight", {8, 8})}};
  const auto made =
      LayoutsForCluster({.tensor_parallel = 2, .data_parallel = 4, .optimizer_shards = 4}, source);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_THAT(Lines(*made), ElementsAre("0 w.o_proj.weight [4, 2] [-1, 0] 0 0",
                                        "0 v.o_proj.weight [4, 2] [-1, 0] 2 4"));
  EXPECT_THAT(made->notes, ElementsAre(HasSubstr("cut by the rules"),
                                       HasSubstr("1 of 2 parameters are not cut over")));
}

TEST(ClusterLayoutsTest, FirstStagesGetOneMoreLayer) {
  EXPECT_THAT(LayersOfStages({.pipeline_stages = 3}, 8), ElementsAre(3, 3, 2));
  EXPECT_THAT(LayersOfStages({.pipeline_stages = 3, .stage_layers = {2, 3, 3}}, 8),
              ElementsAre(2, 3, 3));
}

TEST(ClusterLayoutsTest, NamesAreReadAsLayersByAWordAndANumber) {
  EXPECT_EQ(FindLayer("adam_m.model.layers.12.mlp.experts.3.w1")->number, 12);
  EXPECT_EQ(FindLayer("h.7.attn")->prefix, "h.");
  EXPECT_FALSE(FindLayer("projector.0.weight"));
  EXPECT_FALSE(FindLayer("layers.x.weight"));
  EXPECT_EQ(CutByName("model.layers.0.feed_forward.w2.weight"), 1);
  EXPECT_EQ(CutByName("model.layers.0.ffn_norm.weight"), -1);
  EXPECT_FALSE(CutByName("transformer.h.0.mlp.c_fc.weight"));
}

TEST(ClusterLayoutsTest, WhatIsInNoLayerAndUnknownIsInTheFirstStage) {
  ClusterSource source = Llama(2);
  source.parameters.push_back(Full("model.rotary.table", {4}));
  const auto made = LayoutsForCluster({.pipeline_stages = 2}, source);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_THAT(made->notes, ElementsAre(AllOf(HasSubstr("put into the first stage"),
                                             HasSubstr("\"model.rotary.table\""))));
  EXPECT_THAT(Lines(*made), testing::Contains("0 model.rotary.table [1] [-1] 0 0"));
}

TEST(ClusterLayoutsTest, AMatrixOfSeveralStagesIsAWarning) {
  ClusterSource source{.name = "ckpt", .has_strategy = true, .parameters = {}};
  source.parameters = {Cut("layers.0.w.weight", {8, 8}, {2, 1}, 2),
                       Cut("layers.1.w.weight", {8, 8}, {2, 1})};
  const auto made = LayoutsForCluster({.tensor_parallel = 2, .pipeline_stages = 2}, source);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_THAT(made->warnings,
              ElementsAre(Says(WarningCode::kSeveralStages, HasSubstr("\"layers.0.w.weight\""))));
}

TEST(ClusterLayoutsTest, ErrorsNameParameterDimensionAndOption) {
  const auto with = [](ClusterParameter parameter) {
    ClusterSource source = Llama(2);
    source.parameters.push_back(std::move(parameter));
    return source;
  };
  const Cluster tp2{.tensor_parallel = 2};
  EXPECT_THAT(Message({.tensor_parallel = 3}, Llama(1)),
              AllOf(HasSubstr("4 parameters cannot be cut"),
                    HasSubstr("\"model.embed_tokens.weight\": shape [64, 16]: dimension 0 of 64 "
                              "elements cannot be cut into 3 equal parts (`tensor_parallel=3`)")));
  EXPECT_THAT(Message(tp2, with(Full("layers.0.qkv_proj.weight", {24, 8}))),
              HasSubstr("\"layers.0.qkv_proj.weight\": shape [24, 8]: several matrices in one"));
  EXPECT_THAT(Message(tp2, with(Full("layers.0.experts.up", {4, 8, 8}))),
              HasSubstr("\"layers.0.experts.up\": shape [4, 8, 8]: a stack of matrices"));
  EXPECT_THAT(Message(tp2, with(Cut("layers.0.w", {8, 8}, {2, 2}))),
              HasSubstr("\"layers.0.w\": shape [8, 8]: the source cuts several dimensions"));

  ClusterSource few_heads = Llama(1);
  few_heads.facts.kv_heads = 2;
  EXPECT_THAT(Message({.tensor_parallel = 4}, few_heads),
              HasSubstr("k_proj.weight\": shape [8, 16]: dimension 0 has 2 key/value heads, fewer "
                        "than `tensor_parallel=4`"));
  few_heads.facts.kv_heads = 6;
  EXPECT_THAT(Message({.tensor_parallel = 4}, few_heads), HasSubstr("which do not divide by"));
  // The size of a head follows from norms of queries.
  EXPECT_THAT(Message({.tensor_parallel = 4}, with(Full("layers.0.q_norm.weight", {4}))),
              HasSubstr("2 key/value heads"));

  const Cluster pp2{.pipeline_stages = 2};
  ClusterSource tied = Llama(2);
  tied.parameters.pop_back();
  EXPECT_THAT(Message(pp2, tied),
              AllOf(HasSubstr("\"model.embed_tokens.weight\""), HasSubstr("no head is beside it")));
  tied.facts.ties_embeddings = false;  // a model without a head
  EXPECT_EQ(Message(pp2, tied), "ok");
  tied = Llama(2);
  tied.facts.ties_embeddings = true;
  EXPECT_THAT(Message(pp2, tied), HasSubstr("config.json ties it"));
  EXPECT_EQ(Message({}, tied), "ok");
  EXPECT_THAT(Message({.pipeline_stages = 3}, Llama(2)),
              HasSubstr("`pipeline_stages=3`: expected as many layers at least, found 2"));
  EXPECT_THAT(Message({.pipeline_stages = 2, .stage_layers = {3, 1}}, Llama(5)),
              HasSubstr("`stage_layers=3,1`: expected a sum of 5"));
  EXPECT_THAT(Message({.pipeline_stages = 2, .stage_layers = {5}}, Llama(5)),
              HasSubstr("`stage_layers`: expected 2 numbers"));
  EXPECT_THAT(Message({.pipeline_stages = 2, .stage_layers = {5, 0}}, Llama(5)),
              HasSubstr("expected numbers from 1 on, found 5,0"));
  EXPECT_THAT(Message(pp2, with(Full("vision.blocks.0.w", {8, 8}))),
              HasSubstr("expected one row of layers, found 2"));
  ClusterSource plain{.name = "ckpt", .parameters = {Full("w", {8, 8})}};
  EXPECT_THAT(Message(pp2, plain), HasSubstr("names with the number of a layer"));
  EXPECT_THAT(Message(tp2, plain), HasSubstr("found others (first name: \"w\")"));
}

TEST(ClusterLayoutsTest, NumbersThatAreNoCluster) {
  EXPECT_THAT(Message({.tensor_parallel = 0}, Llama(1)),
              HasSubstr("`tensor_parallel`: expected an integer from 1 to 1048576, found 0"));
  EXPECT_THAT(Message({.data_parallel = 1 << 20, .pipeline_stages = 2}, Llama(1)),
              HasSubstr("expected at most 1048576 ranks"));
  EXPECT_THAT(Message({.data_parallel = 4, .optimizer_shards = 3}, Llama(1)),
              HasSubstr("`optimizer_sharding=3`: expected a divisor of `data_parallel=4`"));
  EXPECT_THAT(Message({.optimizer_shards = -1}, Llama(1)),
              HasSubstr("expected at least 2 replicas"));
}

}  // namespace
}  // namespace reshard::cluster_layouts_test
