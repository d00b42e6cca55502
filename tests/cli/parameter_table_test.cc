// Tables of parameters, with alike ones in one row.
#include "tools/page/parameter_table.h"

#include <gtest/gtest.h>

#include <string>

namespace reshard::parameter_table_test {
namespace {

// 2 stages of `layers` layers, each with a matrix and a norm, and an embedding.
ParameterTable OfLayers(int layers) {
  ParameterTable table({{"CUT"}});
  table.Add("embedding", {"2 x 1"}, 0);
  for (int layer = 0; layer < layers; ++layer) {
    const std::string name = "layers." + std::to_string(layer);
    table.Add(name + ".wq", {"2 x 1"}, 2 * layer / layers);
    table.Add(name + ".norm", {layer == 0 ? "cut" : "not cut"}, 2 * layer / layers);
  }
  return table;
}

TEST(ParameterTableTest, AlikeParametersOfALongTableAreOneRow) {
  EXPECT_EQ(
      OfLayers(20).ToText(false),
      "  NAME                CUT      STAGE\n  embedding           2 x 1        0\n  layers.*.wq x "
      "20    2 x 1      0-1\n  layers.0.norm       cut          0\n  layers.*.norm x 19  not cut   "
      " 0-1\n  names that differ only in numbers share a line; --long lists all 41\n");
}

// Copies that differ from their parameter in other columns, or have none, keep lines of their own.
TEST(ParameterTableTest, CopiesOfTheOptimizerShareTheLineOfTheirParameter) {
  ParameterTable table({{"DTYPE"}, {"CUT"}});
  table.FoldCopies({0});
  for (int layer = 0; layer < 20; ++layer) {
    const std::string name = "layers." + std::to_string(layer) + ".wq";
    table.Add("adam_m." + name, {"Float32", "2 x 1"});
    table.Add(name, {"BFloat16", "2 x 1"});
    if (layer > 0) table.Add("adam_v." + name, {"Float32", layer == 1 ? "not cut" : "2 x 1"});
  }
  table.Add("moments.lost", {"Float32", "2 x 1"});
  EXPECT_EQ(table.ToText(false),
            "  NAME                                   DTYPE     CUT\n"
            "  layers.*.wq x 20 +adam_m, adam_v (18)  BFloat16  2 x 1\n"
            "  adam_v.layers.1.wq                     Float32   not cut\n"
            "  moments.lost                           Float32   2 x 1\n"
            "  x N: names differ in numbers; +: optimizer's copies; --long lists all 60\n");
}

TEST(ParameterTableTest, AShortTableHasThemAll) {
  EXPECT_EQ(OfLayers(1).ToText(false),
            "  NAME           CUT\n"
            "  embedding      2 x 1\n"
            "  layers.0.wq    2 x 1\n"
            "  layers.0.norm  cut\n");
}

TEST(ParameterTableTest, AllAreShownWhereAskedFor) {
  const std::string text = OfLayers(20).ToText(true);
  EXPECT_NE(text.find("  layers.19.norm  not cut      1\n"), std::string::npos) << text;
  EXPECT_EQ(text.find(" x 19"), std::string::npos) << text;
}

}  // namespace
}  // namespace reshard::parameter_table_test
