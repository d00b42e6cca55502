// Tables of parameters, with alike ones in one row.
#include "tools/page/parameter_table.h"

#include <gtest/gtest.h>

#include <string>

namespace reshard {
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
  EXPECT_EQ(OfLayers(20).ToText(false),
            "  NAME                CUT      STAGE\n"
            "  embedding           2 x 1        0\n"
            "  layers.*.wq x 20    2 x 1      0-1\n"
            "  layers.0.norm       cut          0\n"
            "  layers.*.norm x 19  not cut    0-1\n"
            "  names that differ only in numbers are one line; --long has all 41\n");
}

TEST(ParameterTableTest, AShortTableHasThemAll) {
  EXPECT_EQ(OfLayers(1).ToText(false),
            "  NAME           CUT    STAGE\n"
            "  embedding      2 x 1      0\n"
            "  layers.0.wq    2 x 1      0\n"
            "  layers.0.norm  cut        0\n");
}

TEST(ParameterTableTest, AllAreShownWhereAskedFor) {
  const std::string text = OfLayers(20).ToText(true);
  EXPECT_NE(text.find("  layers.19.norm  not cut      1\n"), std::string::npos) << text;
  EXPECT_EQ(text.find(" x 19"), std::string::npos) << text;
}

}  // namespace
}  // namespace reshard
